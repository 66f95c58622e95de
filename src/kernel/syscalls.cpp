#include "coretap/syscalls.hpp"

#include <seccomp.h>

#include <cstdlib>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "lib/core/shared.h"

namespace coretap {

namespace {

constexpr std::string_view kUnnamed = "syscall_";

/// Calls that the installed libseccomp may lack. Since 5.1 all tables share the numbers of new
/// calls.
constexpr std::pair<int, std::string_view> kYoung[] = {
    {451, "cachestat"},         {452, "fchmodat2"},        {453, "map_shadow_stack"},
    {454, "futex_wake"},        {455, "futex_wait"},       {456, "futex_requeue"},
    {457, "statmount"},         {458, "listmount"},        {459, "lsm_get_self_attr"},
    {460, "lsm_set_self_attr"}, {461, "lsm_list_modules"}, {462, "mseal"},
    {463, "setxattrat"},        {464, "getxattrat"},       {465, "listxattrat"},
    {466, "removexattrat"},     {467, "open_tree_attr"},   {468, "file_getattr"},
    {469, "file_setattr"},      {470, "listns"},           {471, "rseq_slice_yield"},
};
/// Calls that only the native table of x86 has.
constexpr std::pair<int, std::string_view> kYoungX86[] = {{335, "uretprobe"}, {336, "uprobe"}};

bool x86() { return seccomp_arch_native() == SCMP_ARCH_X86_64; }

std::uint32_t architecture(bool compat) {
  if (!compat) return seccomp_arch_native();
  return x86() ? SCMP_ARCH_X86 : SCMP_ARCH_ARM;
}

/// Empty: there is none.
std::string known_name(int number, bool compat) {
  std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(architecture(compat), number), std::free);
  if (name) return name.get();
  for (auto& [young, its_name] : kYoung)
    if (young == number) return std::string(its_name);
  if (x86() && !compat)
    for (auto& [young, its_name] : kYoungX86)
      if (young == number) return std::string(its_name);
  return {};
}

}  // namespace

std::string syscall_name(std::uint32_t index) {
  auto number = static_cast<int>(index % CALLS_COMPAT);
  if (number == CALLS_OTHER) return "other";
  auto name = known_name(number, index >= CALLS_COMPAT);
  return name.empty() ? fmt::format("{}{}", kUnnamed, number) : name;
}

std::string_view syscall_abi(std::uint32_t index) {
  bool compat = index >= CALLS_COMPAT;
  if (x86()) return compat ? "i386" : "x86_64";
  return compat ? "arm" : "aarch64";
}

std::vector<std::uint32_t> syscall_indices(std::string_view name) {
  std::vector<std::uint32_t> indices;
  // libseccomp's reverse lookup returns pseudo numbers for calls with two entry points.
  for (auto& call : all_syscalls())
    if (call.name == name)
      indices.push_back(static_cast<std::uint32_t>(call.number) + (call.compat ? CALLS_COMPAT : 0));
  if (!indices.empty() || !name.starts_with(kUnnamed)) return indices;
  auto number = parse_unsigned(name.substr(kUnnamed.size()));
  if (number && *number < CALLS_OTHER)
    for (std::uint32_t table : {0, CALLS_COMPAT})
      indices.push_back(static_cast<std::uint32_t>(*number) + table);
  return indices;
}

bool is_foreign_syscall(std::string_view name) {
  // libseccomp has negative pseudo numbers for those; -1 is an unknown name.
  return seccomp_syscall_resolve_name(std::string(name).c_str()) < __NR_SCMP_ERROR;
}

std::vector<Syscall> all_syscalls() {
  std::vector<Syscall> all;
  for (bool compat : {false, true})
    for (int number = 0; number < CALLS_OTHER; number++)
      if (auto name = known_name(number, compat); !name.empty())
        all.push_back({std::move(name), number, compat});
  return all;
}

}  // namespace coretap
