// cpudist against the kernel's counts of a process: /proc/PID/schedstat (time on a CPU) and
// /proc/PID/status (context switches).
#include "shared.hpp"

namespace coretap::tooltest {
// Threads that are preempted, but never block: each stint is traced from its start.
TOOL_TEST(Cpudist, EveryStintOfEachThread) {
  auto seen = observe("cpudist --json --strict -L -p {pid}", "runqueue --threads 3 --ms 400");
  auto report = seen.report();
  for (auto& thread : seen.truth["threads"].items()) {
    auto line = line_with(report.body, {{"tid", thread["tid"].u64()}});
    // The scheduler's clock excludes interrupts if the kernel accounts for their time, and is read
    // slightly before or after the switch.
    auto truth = thread["on_cpu_ns"].real();
    expect_between(line["total_ns"].u64(), 0.97 * truth, 1.10 * truth + 2e6);
    EXPECT_EQ(line["count"].u64(), thread["voluntary"].u64() + thread["nonvoluntary"].u64());
    expect_fields(line, {{"comm", "runqueue"}});
    check_histogram(line, 1000);
  }
}

TOOL_TEST(Cpudist, TypesOfSwitches) {
  Workload preempted("runqueue", "--threads 3 --ms 300", kLinger);
  Workload sleeper("sleeper", "--sleeps 100 --ms 1", kLinger);
  auto options = "--json --strict -P -p " + preempted.id() + "," + sleeper.id();
  Tracer waits("cpudist", options + " --switch-type voluntary");
  Tracer wanted_on("cpudist", options + " --switch-type preempted");
  Tracer each("cpudist", options + " --switch-types"), off("cpudist", options + " -O -S");
  preempted.release();
  sleeper.release();
  auto busy = preempted.truth(), slept = sleeper.truth();
  auto voluntary = waits.stop(), nonvoluntary = wanted_on.stop();
  auto of = [](const Report& report, const Workload& workload) {
    return sum(report.of_process(static_cast<std::uint64_t>(workload.pid())), "count");
  };
  EXPECT_GE(of(nonvoluntary, preempted), busy["nonvoluntary"].u64());
  EXPECT_GE(of(voluntary, preempted), busy["voluntary"].u64());
  EXPECT_GE(of(voluntary, sleeper), slept["voluntary"].u64());
  EXPECT_LE(of(voluntary, sleeper), slept["voluntary"].u64() + 10);
  EXPECT_GT(busy["nonvoluntary"].u64(), 5u);
  // Both types in one run.
  auto both = each.stop(), off_both = off.stop();
  auto typed = [&](const Report& report, const char* type, const Workload& workload) {
    auto own = report.of_process(static_cast<std::uint64_t>(workload.pid()));
    return sum(lines_with(own, {{"switch_type", type}}), "count");
  };
  for (auto& report : {both, off_both}) {
    EXPECT_TRUE(lines_with(report.body, {{"switch_type", "any"}}).empty());
    EXPECT_GE(typed(report, "preempted", preempted) + 4, busy["nonvoluntary"].u64());
    EXPECT_GE(typed(report, "voluntary", sleeper) + 4, slept["voluntary"].u64());
    EXPECT_LE(typed(report, "voluntary", sleeper), slept["voluntary"].u64() + 10);
    EXPECT_LE(typed(report, "preempted", sleeper), slept["nonvoluntary"].u64() + 10);
  }
}

// It never leaves its CPU, as no other task needs it: the parts of one stint.
TOOL_TEST(Cpudist, PartsOfAStintUnderWay) {
  auto seen = observe("cpudist --json -L -p {pid} 0.1", "sleeper --sleeps 1 --ms 1 --spin 1500");
  auto report = seen.report();
  auto spun = seen.truth["threads"].items().at(0)["spun_cpu_ns"].real();
  expect_between(report.sum("total_ns"), 0.97 * spun, 1.10 * spun + 5e7);
  EXPECT_GE(report.body.size(), 10u) << "each interval has its part";
  // An interval may come late.
  for (auto& line : report.body) EXPECT_LE(line["total_ns"].u64(), 400'000'000 * slowness());
  auto whole = [](auto& line) { return line["total_ns"].u64() > 50'000'000; };
  EXPECT_GE(lines_where(report, whole).size(), 5u);
}

// A stint in progress at the start counts from there until the end.
TOOL_TEST(Cpudist, StintLongerThanTheTrace) {
  Workload workload("sleeper", "--sleeps 1 --ms 1 --spin 5000");
  workload.release();
  ASSERT_TRUE(until([&] { return state_of(workload.pid()) == 'R'; }));
  auto report = report_of("cpudist --json -P 0.5 3 -p " + workload.id());
  EXPECT_EQ(report.body.size(), 3u);
  expect_between(report.sum("total_ns"), 5e8, 2.5e9 * slowness());
}

TOOL_TEST(Cpudist, TimesOffTheCpu) {
  auto seen = observe("cpudist --json --strict -O -m -e -p {pid}", "sleeper --sleeps 50 --ms 4");
  auto line = line_with(seen.report().body, {});
  auto& truth = seen.truth;
  EXPECT_GE(line["count"].u64(), truth["sleeps"].u64());
  EXPECT_LE(line["count"].u64(), truth["voluntary"].u64() + truth["nonvoluntary"].u64() + 10);
  // The workload's time includes entry to the kernel and return.
  EXPECT_GE(line["total_ns"].u64(), 50u * 4'000'000);
  check_histogram(line, 1'000'000);
}

TOOL_TEST(Cpudist, IdleTasksOnlyWhenAsked) {
  EXPECT_FALSE(contains(output_of("cpudist -P 0.3 1"), "swapper/"));
  EXPECT_TRUE(contains(output_of("cpudist -P -I 0.3 1"), "swapper/"));
}

TESTS_OF(cpudist, .events = {"-L", "runqueue --threads 2 --ms 60"}, .alone = true,
         .stress = count_row("runqueue --threads 3 --ms {n}", 600, "count", stress::all_leaves,
                             "-L"),
         .long_run = {{.arguments = "-P 10"}, {.arguments = "-O -P 10", .of = "offcpu"}});

}  // namespace coretap::tooltest
