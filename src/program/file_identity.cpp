#include "program/file_identity.hpp"

#include <iterator>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "kernel/kernel.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

struct Structure {
  std::string_view module, name;
  std::string_view members[2];
};
constexpr Structure kStructures[] = {{"btrfs", "btrfs_inode", {"vfs_inode", "root"}},
                                     {"btrfs", "btrfs_root", {"anon_dev"}},
                                     {"overlay", "ovl_inode", {"vfs_inode", "__upperdentry"}}};

}  // namespace

void set_file_identity(Session& s) {
  if (!set_variable(s, "btrfs_root_anon_dev", 0)) return;  // a program has all of them, or none
  std::vector<std::uint32_t> built_in;                     // searched in one pass
  for (std::size_t i = 0; i < std::size(kStructures); i++) {
    auto& structure = kStructures[i];
    auto& module = s.kernel.types_of(structure.module);
    if (!module.is_open() && built_in.empty()) {
      std::vector<std::string_view> names;
      names.reserve(std::size(kStructures));
      for (auto& one : kStructures) names.push_back(one.name);
      built_in = s.kernel.structures(names);
    }
    auto& types = module.is_open() ? module : s.kernel.all_types();
    auto* type =
        types.type(module.is_open() ? module.find(structure.name, BTF_KIND_STRUCT) : built_in[i]);
    if (!type) continue;
    for (auto member : structure.members)
      if (!member.empty())
        set_variable(s, fmt::format("{}_{}", structure.name, member),
                     types.member_offset(type, member).value_or(0));
  }
}

}  // namespace coretap
