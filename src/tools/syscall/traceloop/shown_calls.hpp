// Calls that were shown together, and the record that a recording has of them.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/syscall/traceloop/call_text.hpp"

namespace coretap {

struct Call {
  int cpu = -1;  ///< -1: unknown
  CallRecord record = {};

  std::uint64_t begin() const {
    return record.call.start_ns ? record.call.start_ns : record.call.end_ns;
  }
  bool ended() const { return !record.unfinished(); }
  bool timed() const { return ended() && !record.headless(); }
  int error() const { return ended() ? result_error(record.call.result) : 0; }
};

struct ShownCalls {
  /// The process whose end was the reason.
  struct Ended {
    std::uint32_t pid = 0;
    std::string comm = {};
  };

  std::string recorder = {};  ///< its cgroup as given; empty: there is only one
  /// Why the recorder was dumped; nothing: the calls are shown as they arrive.
  std::optional<std::string> why = {};
  std::optional<Ended> ended = {};
  std::uint64_t now_ns = 0;       ///< the time of that
  std::uint64_t since_ns = 0;     ///< later calls were not shown before
  std::uint64_t overwritten = 0;  ///< older calls that were, before they were read
  std::vector<Call> calls = {};

  std::string packed() const;
  /// Of a recording; nothing: it is damaged.
  static std::optional<ShownCalls> of(std::string_view bytes);
};

}  // namespace coretap
