// Recorded system calls in the format of strace.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/call_formats.hpp"
#include "syscall/traceloop.h"

namespace coretap {

static_assert(CALL_ARGS == kCallArguments);

/// A string copied from the caller.
struct CallText {
  std::string bytes;
  bool cut = false;      ///< truncated
  bool readable = true;  ///< false: only its address is known
};

/// A recorded call with its strings.
struct CallRecord {
  recorded_call call = {};
  std::uint8_t flags = 0;  ///< enum record_flag
  std::array<std::optional<CallText>, CALL_ARGS> texts;

  /// From a call and the strings that follow it.
  static CallRecord of(const std::vector<record_slot>& slots);
  bool unfinished() const { return flags & RECORD_UNFINISHED; }
  bool headless() const { return flags & RECORD_HEADLESS; }
};

/// "openat(dfd=AT_FDCWD, filename=\"/etc/passwd\", flags=O_RDONLY|O_CLOEXEC)". Without argument
/// names (nullptr) only the values.
std::string call_text(const CallRecord& record, const CallArguments* arguments);

}  // namespace coretap
