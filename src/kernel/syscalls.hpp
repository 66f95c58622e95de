// System calls by name, of this machine's own table and of the one for its 32-bit programs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

struct Syscall {
  std::string name;
  int number;
  bool compat;  ///< of the table for 32-bit programs
};

/// The name of the call with this index (CALLS in bpf/lib/shared.h). One that no table of ours
/// has keeps its number: "syscall_471".
std::string syscall_name(std::uint32_t index);

/// Whose table an index belongs to: "x86_64", "i386", "aarch64", "arm".
std::string_view syscall_abi(std::uint32_t index);

/// The indices of all calls with this name; a name or "syscall_NUMBER" may be in both tables.
std::vector<std::uint32_t> syscall_indices(std::string_view name);

/// Only other machines have such a call, as arm64 has openat alone where x86 has open too.
bool is_foreign_syscall(std::string_view name);

/// All that have a name, the machine's own first, by number.
std::vector<Syscall> all_syscalls();

}  // namespace coretap
