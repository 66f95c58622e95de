// Counters of perf events, read by the loader: those of the machine, of some CPUs, tasks, a cgroup
// or a command.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/reports.hpp"
#include "coretap/result.hpp"
#include "kernel/perf_events.hpp"

namespace coretap::perfcount {

/// An event of the command line.
struct Wanted {
  std::string word, name;
  PerfEvent event;
  int group = 0;        ///< events with the same number count at the same time; 0: alone
  bool shared = false;  ///< hardware counters, also of its group: they may count in turns
};

struct Settings {
  std::vector<Wanted> events;  ///< empty: the default ones
  int groups = 0;
};

/// "cycles,{branches,branch-misses},sched:sched_switch": adds them to the settings.
Result<void> take_events(Settings& settings, std::string_view text);

/// Counts since the previous report. The fields have the types of an empty one.
struct Line {
  std::string event;
  std::int64_t cpu = -1;               ///< -1: the sum of all
  std::optional<std::uint64_t> count;  ///< of clocks: nanoseconds; nothing: it was not counted
  double counted = 0;                  ///< part of the time in which it was, 0 to 1
  double seconds = 0;                  ///< of the report
  bool is_clock = false, snapshot = false;
  double scale = 1;                   ///< a count times this is in `unit`
  std::string unit;                   ///< empty: events
  std::optional<double> ratio = 0.0;  ///< to another event, or of a clock to the time
  std::string_view ratio_unit;
};

/// Fills in the ratios of one CPU's lines, or of those of all.
void add_ratios(std::vector<Line>& lines, std::size_t from);

/// The time that passed, and the CPU time of what is counted.
struct Elapsed {
  double seconds = 0;
  std::optional<double> user_s = 0.0, system_s = 0.0;  ///< nothing: not known
};

/// Properties of an event that a recording keeps, in the order of the command line.
struct EventNames {
  std::string name, unit = {};  ///< as in Line
  double scale = 1;
  bool is_clock = false, snapshot = false;
  bool shared = false;  ///< as in Wanted
};

/// Microseconds.
struct CpuTime {
  std::uint64_t user = 0, system = 0;
};

/// Sums since the start.
struct Counts {
  /// By CPU (-1: all) and index of the event; of a snapshot event: its present value.
  std::map<std::pair<int, std::size_t>, CounterValue> values = {};
  std::map<std::uint32_t, CpuTime> times = {};  ///< by what is counted
};

/// As answers of a recording (Ask::counts), and back. Damaged parts are left out.
std::string packed(const std::vector<EventNames>& events);
std::vector<EventNames> names_from(std::string_view bytes);
std::string packed(const Counts& counts);
Counts counts_from(std::string_view bytes, std::size_t events);

std::unique_ptr<Counting> make_counting(const Config& config);

}  // namespace coretap::perfcount
