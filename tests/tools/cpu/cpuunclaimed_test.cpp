// cpuunclaimed against the kernel's run delays, and /proc/stat.
#include <sched.h>
#include <unistd.h>

#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Of all CPUs, in seconds.
struct Machine {
  double idle = 0;
  double run_delay = 0;  ///< 0: this kernel has no such sums
};

Machine machine() {
  Machine m;
  std::istringstream stat(slurp("/proc/stat"));
  std::string word;
  stat >> word;
  double ticks = 0;
  for (int i = 0; i < 5 && stat >> ticks; i++)
    if (i >= 3) m.idle += ticks / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::istringstream queues(slurp("/proc/schedstat"));
  for (std::string line; std::getline(queues, line);) {
    std::istringstream words(line);
    words >> word;
    if (!word.starts_with("cpu")) continue;
    double n = 0;
    for (int i = 0; i < 8 && words >> n; i++)
      if (i == 7) m.run_delay += n / 1e9;
  }
  return m;
}

double seconds(const Json& line, const char* key) {
  return static_cast<double>(line[key].u64()) / 1e9;
}

void expect_consistent(const Json& line) {
  auto cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  auto all = cpus * seconds(line, "span_ns");
  EXPECT_NEAR(line["busy_ratio"].real(), 1 - seconds(line, "idle_ns") / all, 0.01);
  EXPECT_NEAR(line["unclaimed_ratio"].real(), seconds(line, "unclaimed_ns") / all, 0.01);
  EXPECT_LE(seconds(line, "unclaimed_ns"), seconds(line, "idle_ns"));
}

// Tasks wait for one CPU; the other ones, where they are idle, must not serve them.
TOOL_TEST(Cpuunclaimed, WaitsForOneCpu) {
  require_tool("cpuunclaimed");
  Workload workload("runqueue", {"--threads", "3", "--ms", "1500"}, kLinger);
  Tracer tracer("cpuunclaimed", {"--json", "--strict", "600"});
  auto before = machine();
  workload.release();
  auto truth = workload.truth();
  auto after = machine();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  expect_consistent(line);
  auto delay = after.run_delay - before.run_delay, idle = after.idle - before.idle;
  auto own = static_cast<double>(truth["run_delay_ns"].u64()) / 1e9;
  // The tool traced a little longer. The kernel adds a wait when it ends.
  if (after.run_delay > 0) {
    EXPECT_GE(seconds(line, "waiting_ns"), 0.97 * delay - 0.02);
    EXPECT_LE(seconds(line, "waiting_ns"), 1.05 * delay + 0.3 * slowness());
  }
  EXPECT_GE(seconds(line, "idle_ns"), 0.95 * idle - 0.05);
  EXPECT_LE(seconds(line, "idle_ns"), 1.05 * idle + 0.6 * slowness());
  EXPECT_GE(seconds(line, "waiting_ns"), own * 0.97);
  EXPECT_GE(line["waits"].u64(), truth["timeslices"].u64() * 9 / 10);
  // All the time that the workload takes, two of its threads wait and may not use other CPUs.
  auto took = static_cast<double>(truth["took_ns"].u64()) / 1e9;
  auto idle_meanwhile = idle - 0.1 * took;
  EXPECT_GE(seconds(line, "barred_ns") + seconds(line, "unclaimed_ns"), 0.9 * idle_meanwhile);
  EXPECT_GE(seconds(line, "barred_ns"), 0.8 * idle_meanwhile);
  EXPECT_LE(seconds(line, "unclaimed_ns"), seconds(line, "waiting_ns") - 0.9 * own);
}

/// Of one process: what it waits, and no more.
TOOL_TEST(Cpuunclaimed, OfOneProcess) {
  require_tool("cpuunclaimed");
  Workload workload("runqueue", {"--threads", "3", "--ms", "500"}, kLinger);
  Tracer tracer("cpuunclaimed", {"--json", "-p", workload.id(), "600"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  auto own = static_cast<double>(truth["run_delay_ns"].u64()) / 1e9;
  EXPECT_GE(seconds(line, "waiting_ns"), 0.97 * own);
  EXPECT_LE(seconds(line, "waiting_ns"), 1.05 * own + 0.1) << "its first thread waits too";
  EXPECT_LE(seconds(line, "unclaimed_ns"), 0.1 * own + 0.1) << "these may not use other CPUs";
}

/// On all kernels.
TOOL_TEST(Cpuunclaimed, Samples) {
  Workload workload("runqueue", {"--threads", "3", "--ms", "1500"}, kLinger);
  Tracer tracer("cpuunclaimed", {"--json", "--strict", "--sampled", "-F", "997", "600"});
  auto before = machine();
  workload.release();
  auto truth = workload.truth();
  auto after = machine();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  expect_consistent(line);
  EXPECT_TRUE(line["barred_ns"].is_null());
  EXPECT_TRUE(line["barred_ratio"].is_null());
  auto own = static_cast<double>(truth["run_delay_ns"].u64()) / 1e9;
  EXPECT_GE(seconds(line, "waiting_ns"), 0.85 * own);
  if (after.run_delay > 0) {
    EXPECT_LE(seconds(line, "waiting_ns"),
              1.15 * (after.run_delay - before.run_delay) + 0.3 * slowness());
  }
  // Two threads wait all the time: every other CPU that is idle counts.
  auto idle = after.idle - before.idle;
  EXPECT_GE(seconds(line, "unclaimed_ns"), 0.75 * idle - 0.1);
  EXPECT_LE(seconds(line, "unclaimed_ns"), 1.1 * idle + 0.3 * slowness());
}

TOOL_TEST(Cpuunclaimed, SamplesKnowNoTasks) {
  auto result = run({tool_path("cpuunclaimed"), "--sampled", "-p", "1"});
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "leave out --sampled")) << result.err;
}

const DeclareTests kCpuunclaimed{{
    .name = "cpuunclaimed",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "runqueue --threads 2 --ms 60"},
    .stress = {.workload = "runqueue --threads 3 --ms {n}",
               .events = 600,
               .shown = "waits",
               .truth =
                   [](stress::Load& load) {
                     return load.grown([](const stress::Rest::Thread& t) { return t.slices; });
                   },
               // The kernel's own count leaves out a task that is preempted as it goes to sleep.
               .slack = 1},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
