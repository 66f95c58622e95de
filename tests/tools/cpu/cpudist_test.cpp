// cpudist against the kernel's own counts of a process: /proc/PID/schedstat (time on a CPU) and
// /proc/PID/status (how often it left one).
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// A clock of the scheduler leaves interrupts out where the kernel accounts for their time, and
/// starts a little before or after the switch.
void expect_time(std::uint64_t shown, std::uint64_t truth) {
  EXPECT_GE(static_cast<double>(shown), 0.97 * static_cast<double>(truth));
  EXPECT_LE(static_cast<double>(shown), 1.10 * static_cast<double>(truth) + 2e6);
}

std::map<std::uint64_t, Json> by_tid(const Report& report) {
  std::map<std::uint64_t, Json> all;
  for (auto& line : report.body) all.emplace(line["tid"].u64(), line);
  return all;
}

// Threads that are preempted, and in between wait for nothing: each stint is seen from its start.
TOOL_TEST(Cpudist, EveryStintOfEachThread) {
  require_tool("cpudist");
  Workload workload("runqueue", {"--threads", "3", "--ms", "400"}, kLinger);
  Tracer tracer("cpudist", {"--json", "--strict", "-L", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto threads = by_tid(report);
  for (auto& thread : truth["threads"].items()) {
    auto found = threads.find(thread["tid"].u64());
    ASSERT_NE(found, threads.end());
    auto& line = found->second;
    expect_time(line["total_ns"].u64(), thread["on_cpu_ns"].u64());
    EXPECT_EQ(line["count"].u64(), thread["voluntary"].u64() + thread["nonvoluntary"].u64());
    EXPECT_EQ(line["comm"].str(), "runqueue");
    check_histogram(line, 1000);
  }
}

TOOL_TEST(Cpudist, TypesOfSwitches) {
  require_tool("cpudist");
  Workload preempted("runqueue", {"--threads", "3", "--ms", "300"}, kLinger);
  Workload sleeper("sleeper", {"--sleeps", "100", "--ms", "1"}, kLinger);
  auto ids = preempted.id() + "," + sleeper.id();
  auto with = [&](const char* type) {
    return std::make_unique<Tracer>(
        "cpudist", Strings{"--json", "--strict", "-P", "--switch-type", type, "-p", ids});
  };
  auto waits = with("voluntary"), wanted_on = with("preempted");
  preempted.release();
  sleeper.release();
  auto busy = preempted.truth(), slept = sleeper.truth();
  auto voluntary = waits->stop(), nonvoluntary = wanted_on->stop();
  auto of = [](const Report& report, pid_t pid) {
    std::uint64_t n = 0;
    for (auto& line : report.of_process(static_cast<std::uint64_t>(pid))) n += line["count"].u64();
    return n;
  };
  auto main_thread = of(nonvoluntary, preempted.pid());
  EXPECT_GE(main_thread, busy["nonvoluntary"].u64());
  EXPECT_GE(of(voluntary, preempted.pid()), busy["voluntary"].u64());
  EXPECT_GE(of(voluntary, sleeper.pid()), slept["voluntary"].u64());
  EXPECT_LE(of(voluntary, sleeper.pid()), slept["voluntary"].u64() + 10);
  EXPECT_GT(busy["nonvoluntary"].u64(), 5u);
}

// It does not leave its CPU at all, as nothing else wants that: the parts of one stint.
TOOL_TEST(Cpudist, PartsOfAStintUnderWay) {
  require_tool("cpudist");
  Workload workload("sleeper", {"--sleeps", "1", "--ms", "1", "--spin", "1500"}, kLinger);
  Tracer all("cpudist", {"--json", "-L", "-p", workload.id(), "0.1"});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop();
  auto spun = truth["threads"].items().at(0)["spun_cpu_ns"].u64();
  EXPECT_GE(static_cast<double>(report.sum("total_ns")), 0.97 * static_cast<double>(spun));
  EXPECT_LE(static_cast<double>(report.sum("total_ns")), 1.10 * static_cast<double>(spun) + 5e7);
  EXPECT_GE(report.body.size(), 10u) << "each interval has its part";
  std::size_t whole = 0;
  for (auto& line : report.body) {
    // An interval may come late.
    EXPECT_LE(line["total_ns"].u64(), 400'000'000 * slowness());
    if (line["total_ns"].u64() > 50'000'000) whole++;
  }
  EXPECT_GE(whole, 5u);
}

// One that was under way before the start counts from there on, until the end.
TOOL_TEST(Cpudist, StintLongerThanTheTrace) {
  require_tool("cpudist");
  Workload workload("sleeper", {"--sleeps", "1", "--ms", "1", "--spin", "5000"}, {});
  workload.release();
  ASSERT_TRUE(until([&] { return state_of(workload.pid()) == 'R'; }));
  auto result = run({tool_path("cpudist"), "--json", "-P", "-p", workload.id(), "0.5", "3"});
  ASSERT_EQ(result.status, 0) << result.err;
  auto report = parse_report(result.out, result.err);
  EXPECT_EQ(report.body.size(), 3u);
  EXPECT_GE(report.sum("total_ns"), 500'000'000u);
  EXPECT_LE(report.sum("total_ns"), 2'500'000'000 * slowness());
}

TOOL_TEST(Cpudist, TimesOffTheCpu) {
  require_tool("cpudist");
  Workload workload("sleeper", {"--sleeps", "50", "--ms", "4"}, kLinger);
  Tracer tracer("cpudist", {"--json", "--strict", "-O", "-m", "-e", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  EXPECT_GE(line["count"].u64(), truth["sleeps"].u64());
  EXPECT_LE(line["count"].u64(), truth["voluntary"].u64() + truth["nonvoluntary"].u64() + 10);
  // What the workload measures includes the way into the kernel and back.
  EXPECT_GE(line["total_ns"].u64(), 50u * 4'000'000);
  check_histogram(line, 1'000'000);
}

TOOL_TEST(Cpudist, IdleTasksOnlyWhenAsked) {
  require_tool("cpudist");
  auto named = [](const Strings& options) {
    auto result = run(options);
    EXPECT_EQ(result.status, 0) << result.err;
    return contains(result.out, "swapper/");
  };
  EXPECT_FALSE(named({tool_path("cpudist"), "-P", "0.3", "1"}));
  EXPECT_TRUE(named({tool_path("cpudist"), "-P", "-I", "0.3", "1"}));
}

TOOL_TEST(Cpudist, TextIsTheKnownHistogram) {
  require_tool("cpudist");
  auto result = run({tool_path("cpudist"), "-e", "0.3", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("     usecs               : count    distribution\n"),
            std::string::npos)
      << result.out;
  EXPECT_NE(result.out.find("avg = "), std::string::npos) << result.out;
  result = run({tool_path("cpudist"), "--switch-type", "x"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("voluntary or preempted"), std::string::npos) << result.err;
}

const DeclareTests kCpudist{{
    .name = "cpudist",
    .reports = {{ReportKind::aggregate}},
    .events = {"-L", "runqueue --threads 2 --ms 60"},
    .stress = {.workload = "runqueue --threads 3 --ms {n}",
               .events = 600,
               .options = "-L",
               .shown = "count",
               .truth =
                   [](stress::Load& load) {
                     return load.grown(
                         [](const stress::Rest::Thread& t) { return t.voluntary + t.preempted; });
                   },
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "-P 10"}, {.arguments = "-O -P 10", .of = "offcpu"}},
}};

}  // namespace
}  // namespace coretap::tooltest
