#include "program/file_identity.hpp"

#include <string_view>

#include <fmt/format.h>

#include "kernel/kernel.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

struct Place {
  std::string_view module, type, member;
};
constexpr Place kPlaces[] = {{"btrfs", "btrfs_inode", "vfs_inode"},
                             {"btrfs", "btrfs_inode", "root"},
                             {"btrfs", "btrfs_root", "anon_dev"},
                             {"overlay", "ovl_inode", "vfs_inode"},
                             {"overlay", "ovl_inode", "__upperdentry"}};

}  // namespace

void set_file_identity(Session& s) {
  for (auto& place : kPlaces) {
    const auto constant = fmt::format("{}_{}", place.type, place.member);
    if (!set_variable(s, constant, 0)) return;
    auto& module = s.kernel.types_of(place.module);
    auto& types = module.is_open() ? module : s.kernel.all_types();
    if (!types.is_open()) return;
    if (auto* type = types.type(types.find(place.type, BTF_KIND_STRUCT)))
      set_variable(s, constant, types.member_offset(type, place.member).value_or(0));
  }
}

}  // namespace coretap
