// System calls in the format of strace: arguments by name and type, results, errors.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syscall/traceloop.h"
#include "tools/syscall/traceloop/call_formats.hpp"

namespace coretap {

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

/// A bit for each argument that the call reads: the registers of others hold unrelated values. By
/// operations and flags of futex(2), open(2), fcntl(2) and mremap(2).
std::uint32_t used_arguments(std::string_view call, const CallArguments* arguments,
                             std::span<const __u64, CALL_ARGS> values);
/// Formats a number by its type and name.
std::string argument_text(const CallArgument& argument, std::uint64_t value);
/// "openat(dfd=AT_FDCWD, filename=\"/etc/passwd\", flags=O_RDONLY|O_CLOEXEC)". Without argument
/// names (nullptr) only the values.
std::string call_text(const CallRecord& record, const CallArguments* arguments);
/// "3", "-1 ENOENT (No such file or directory)", "0x7f3a5c000000"
std::string result_text(std::int64_t result);
/// errno of a result; 0: no error
int result_error(std::int64_t result);

}  // namespace coretap
