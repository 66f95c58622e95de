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

/// Name and arguments of a system call.
struct CallNames {
  std::string name, abi;                        ///< as in coretap/syscalls.hpp
  std::optional<CallArguments> arguments = {};  ///< nothing: only their values are known

  /// As an answer of a recording (Ask::syscall), and back. Damaged parts are left out;
  /// the recording may be anyone's.
  std::string packed() const;
  static CallNames of(std::string_view bytes);
};

/// "openat(dfd=AT_FDCWD, filename=\"/etc/passwd\", flags=O_RDONLY|O_CLOEXEC)".
std::string call_text(const CallRecord& record, const CallNames& names);

}  // namespace coretap
