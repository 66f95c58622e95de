// smpcalls against a workload that runs a function on another CPU a known number of times, and the
// kernel's own trace of such calls.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kReadEvent[] = "__perf_event_read";

/// The line of that function, from all calls of the workload.
std::pair<Json, Observed> of_calls(const Strings& options, const Strings& workload) {
  auto seen = observe("smpcalls --json -p {pid}" + options, workload);
  auto line = line_with(seen.report().body, {{"function", kReadEvent}});
  expect_fields(line, {{"count", seen.truth["calls"].u64()}});
  return {line, seen};
}

TOOL_TEST(Smpcalls, EveryCallAndItsTime) {
  auto [line, seen] = of_calls("--strict", "crosscall --calls 1000");
  auto& truth = seen.truth;
  // The caller measures the whole system call.
  EXPECT_GT(line["total_ns"].u64(), truth["took_ns"].u64() / 20);
  EXPECT_LE(line["total_ns"].u64(), truth["took_ns"].u64());
  EXPECT_LE(line["max_ns"].u64(), truth["longest_ns"].u64());
  EXPECT_EQ(line["average_ns"].u64(), line["total_ns"].u64() / line["count"].u64());
  EXPECT_LE(line["average_ns"].u64(), line["max_ns"].u64());
  if (line["run_ns"].is_null()) return;
  EXPECT_GT(line["run_ns"].u64(), 0u);
  EXPECT_LT(line["run_ns"].u64(), line["total_ns"].u64());
}

// All functions, of all callers: those queued while both trace.
TOOL_TEST(Smpcalls, EachFunctionAsInTheTrace) {
  Workload workload("crosscall", "--calls 300", kLinger);
  const Strings events = "csd/csd_queue_cpu csd/csd_function_exit";
  Trace outside(events);
  Tracer tracer("smpcalls", "--json");
  Trace inside(events);
  workload.release();
  workload.truth();
  inside.stop();
  auto report = tracer.stop();
  outside.stop();
  auto functions = [](const Trace& trace, bool queued_too) {
    Counts queued, all;
    for (auto& e : trace.events()) {
      auto csd = e.value("csd");
      if (e.name == "csd_queue_cpu")
        queued[csd] = 1;
      else if (queued.erase(csd) || !queued_too)
        all[e.value("func")]++;
    }
    // Remote wake-ups of tasks, which use the same queue.
    all.erase("sched_ttwu_pending");
    return all;
  };
  // The trace may order the end of a call before its queueing on another CPU at the same time.
  auto least = functions(inside, true), most = functions(outside, false);
  if (most.empty()) throw Skip("this kernel has no trace of calls (before 6.4)");
  auto counts = counts_by(report, "function");
  // The kernel's trace may lack a few of the workload's calls, without counting them as lost.
  constexpr std::uint64_t kCalls = 300;
  EXPECT_GE(counts[kReadEvent], kCalls);
  most[kReadEvent] = std::max<std::uint64_t>(most[kReadEvent], kCalls);
  for (auto& [function, n] : least) EXPECT_GE(counts[function], n) << function;
  for (auto& [function, n] : counts) EXPECT_LE(n, most[function]) << function;
}

TOOL_TEST(Smpcalls, CallersByStackAndProcess) {
  auto [line, seen] = of_calls("-K -P", "crosscall --calls 50");
  expect_fields(line, {{"pid", seen.pid}, {"comm", "crosscall"}});
  EXPECT_TRUE(has_frame(line, "kernel_stack", "perf_read")) << line.text();
}

TOOL_TEST(Smpcalls, Histograms) {
  auto [line, seen] = of_calls("-d", "crosscall --calls 200");
  EXPECT_LE(line["total_ns"].u64(), seen.truth["took_ns"].u64());
  check_histogram(line, 1000);
}

TESTS_OF(smpcalls, .events = {"-P", "crosscall --calls 100"}, .alone = true,
         .nothing_when_idle = true,
         .stress = count_row("crosscall --calls {n}", 500, "count", "calls", "-P").with_slack(10),
         .long_run = {{.arguments = "-P 10"}, {.arguments = "-K 10", .of = "stacks"}});

}  // namespace
}  // namespace coretap::tooltest
