// System calls in the format of strace: arguments by name and type, from this kernel's tracefs
// (events/syscalls/sys_enter_NAME/format), results, errors.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

inline constexpr std::size_t kCallArguments = 6;  ///< at most

struct CallArgument {
  std::string type;  ///< C type: "const char *"
  std::string name;

  bool is_pointer() const { return type.find('*') != type.npos; }
  /// A string from the caller, not a buffer.
  bool is_text() const;
};
using CallArguments = std::vector<CallArgument>;

/// The fields of a format file that are arguments of the call.
CallArguments parse_call_format(std::string_view format);

class CallFormats {
 public:
  /// Reads all of them. Without tracefs, none is known; if single files cannot be read, the others
  /// are, and the first error is returned. A call that this kernel does not have is no error.
  Result<void> read();
  bool empty() const { return known_.empty(); }
  /// By index (CALLS in bpf/lib/core/shared.h); nullptr: unknown.
  const CallArguments* find(std::uint32_t index) const;

 private:
  std::map<std::uint32_t, CallArguments> known_;
};

/// A bit for each argument that the call reads: the registers of others hold unrelated values. By
/// operations and flags of futex(2), open(2), fcntl(2) and mremap(2).
std::uint32_t used_arguments(std::string_view call, const CallArguments* arguments,
                             std::span<const std::uint64_t, kCallArguments> values);
/// Formats a number by its type and name.
std::string argument_text(const CallArgument& argument, std::uint64_t value);
/// "3", "-1 ENOENT (No such file or directory)", "0x7f3a5c000000"
std::string result_text(std::int64_t result);
/// errno of a result; 0: no error
int result_error(std::int64_t result);

}  // namespace coretap
