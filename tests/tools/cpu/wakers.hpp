// A thread that reads a pipe, another one that sleeps, then writes, and the timer that wakes the
// latter.
#pragma once
#include "shared.hpp"

namespace coretap::tooltest {
inline namespace cpu {

inline constexpr std::uint64_t kSleeps = 15;

struct Waits {
  Report report;
  std::int64_t target, waker;
  std::uint64_t slept_ns;
};

inline Waits waits_by(const Strings& tool) {
  auto seen = observe(tool + "--json --strict -p {pid}",
                      "sleeper --ms 10 --block-on pipe --sleeps " + std::to_string(kSleeps));
  auto thread = seen.truth["threads"].items().at(0);
  return {seen.report(), thread["tid"].i64(), thread["waker_tid"].i64(), thread["slept_ns"].u64()};
}

/// These lines are all reads of the pipe, each nearly as long as the workload prints.
template <class Condition>
void expect_reads(const Waits& waits, Condition condition) {
  auto reads = lines_where(waits.report, condition);
  auto count = sum(reads, "count");
  expect_switches(waits.report, count, kSleeps);
  EXPECT_GT(count, 0u);
  EXPECT_LE(sum(reads, "total_ns"), waits.slept_ns);
  EXPECT_GE(sum(reads, "total_ns"), waits.slept_ns * count / kSleeps / 10 * 8);
}

inline ToolTests tests_of_waits(const char* tool, const char* long_run = "-m 1000") {
  return {
      .name = tool,
      .events = {{}, "sleeper --sleeps 3"},
      .stress = stack_row(stress::sleeps(), 3000, stress::waits, "--state 3"),
      .long_run = {{.arguments = long_run, .holds_results = true}},
  };
}

}  // namespace cpu
}  // namespace coretap::tooltest
