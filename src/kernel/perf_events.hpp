// Perf events by their names in perf(1).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/hooks.hpp"
#include "coretap/result.hpp"

namespace coretap {

/// Members of perf_event_attr.
struct PerfEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;

  bool is_clock() const;     ///< counts nanoseconds
  bool is_hardware() const;  ///< counted by the CPU
  bool operator==(const PerfEvent&) const = default;
};

/// A hardware or software event ("cycles", "page-faults"), a cache event ("LLC-load-misses"), or a
/// raw event in hexadecimal digits ("r01c2").
Result<PerfEvent> perf_event(std::string_view name);
/// All names except raw events.
std::vector<std::string> perf_event_names();

/// The shortest period that can be requested.
std::uint64_t least_period(const PerfEvent& event);

/// Opens the event for all tasks on a CPU; returns the descriptor, or -1 and errno. Without a rate
/// it only counts.
int open_perf_event(const PerfEvent& event, const Sampling& sampling, int cpu);

/// Why this machine cannot sample the event, found by opening it on one CPU; empty: it can, or only
/// capabilities are missing.
std::string perf_event_refusal(std::string_view name);

}  // namespace coretap
