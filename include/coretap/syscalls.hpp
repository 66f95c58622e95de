// Names of system calls, in this machine's native table and in the one for 32-bit programs.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace coretap {

struct Syscall {
  std::string name;
  int number;
  bool compat;  ///< in the table for 32-bit programs
};

/// The name of the call with this index (CALLS in bpf/lib/core/shared.h). A call that neither table
/// has keeps its number: "syscall_471".
std::string syscall_name(std::uint32_t index);

/// The ABI of an index's table: "x86_64", "i386", "aarch64", "arm".
std::string_view syscall_abi(std::uint32_t index);

/// The indices of all calls with this name; a name or "syscall_NUMBER" may be in both tables.
std::vector<std::uint32_t> syscall_indices(std::string_view name);

/// True if only other architectures have the call: arm64 has openat alone where x86 also has open.
bool is_foreign_syscall(std::string_view name);

/// All calls that have a name, the native table first, by number.
std::vector<Syscall> all_syscalls();

}  // namespace coretap
