// Arguments of system calls by name and type, from this kernel's tracefs
// (events/syscalls/sys_enter_NAME/format).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

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

}  // namespace coretap
