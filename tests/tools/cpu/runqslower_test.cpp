// runqslower against the kernel's run delays, and tasks that take the CPU from others.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

std::vector<Json> waits_of(const Report& report, std::uint64_t tid) {
  return lines_with(report.body, {{"tid", tid}});
}

TOOL_TEST(Runqslower, AllWaitsAreTheKernelsRunDelay) {
  auto seen = observe_all(
      {"runqslower --json --strict 0 -p {pid}", "runqslower --json --strict 2000 -p {pid}"},
      "runqueue --threads 3 --ms 400");
  auto report = seen.report(0), longer = seen.report(1);
  for (auto& thread : seen.truth["threads"].items()) {
    auto waits = waits_of(report, thread["tid"].u64());
    expect_run_delay(report, sum(waits, "latency_ns"), thread);
    EXPECT_EQ(waits.size(), thread["timeslices"].u64());
  }
  for (auto& wait : report.body) expect_fields(wait, {{"comm", "runqueue"}, {"pid", seen.pid}});
  auto long_waits =
      lines_where(report, [](auto& wait) { return wait["latency_ns"].u64() >= 2'000'000; });
  for (auto& wait : longer.body) EXPECT_GE(wait["latency_ns"].u64(), 2'000'000u);
  // Without accounting the tool uses its own timestamps.
  if (has_accounting(report)) {
    EXPECT_EQ(longer.body.size(), long_waits.size());
  }
  EXPECT_GT(report.lost("filtered"), 0u) << "other tasks wait, too";
}

// Two tasks share one CPU: in most of the time that one waits, the other runs.
TOOL_TEST(Runqslower, NamesTheTaskThatHadTheCpu) {
  Workload wanted("runqueue", "--threads 1 --ms 500 --comm rq-wanted", kLinger);
  Workload rival("runqueue", "--threads 1 --ms 500", kLinger);
  ASSERT_EQ(wanted.ready()["cpu"].u64(), rival.ready()["cpu"].u64());
  auto tid = [](auto& workload) { return workload.ready()["tids"].items().at(0).u64(); };
  Tracer tracer("runqslower", "--json --strict 500 -t " + std::to_string(tid(wanted)));
  rival.release();
  wanted.release();
  wanted.truth();
  rival.truth();
  auto report = tracer.stop();
  std::uint64_t by_rival = 0;
  for (auto& wait : report.body) {
    expect_fields(wait, {{"tid", tid(wanted)}, {"cpu", wanted.ready()["cpu"].u64()}});
    if (wait["longest_tid"].is_null()) continue;
    EXPECT_LE(wait["longest_ns"].u64(), wait["latency_ns"].u64());
    if (wait["longest_tid"].u64() != tid(rival)) continue;
    expect_fields(wait, {{"longest_comm", "runqueue"}});
    by_rival += wait["longest_ns"].u64();
  }
  // Other tasks on this machine may use the CPU, too.
  EXPECT_GE(by_rival, report.sum("latency_ns") / 4);
  EXPECT_GT(by_rival, 0u);
}

TESTS_OF(runqslower, .events = {"0 -P", "runqueue --threads 2 --ms 60"}, .alone = true,
         // As in runqlat's test.
         .stress = event_row("runqueue --threads 3 --ms {n}", 600, slices, "0").with_slack(1),
         .long_run = {{.arguments = "1000"}});

}  // namespace
}  // namespace coretap::tooltest
