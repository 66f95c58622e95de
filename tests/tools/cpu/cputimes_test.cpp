// cputimes against /proc/stat, read here, and against a task that spins on one CPU.
#include <fstream>
#include <sstream>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Ticks of a CPU in user mode (with nice) and in all modes; "cpu": all CPUs.
struct Ticks {
  double user = 0, all = 0;
};
Ticks ticks_of(const std::string& cpu) {
  std::ifstream file("/proc/stat");
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    if (!(words >> name) || name != cpu) continue;
    Ticks ticks;
    double value = 0;
    for (int i = 0; i < 8 && words >> value; i++) {
      ticks.all += value;
      if (i < 2) ticks.user += value;
    }
    return ticks;
  }
  throw std::runtime_error("/proc/stat has no " + cpu);
}

constexpr const char* kParts[] = {
    "user_ratio",    "nice_ratio",  "system_ratio", "iowait_ratio",     "irq_ratio",
    "softirq_ratio", "steal_ratio", "guest_ratio",  "guest_nice_ratio", "idle_ratio"};

TOOL_TEST(Cputimes, SpinningCpu) {
  Workload spins(Workload::of({"load", "--spinning", "1", "--ms", "60000"}, {.in_child = [] {
                                cpu_set_t first;
                                CPU_ZERO(&first);
                                CPU_SET(0, &first);
                                sched_setaffinity(0, sizeof first, &first);
                              }}));
  auto before = ticks_of("cpu0");
  auto report = report_of("cputimes --json 1 1");
  auto after = ticks_of("cpu0");
  auto row = line_with(report.body, {{"cpu", 0}});
  auto user = row["user_ratio"].real() + row["nice_ratio"].real() + row["guest_ratio"].real();
  auto truth = (after.user - before.user) / (after.all - before.all);
  expect_between(user, truth - 0.15, truth + 0.15);
  for (auto& line : report.body) {
    double all = 0;
    for (auto* part : kParts) all += line[part].real();
    expect_between(all, 0.999, 1.001);
  }
  EXPECT_EQ(lines_with(report.body, {{"cpu", nullptr}}).size(), 1u);
}

TOOL_TEST(Cputimes, Selections) {
  auto one = report_of("cputimes --json -C 0 0.2 2");
  EXPECT_EQ(lines_with(one.body, {{"cpu", 0}}).size(), 2u);
  EXPECT_EQ(one.body.size(), 2u);
  auto all = report_of("cputimes --json -s 0.2 2");
  EXPECT_EQ(lines_with(all.body, {{"cpu", nullptr}}).size(), 2u);
  EXPECT_EQ(all.body.size(), 2u);
  auto text = output_of("cputimes 0.2 1");
  expect_contains(text, {"%usr", "%idle", "\nall ", "\n0 "});
  expect_refused({"cputimes", "-C", "0", "-s"}, {"together"});
  expect_refused({"cputimes", "-C", "99999"}, {"no CPU"});
}

TESTS_OF(cputimes, .reports = {{ReportKind::snapshot}},
         .events = {.options = "0.1", .command = "load --ms 300"},
         .long_run = {{.arguments = "1"}});

}  // namespace
}  // namespace coretap::tooltest
