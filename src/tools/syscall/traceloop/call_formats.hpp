// Arguments of system calls by name and type, from this kernel's tracefs
// (events/syscalls/sys_enter_NAME/format).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

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
  /// Reads all formats; false: there is no tracefs, and nothing is known.
  bool read();
  /// By index (CALLS in bpf/lib/shared.h); nullptr: unknown.
  const CallArguments* find(std::uint32_t index) const;

 private:
  std::map<std::uint32_t, CallArguments> known_;
};

}  // namespace coretap
