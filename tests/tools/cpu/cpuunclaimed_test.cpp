// cpuunclaimed against the kernel's run delays, and /proc/stat.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Times of all CPUs, in seconds.
struct Machine {
  double idle = 0;
  double run_delay = 0;  ///< 0: this kernel does not have it
};

Machine machine() {
  Machine m;
  auto all = words(slurp("/proc/stat"));
  for (int i : {4, 5}) m.idle += std::stod(all.at(i)) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  for (auto& line : lines(slurp("/proc/schedstat")))
    if (auto cpu = words(line); line.starts_with("cpu") && cpu.size() > 8)
      m.run_delay += std::stod(cpu[8]) / 1e9;
  return m;
}

double seconds(const Json& line, const char* key) { return line[key].real() / 1e9; }

/// The tool's output for tasks that wait for one CPU, and the machine's times meanwhile.
struct Scarce {
  Json line, truth;
  double idle, run_delay;
  double own;  ///< run delay of the workload
};
Scarce scarce(const Strings& options) {
  require_whole_cpus();
  Workload workload("runqueue", "--threads 3 --ms 1500", kLinger);
  Tracer tracer("cpuunclaimed", "--json 600" + options);
  auto before = machine();
  workload.release();
  auto truth = workload.truth();
  auto after = machine();
  return {line_with(tracer.stop().body, {}), truth, after.idle - before.idle,
          after.run_delay > 0 ? after.run_delay - before.run_delay : -1,
          seconds(truth, "run_delay_ns")};
}

void expect_consistent(const Json& line) {
  auto cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  auto all = cpus * seconds(line, "span_ns");
  EXPECT_NEAR(line["busy_ratio"].real(), 1 - seconds(line, "idle_ns") / all, 0.01);
  EXPECT_NEAR(line["unclaimed_ratio"].real(), seconds(line, "unclaimed_ns") / all, 0.01);
  EXPECT_LE(seconds(line, "unclaimed_ns"), seconds(line, "idle_ns"));
}

// The other CPUs may not run them, even if idle.
TOOL_TEST(Cpuunclaimed, WaitsForOneCpu) {
  auto [line, truth, idle, run_delay, own] = scarce("--strict");
  expect_consistent(line);
  // The tool traces slightly longer. The kernel adds a wait when it ends.
  if (run_delay >= 0)
    expect_between(seconds(line, "waiting_ns"), 0.97 * run_delay - 0.02,
                   1.05 * run_delay + 0.3 * slowness());
  expect_between(seconds(line, "idle_ns"), 0.95 * idle - 0.05, 1.05 * idle + 0.6 * slowness());
  EXPECT_GE(seconds(line, "waiting_ns"), own * 0.97);
  EXPECT_GE(line["waits"].u64(), truth["timeslices"].u64() * 9 / 10);
  // While the workload runs, two of its threads always wait and may not use other CPUs.
  auto idle_meanwhile = idle - 0.1 * seconds(truth, "took_ns");
  EXPECT_GE(seconds(line, "barred_ns") + seconds(line, "unclaimed_ns"), 0.9 * idle_meanwhile);
  EXPECT_GE(seconds(line, "barred_ns"), 0.8 * idle_meanwhile);
  EXPECT_LE(seconds(line, "unclaimed_ns"), seconds(line, "waiting_ns") - 0.9 * own);
}

/// The waits of one process only.
TOOL_TEST(Cpuunclaimed, OfOneProcess) {
  require_whole_cpus();
  auto seen = observe("cpuunclaimed --json -p {pid} 600", "runqueue --threads 3 --ms 500");
  auto line = line_with(seen.report().body, {});
  auto own = seconds(seen.truth, "run_delay_ns");
  // Its first thread waits, too. Its threads may not use other CPUs.
  expect_between(seconds(line, "waiting_ns"), 0.97 * own, 1.05 * own + 0.1);
  EXPECT_LE(seconds(line, "unclaimed_ns"), 0.1 * own + 0.1);
}

/// On all kernels.
TOOL_TEST(Cpuunclaimed, Samples) {
  auto [line, truth, idle, run_delay, own] = scarce("--strict --sampled -F 997");
  expect_consistent(line);
  expect_fields(line, {{"barred_ns", nullptr}, {"barred_ratio", nullptr}});
  EXPECT_GE(seconds(line, "waiting_ns"), 0.85 * own);
  if (run_delay >= 0) {
    EXPECT_LE(seconds(line, "waiting_ns"), 1.15 * run_delay + 0.3 * slowness());
  }
  // Two threads wait all the time: every other CPU that is idle counts.
  expect_between(seconds(line, "unclaimed_ns"), 0.75 * idle - 0.1, 1.1 * idle + 0.3 * slowness());
}

TESTS_OF(cpuunclaimed, .events = {{}, "runqueue --threads 2 --ms 60"}, .alone = true,
         // The kernel's count excludes a task that is preempted as it goes to sleep.
         .stress = total_row("runqueue --threads 3 --ms {n}", 600, "waits", slices).with_slack(1));

}  // namespace
}  // namespace coretap::tooltest
