// pidpersec against the count of forks in /proc/stat, and workloads that fork.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t tasks(const Report& report) {
  return report.sum("processes") + report.sum("threads");
}

std::uint64_t all_forks() {
  for (auto& line : lines(slurp("/proc/stat")))
    if (line.starts_with("processes ")) return std::stoull(line.substr(10));
  throw std::runtime_error("no count of forks in /proc/stat");
}

// The kernel counts a fork before it runs the tracepoint.
TOOL_TEST(Pidpersec, AllForksOfTheMachine) {
  Workload workload("forker", "--children 50 --depth 3 --ms 1");
  auto before = all_forks();
  Tracer tracer("pidpersec", "--json --strict 0.1");
  auto since = all_forks();
  workload.release();
  auto truth = workload.truth();
  auto least = all_forks() - since;
  auto report = tracer.stop();
  ASSERT_EQ(truth["forks"].u64(), 150u);
  EXPECT_GE(report.sum("processes"), 150u);
  EXPECT_GE(tasks(report), least);
  EXPECT_LE(tasks(report), all_forks() - before);
}

TOOL_TEST(Pidpersec, ProcessesAndThreadsOfOne) {
  auto seen =
      observe_all({"pidpersec --json --strict -p {pid} 1000", "pidpersec --json --strict -u 54321"},
                  "forker --children 30 --ms 1", {});
  EXPECT_EQ(seen.report().sum("processes"), 30u);
  EXPECT_EQ(seen.report().sum("threads"), 0u);
  EXPECT_EQ(tasks(seen.report(1)), 0u);

  auto report = report_of("pidpersec --json" + as_command("runqueue --threads 7 --ms 20"));
  EXPECT_EQ(report.sum("threads"), 7u);
  EXPECT_EQ(report.sum("processes"), 0u);
}

TOOL_TEST(Pidpersec, RateIsOfItsInterval) {
  for (auto& line : report_of("pidpersec --json 0.5 3 -u 54321").body)
    EXPECT_EQ(line["tasks_per_second"].real(), 0.0);
  auto report =
      observe("pidpersec --json -p {pid} 0.5", "forker --children 40 --ms 1", {}).report();
  double most = 0;
  for (auto& line : report.body) {
    auto rate = line["tasks_per_second"].real();
    EXPECT_EQ(rate > 0, line["processes"].u64() + line["threads"].u64() > 0);
    // Each interval except the last is half a second or more.
    most = std::max(most, rate);
  }
  EXPECT_GT(most, 0);
}

TOOL_TEST(Pidpersec, TextIsATable) {
  auto rows = lines(output_of("pidpersec 0.1 2"));
  ASSERT_EQ(rows.size(), 3u);
  static const std::regex row(R"(\d\d:\d\d:\d\d +\d+(\.\d+)? +\d+ +\d+)");
  for (int i : {1, 2}) EXPECT_TRUE(std::regex_match(rows[i], row)) << rows[i];
}

TESTS_OF(pidpersec, .events = {{}, "forker --children 3 --ms 5"},
         .stress = total_row("runner --count {n}", 600, "processes+threads", "storm+execs+fails")
                       .with_children());

}  // namespace
}  // namespace coretap::tooltest
