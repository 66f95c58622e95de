// pidpersec against the kernel's own count of forks in /proc/stat, and workloads that fork.
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t of(const Report& report, const char* key) { return report.sum(key); }

std::uint64_t all_forks() {
  std::istringstream lines(slurp("/proc/stat"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("processes ")) return std::stoull(line.substr(10));
  throw std::runtime_error("no count of forks in /proc/stat");
}

// The kernel counts a fork before it runs the tracepoint.
TOOL_TEST(Pidpersec, AllForksOfTheMachine) {
  require_tool("pidpersec");
  Workload workload("forker", {"--children", "50", "--depth", "3", "--ms", "1"});
  auto before = all_forks();
  Tracer tracer("pidpersec", {"--json", "--strict", "0.1"});
  auto since = all_forks();
  workload.release();
  auto truth = workload.truth();
  auto least = all_forks() - since;
  auto report = tracer.stop();
  auto all = of(report, "processes") + of(report, "threads");
  ASSERT_EQ(truth["forks"].u64(), 150u);
  EXPECT_GE(of(report, "processes"), 150u);
  EXPECT_GE(all, least);
  EXPECT_LE(all, all_forks() - before);
}

TOOL_TEST(Pidpersec, ProcessesAndThreadsOfOne) {
  require_tool("pidpersec");
  Workload forker("forker", {"--children", "30", "--ms", "1"});
  Tracer forks("pidpersec", {"--json", "--strict", "-p", forker.id(), "1000"});
  Tracer nobody("pidpersec", {"--json", "--strict", "-u", "54321"});
  forker.release();
  forker.truth();
  auto report = forks.stop();
  EXPECT_EQ(of(report, "processes"), 30u);
  EXPECT_EQ(of(report, "threads"), 0u);
  auto none = nobody.stop();
  EXPECT_EQ(of(none, "processes") + of(none, "threads"), 0u);

  Tracer threads("pidpersec",
                 {"--json", "--", workload_path("runqueue"), "--threads", "7", "--ms", "20"},
                 {.attached = false});
  ASSERT_EQ(threads.process().wait(), 0) << threads.process().err();
  report = parse_report(threads.process().out(), threads.process().err());
  EXPECT_EQ(of(report, "threads"), 7u);
  EXPECT_EQ(of(report, "processes"), 0u);
}

TOOL_TEST(Pidpersec, RateIsOfItsInterval) {
  require_tool("pidpersec");
  auto result = run({tool_path("pidpersec"), "--json", "0.5", "3", "-u", "54321"});
  ASSERT_EQ(result.status, 0) << result.err;
  for (auto& line : parse_report(result.out, result.err).body)
    EXPECT_EQ(line["tasks_per_second"].real(), 0.0);
  Workload workload("forker", {"--children", "40", "--ms", "1"});
  Tracer tracer("pidpersec", {"--json", "-p", workload.id(), "0.5"});
  workload.release();
  workload.truth();
  double most = 0;
  for (auto& line : tracer.stop().body) {
    auto all = static_cast<double>(line["processes"].u64() + line["threads"].u64());
    auto rate = line["tasks_per_second"].real();
    EXPECT_EQ(rate > 0, all > 0);
    // An interval is half a second or more, but for the last one.
    most = std::max(most, rate);
  }
  EXPECT_GT(most, 0);
}

TOOL_TEST(Pidpersec, TextAndCsv) {
  require_tool("pidpersec");
  auto text = run({tool_path("pidpersec"), "0.1", "2"});
  ASSERT_EQ(text.status, 0) << text.err;
  std::istringstream lines(text.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME", "PIDs/sec", "PROCESSES", "THREADS"}));
  static const std::regex row(R"(\d\d:\d\d:\d\d +\d+(\.\d+)? +\d+ +\d+)");
  int rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, 2);
  auto csv = run({tool_path("pidpersec"), "--csv", "0.1", "1"});
  ASSERT_EQ(csv.status, 0) << csv.err;
  EXPECT_TRUE(csv.out.starts_with("time,tasks_per_second,processes,threads\n")) << csv.out;
}

const DeclareTests kPidpersec{{
    .name = "pidpersec",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "forker --children 3 --ms 5"},
    .stress = {.workload = "runner --count {n}",
               .events = 600,
               .shown = "processes+threads",
               .truth = "storm+execs+fails",
               .by_cgroup = true},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
