// A thread that reads a pipe, another one that sleeps, then writes, and the timer that wakes that
// one.
#pragma once
#include <algorithm>

#include "../harness.hpp"

namespace coretap::tooltest {

inline constexpr std::uint64_t kSleeps = 15, kMs = 10;

struct Run {
  Report report;
  std::int64_t target, waker;
  std::uint64_t slept_ns;
};

inline Run run_with(const char* tool, Strings options) {
  require_tool(tool);
  Workload workload(
      "sleeper",
      {"--sleeps", std::to_string(kSleeps), "--ms", std::to_string(kMs), "--block-on", "pipe"},
      {.linger = true});
  options.insert(options.end(), {"--json", "--strict", "-p", workload.id()});
  Tracer tracer(tool, options);
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  workload.end_lingering();
  auto thread = truth["threads"].items().at(0);
  return {std::move(report), thread["tid"].i64(), thread["waker_tid"].i64(),
          thread["slept_ns"].u64()};
}

inline bool has_frame(const Json& party, const char* stack, std::string_view part) {
  auto frames = party[stack].strings();
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

struct Sum {
  std::uint64_t ns = 0, count = 0;
};
template <class Condition>
Sum sum_of(const Run& run, Condition condition) {
  Sum sum;
  for (auto& line : run.report.body)
    if (condition(line)) {
      sum.ns += line["total_ns"].u64();
      sum.count += line["count"].u64();
    }
  return sum;
}

/// All reads of the pipe, for nearly as long as the workload says.
inline void expect_reads(const Run& run, const Sum& sum) {
  EXPECT_EQ(sum.count, kSleeps);
  EXPECT_LE(sum.ns, run.slept_ns);
  EXPECT_GE(sum.ns, run.slept_ns / 10 * 8);
}

}  // namespace coretap::tooltest
