// Events of PMUs, as the kernel lists them below /sys/bus/event_source/devices.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// An event of a PMU: values for perf_event_open(), and the form of its counts in output.
struct PmuEvent {
  std::string pmu;
  std::uint32_t type = 0;
  std::array<std::uint64_t, 4> config = {};  ///< config, config1, config2, config3
  std::string name = {};                     ///< of the term "name"
  double scale = 1;                          ///< a count times this is in `unit`
  std::string unit = {};                     ///< "Joules"; empty: events
  bool snapshot = false;       ///< each reading is a value, not what happened since it began
  std::vector<int> cpus = {};  ///< where it can be opened; empty: on all
  bool for_others = false;     ///< such a CPU counts for others too, whatever runs on them

  bool counts_on(int cpu) const;
  bool operator==(const PmuEvent&) const = default;
};

/// "cpu/mem-loads,ldlat=30/P" in its parts.
struct PmuWord {
  std::string_view pmu, terms, modifiers;
};
/// Fails unless the word has two slashes.
Result<PmuWord> pmu_word(std::string_view word);

/// Removes and returns the first event of a list: commas between the slashes of a PMU's event do
/// not end it. `comma`: gets whether one was behind it.
std::string_view take_event_word(std::string_view& list, bool* comma = nullptr);

/// How an event is called in output: the value of the term "name", or the word.
std::string event_title(std::string_view word);

/// The PMUs of a machine.
class Pmus {
 public:
  explicit Pmus(std::string root = "/sys/bus/event_source/devices") : root_(std::move(root)) {}

  /// Terms: "event=0x3c,umask=1", "config1=0x10", names of the PMU's events, "name=TEXT"; of two
  /// that set the same bits, the last one counts.
  Result<PmuEvent> event(std::string_view pmu, std::string_view terms) const;
  /// An event whose name is not ambiguous on this machine ("mem-loads"); fails with kUsage if no
  /// PMU has it.
  Result<PmuEvent> alias(std::string_view name) const;
  /// Those whose events can be named here.
  std::vector<std::string> names() const;
  std::vector<std::string> aliases(std::string_view pmu) const;
  /// "mem-loads", "cpu/mem-loads/".
  std::vector<std::string> all_aliases() const;
  /// How precise samples of a PMU can be, 0 to 3.
  int most_precise(std::string_view pmu) const;
  /// "msr, power"; "none with events".
  std::string list() const;

 private:
  std::string path(std::string_view pmu, std::string_view file) const;

  std::string root_;
};

}  // namespace coretap
