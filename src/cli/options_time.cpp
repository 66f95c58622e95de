// Options for intervals of reports, format of times, and duration of tracing.
#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "coretap/small_files.hpp"

namespace coretap::shared {

namespace {

using Schedule = Config::Schedule;

auto taking(std::string of, double Schedule::*member) {
  return [of = std::move(of), member](Config& c, std::string_view text) {
    return store(take_seconds(of, text), c.schedule.*member);
  };
}

Option seconds(char letter, std::string_view name, std::string_view doc, double Schedule::*member) {
  return same_everywhere(
      value(letter, name, "SECONDS", doc, taking(fmt::format("--{}", name), member)));
}

}  // namespace

Option timestamp(char letter) {
  return same_everywhere(flag(letter, "timestamp", "print the time of each line or report"));
}
Option milliseconds(std::string_view doc) {
  return same_everywhere(flag('m', "milliseconds", doc));
}
Option microseconds(std::string_view doc) {
  return same_everywhere(flag('u', "microseconds", doc));
}
Option nanoseconds() { return same_everywhere(flag('N', "nanoseconds", "times in nanoseconds")); }
Option interval() { return seconds('i', "interval", "time between reports", &Schedule::interval); }
Option duration(char letter) {
  return seconds(letter, "duration", "exit after this time", &Schedule::duration);
}

std::vector<Positional> interval_count(double otherwise) {
  auto without = otherwise > 0 ? fmt::format("{:g}", otherwise) : "one report at the end";
  Positional interval = {
      .metavar = "INTERVAL",
      .doc = fmt::format("seconds between reports (or 100ms, 2m, 1h); without it {}", without),
      .apply = taking("INTERVAL", &Schedule::interval),
      .option = "interval"};
  if (otherwise > 0) interval.otherwise = fmt::format("{:g}", otherwise);
  Positional count = {.metavar = "COUNT",
                      .doc = "number of reports; without it until Ctrl-C",
                      .apply = [](Config& c, std::string_view text) {
                        return store(take_number("COUNT", text, 1, UINT64_MAX), c.schedule.count);
                      }};
  return {interval, count};
}

Positional duration_argument(std::string_view otherwise) {
  return {.metavar = "DURATION",
          .doc = otherwise.empty()
                     ? "seconds to trace (or 100ms, 2m, 1h); without it until Ctrl-C"
                     : fmt::format("seconds to trace, or 100ms, 2m, 1h (default: {})", otherwise),
          .apply = taking("DURATION", &Schedule::duration),
          .option = "duration",
          .otherwise = std::string(otherwise)};
}

Option affinity(Setting on, Setting migration_cost) {
  auto option =
      flag(0, "affinity",
           "split waits by whether a CPU was idle that the task may use (also traces wakeups, and "
           "writes shared memory each time that a CPU becomes idle or busy)",
           on);
  option.apply = [=, apply = option.apply](Config& c, std::string_view text) -> Result<void> {
    constexpr std::uint64_t kUsual = 500'000;
    auto cost = read_number("/sys/kernel/debug/sched/migration_cost_ns");
    // Until 5.13 (8a99b6833c88).
    if (!cost) cost = read_number("/proc/sys/kernel/sched_migration_cost_ns");
    if (!cost)
      c.notes.emplace_back(
          "/sys/kernel/debug/sched/migration_cost_ns cannot be read: 500000 is assumed");
    // -1, in the kernel 32 bits: tasks are never moved.
    const bool never = cost && (*cost == -1 || *cost == UINT32_MAX);
    c.set(migration_cost, never ? UINT64_MAX : static_cast<std::uint64_t>(cost.value_or(kUsual)));
    return apply(c, text);
  };
  return option;
}

}  // namespace coretap::shared
