// Perf events by their names in perf(1).
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/hooks.hpp"
#include "coretap/result.hpp"
#include "kernel/pmu_events.hpp"

namespace coretap {

/// Members of perf_event_attr.
struct PerfEvent {
  std::uint32_t type = 0;
  std::uint64_t config = 0;
  bool not_user = false, not_kernel = false;  ///< as ":k" and ":u" say
  int precise = 0;            ///< how near to the instruction samples are wanted, 0 to 3
  bool most_precise = false;  ///< as near as this machine can
  std::optional<PmuEvent> of_pmu = {};

  bool is_clock() const;     ///< counts nanoseconds
  bool is_hardware() const;  ///< counted by the CPU
  bool is_tracepoint() const;
  bool operator==(const PerfEvent&) const = default;
};

/// A hardware or software event ("cycles", "page-faults"), a cache event ("LLC-load-misses"), a
/// raw event in hexadecimal digits ("r01c2"), a tracepoint ("sched:sched_switch"), or an event of
/// a PMU ("cpu/mem-loads,ldlat=30/", "mem-loads"). After the name and a colon, or after a PMU's
/// last slash: "u": only in user mode, "k": only in the kernel, "p" to "ppp": precise, "P": as
/// precise as possible.
Result<PerfEvent> perf_event(std::string_view name, const Pmus& pmus = Pmus());
/// The same without the configuration of a PMU's event: that PMU may be another machine's, or of
/// the one that made the recording that is shown.
Result<PerfEvent> perf_event_word(std::string_view name);
/// All names except raw events and those of PMUs.
std::vector<std::string> perf_event_names();

/// The shortest period that can be requested.
std::uint64_t least_period(const PerfEvent& event);

/// Opens the event for all tasks on a CPU; returns the descriptor, or -1 and errno. Without a rate
/// it only counts. Samples are less precise than wanted if the machine has no more.
int open_perf_event(const PerfEvent& event, const Sampling& sampling, int cpu);

/// Whose events a counter counts: all of a CPU, those of a task, or those of a cgroup on a CPU.
struct Counted {
  int cpu = -1;            ///< -1: all
  pid_t task = -1;         ///< -1: all
  int cgroup = -1;         ///< descriptor of a directory; -1: none
  int group = -1;          ///< counter that is scheduled with this one; -1: none
  bool from_exec = false;  ///< enabled when the task executes a program
  /// Tasks that it starts from now on. Before Linux 5.13, threads: all.
  enum Children { none, threads, all } children = none;
};
/// Opens a counter that is not enabled, or is with its group's first one; returns the descriptor,
/// or -1 and errno.
int open_counter(const PerfEvent& event, const Counted& whose);
void enable_counter(int fd);
/// A counter's value, and for how long it could have counted and did: hardware counters are shared.
struct CounterValue {
  std::uint64_t value = 0, enabled_ns = 0, running_ns = 0;
};
/// Nothing on failure, and after its CPU went offline.
std::optional<CounterValue> read_counter(int fd);

/// Why an event cannot be opened, for an errno.
std::string refusal_words(const PerfEvent& event, std::string_view name, int error);

/// Why this machine cannot sample the event, found by opening it on one CPU; empty: it can, or only
/// capabilities are missing. `precise`: gets how precise samples will be.
std::string perf_event_refusal(std::string_view name, int* precise = nullptr);

}  // namespace coretap
