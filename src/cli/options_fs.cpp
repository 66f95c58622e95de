// Options that select file systems.
#include <cstring>
#include <set>

#include <fmt/format.h>

#include "coretap/file_systems.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

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

/// Types of the mounts in this mount namespace. Lines are "device place type options 0 0"; spaces
/// in names are escaped.
std::set<std::string, std::less<>> mounted_types() {
  std::set<std::string, std::less<>> names;
  auto text = read_file("/proc/self/mounts", 4 << 20).value_or("");
  for (std::string_view rest = text; !rest.empty();) {
    auto line = take_until(rest, '\n');
    take_until(line, ' ');
    take_until(line, ' ');
    names.emplace(take_until(line, ' '));
  }
  return names;
}

}  // namespace

FunctionName fs_function(const Config& config, std::string_view word) {
  // File systems whose functions see all operations, one function per operation.
  static constexpr struct {
    std::string_view type, read, write, open, fsync, getattr;
  } kTypes[] = {
      {"ext4", "ext4_file_read_iter", "ext4_file_write_iter", "ext4_file_open", "ext4_sync_file",
       "ext4_file_getattr"},
      {"xfs", "xfs_file_read_iter", "xfs_file_write_iter", "xfs_file_open", "xfs_file_fsync",
       "xfs_vn_getattr"},
      {"btrfs", "btrfs_file_read_iter", "btrfs_file_write_iter", "btrfs_file_open",
       "btrfs_sync_file", "btrfs_getattr"},
      {"f2fs", "f2fs_file_read_iter", "f2fs_file_write_iter", "f2fs_file_open", "f2fs_sync_file",
       "f2fs_getattr"},
  };
  if (!word.starts_with("TYPE_")) return {word, {}};
  auto wanted = config.text("type");
  for (auto& t : kTypes) {
    if (t.type != wanted) continue;
    auto function = word.ends_with("read_iter")    ? t.read
                    : word.ends_with("write_iter") ? t.write
                    : word.ends_with("open")       ? t.open
                    : word.ends_with("fsync")      ? t.fsync
                                                   : t.getattr;
    return {function, t.type};
  }
  return {};
}

std::vector<Hook> fs_call_hooks() {
  Candidate functions{
      .programs = {ProgramName("on_read_end"), ProgramName("on_write_end"),
                   ProgramName("on_open_end"), ProgramName("on_fsync_end"),
                   ProgramName("on_getattr_end"), ProgramName("on_read"), ProgramName("on_write"),
                   ProgramName("on_open"), ProgramName("on_fsync"), ProgramName("on_getattr")},
      // getattr has five arguments since 5.12 (549c7297717c), this helper exists since 5.17.
      .needs = {has_enumerator("bpf_func_id", "BPF_FUNC_get_func_ret")},
      .caveat = kFsFunctionsNotSeen,
      .function_of = fs_function,
      .only = "--type ext4, xfs, btrfs or f2fs"};
  auto splice = functions;
  splice.programs.insert(splice.programs.begin(),
                         {ProgramName("on_splice_end"), ProgramName("on_splice")});
  return {{"operations",
           {splice,
            functions,
            {.programs = {ProgramName("on_exit"), ProgramName("on_enter")}, .caveat = kFsNotSeen}}},
          timed_ring_io_hook()};
}

std::string fs_type_name(const fs_type& type) {
  auto* name = reinterpret_cast<const char*>(type.name);
  return {name, strnlen(name, sizeof type.name)};
}

Option shared::fs_type() {
  return same_everywhere(one_of(
      free_text('t', "type", "TYPE",
                "only file systems of this type, as in /proc/filesystems; nfs includes nfs4, and "
                "fuse includes fuseblk",
                Complete::nothing, "a file system type"),
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
  auto known = known_types(), mounted = mounted_types();
  bool any = false, any_mounted = false;
  for (std::size_t i = 0; i < names.size() && i < FS_TYPES; i++) {
    any |= known.contains(names[i]);
    any_mounted |= mounted.contains(names[i]);
    struct fs_type words = {};
    memcpy(words.name, names[i].data(), std::min(names[i].size(), sizeof words.name - 1));
    for (std::size_t w = 0; w < FS_TYPE_WORDS; w++)
      config.set({wanted.offset + i * sizeof words + 8 * w, 8}, words.name[w]);
  }
  if (any && !any_mounted)
    config.notes.push_back(fmt::format(
        "no file system of type {} is mounted here: only other containers can use one", type));
  if (any) return {};
  return Error{
      fmt::format("the kernel does not know the file system '{}'", type),
      fmt::format("{} does not list it: its module is not loaded or does not exist", kTypes),
      fmt::format("load the module (modprobe {}) or mount such a file system, then trace", type),
      kUnsupported};
}

}  // namespace coretap
