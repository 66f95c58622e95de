// The report of timeline: a trace for Perfetto, and a line about it.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>

namespace coretap {

class ReportKind;

/// The words of --only.
struct TimelinePart {
  std::string_view word, doc;
};
inline constexpr TimelinePart kTimelineParts[] = {
    {"sched", "switches and wakeups"},
    {"irq", "interrupts and softirqs"},
    {"block", "requests of block devices"},
    {"syscalls", "system calls"},
    {"faults", "page faults of 10 us or more"},
    {"net", "TCP: connections and their states, sends, receives, retransmits"},
};

struct TimelineSettings {
  std::uint64_t last_ns = 0;  ///< 0: the whole trace
};

struct TimelineReport {};

std::shared_ptr<const ReportKind> make_kind(TimelineReport report);

}  // namespace coretap
