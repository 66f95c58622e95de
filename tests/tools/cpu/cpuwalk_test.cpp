// cpuwalk against the kernel's CPU time of tasks bound to one CPU, and /proc/stat.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Cpuwalk, BusyOnTheCpuOfTheTasks) {
  auto seen =
      observe_all({"cpuwalk --json --strict -p {pid}", "cpuwalk --json --per-node -p {pid}"},
                  "runqueue --threads 2 --ms 1000");
  auto report = seen.report();
  auto expected = seen.truth["on_cpu_ns"].real();
  std::int64_t last = -1;
  for (auto& line : report.body) {
    EXPECT_GT(line["cpu"].i64(), last) << "by number";
    last = line["cpu"].i64();
    EXPECT_LE(line["busy_ratio"].real(), 1);
    if (line["cpu"].u64() != seen.truth["cpu"].u64()) {
      EXPECT_LE(line["busy_ns"].real(), 0.2 * expected) << "its main thread";
    }
  }
  auto its = line_with(report.body, {{"cpu", seen.truth["cpu"].u64()}});
  // The kernel's sum excludes interrupts; the main thread may run here, too.
  expect_between(its["busy_ns"].real(), 0.97 * expected, 1.10 * expected + 5e7);
  // Nodes are the sums of their CPUs.
  auto busy = static_cast<double>(report.sum("busy_ns"));
  EXPECT_NEAR(static_cast<double>(seen.report(1).sum("busy_ns")), busy, 0.02 * busy);
  for (auto& line : seen.body(1)) EXPECT_LE(line["busy_ratio"].real(), 1);
}

/// Busy seconds of a CPU in /proc/stat.
double busy_seconds(std::uint64_t cpu) {
  for (auto& line : lines(slurp("/proc/stat"))) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != "cpu" + std::to_string(cpu)) continue;
    double busy = 0, ticks = 0;
    for (int i = 0; i < 8 && words >> ticks; i++)
      if (i != 3 && i != 4) busy += ticks;
    return busy / static_cast<double>(::sysconf(_SC_CLK_TCK));
  }
  throw Skip("no such CPU in /proc/stat");
}

// Also with intervals: a stint across their boundary is split between them.
TOOL_TEST(Cpuwalk, AllTasksAsInProcStat) {
  Workload workload("runqueue", "--threads 1 --ms 2000", kLinger);
  auto cpu = workload.ready()["cpu"].u64();
  Tracer whole("cpuwalk", "--json"), intervals("cpuwalk", "--json 0.2");
  auto before = busy_seconds(cpu);
  workload.release();
  workload.truth();
  auto truth = busy_seconds(cpu) - before;
  for (auto* tracer : {&whole, &intervals}) {
    auto report = tracer->stop();
    auto own = lines_with(report.body, {{"cpu", cpu}});
    auto first = lines_with(report.body, {{"cpu", report.body.at(0)["cpu"].u64()}});
    // /proc/stat counts in ticks; the tool traces slightly longer.
    expect_between(static_cast<double>(sum(own, "busy_ns")) / 1e9, 0.95 * truth - 0.05,
                   1.05 * truth + 0.3 * slowness());
    EXPECT_EQ(report.body.size(),
              first.size() * static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)))
        << "idle CPUs too";
  }
}

// A task that never leaves its CPU is in each interval.
TOOL_TEST(Cpuwalk, SharesOfIntervals) {
  Workload workload("sleeper", "--sleeps 1 --ms 1 --spin 4000");
  workload.release();
  ASSERT_TRUE(until([&] { return state_of(workload.pid()) == 'R'; }));
  auto report = report_of("cpuwalk --json 0.5 3 -p " + workload.id());
  auto cpus = static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  ASSERT_EQ(report.body.size(), 3 * cpus);
  for (std::size_t i = 0; i < 3; i++) {
    double share = 0;
    for (std::size_t cpu = 0; cpu < cpus; cpu++)
      share += report.body[i * cpus + cpu]["busy_ratio"].real();
    expect_between(share, 0.2, 1.02);  // other tasks run, too
  }
}

TESTS_OF(cpuwalk, .events = {{}, "runqueue --threads 2 --ms 60"}, .alone = true,
         .stress = total_row("runqueue --threads 3 --ms {n}", 600, "stints", stress::all_leaves));

}  // namespace
}  // namespace coretap::tooltest
