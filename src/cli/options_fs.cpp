// Which file systems.
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "base/files.hpp"
#include "base/parse.hpp"
#include "cli/option_parts.hpp"
#include "coretap/file_systems.hpp"

namespace coretap {

namespace {

constexpr char kTypes[] = "/proc/filesystems";

/// Lines are "nodev\tproc", or "\text4".
std::set<std::string, std::less<>> known_types() {
  std::set<std::string, std::less<>> names;
  auto text = read_file(kTypes).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    auto line = take_until(rest, '\n');
    if (auto tab = line.find('\t'); tab != line.npos) names.emplace(line.substr(tab + 1));
  }
  return names;
}

}  // namespace

std::string fs_type_name(const fs_type& type) {
  auto* name = reinterpret_cast<const char*>(type.name);
  return {name, strnlen(name, sizeof type.name)};
}

Option shared::fs_type() {
  return same_everywhere(one_of(
      value('t', "type", "TYPE",
            "only file systems of this type, as /proc/filesystems names it; nfs is nfs4 too, and "
            "fuse fuseblk",
            [](Config&, std::string_view text) -> Result<void> {
              if (text.empty()) return usage("--type: needs the name of a type of file systems");
              return {};
            }),
      [] {
        std::vector<Completion> all;
        for (auto& name : known_types()) all.push_back({name});
        return all;
      }));
}

Result<void> look_up_fs_type(Config& config, Setting wanted) {
  auto type = config.text("type");
  if (type.empty()) return {};
  std::vector<std::string_view> names = {type};
  if (type == "nfs") names.emplace_back("nfs4");
  if (type == "fuse") names.emplace_back("fuseblk");
  auto known = known_types();
  bool any = false;
  for (std::size_t i = 0; i < names.size() && i < FS_TYPES; i++) {
    any |= known.contains(names[i]);
    struct fs_type words = {};
    memcpy(words.name, names[i].data(), std::min(names[i].size(), sizeof words.name - 1));
    for (std::size_t w = 0; w < FS_TYPE_WORDS; w++)
      config.set({wanted.offset + i * sizeof words + 8 * w, 8}, words.name[w]);
  }
  if (any) return {};
  return Error{
      fmt::format("the kernel does not know the file system '{}'", type),
      fmt::format("{} does not list it: its module is not loaded, or there is none", kTypes),
      fmt::format("load the module (modprobe {}) or mount such a file system, then trace", type),
      kUnsupported};
}

}  // namespace coretap
