// --affinity of runqlat and runqslower, against the idle time of CPUs in /proc/stat. A busy process
// limited to a tenth of a CPU's time waits most of the time, and meanwhile its CPU is idle unless
// other tasks use it.
#include "harness.hpp"
#include "quota.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

constexpr auto kPeriod = 100ms;  // of the quota
constexpr auto kTick = 20ms;     // /proc/stat counts in ticks

/// By CPU, including I/O wait.
std::vector<std::chrono::nanoseconds> idle_times() {
  std::vector<std::chrono::nanoseconds> all;
  std::istringstream lines(slurp("/proc/stat"));
  for (std::string line; std::getline(lines, line);) {
    auto fields = words(line);
    if (!line.starts_with("cpu") || fields[0] == "cpu") continue;
    auto ticks = std::stoull(fields[4]) + std::stoull(fields[5]);
    all.emplace_back(ticks * (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK))));
  }
  return all;
}

std::chrono::nanoseconds part(const Report& report, std::string_view name) {
  std::uint64_t sum = 0;
  for (auto& line : report.body)
    if (line["part"].str() == name) sum += line["total_ns"].u64();
  return std::chrono::nanoseconds(sum);
}

/// Kernels without locks in tracing programs (5.10) have no --affinity.
void require_affinity(const std::string& tool) {
  require_tool(tool);
  auto plan = run({tool_path(tool), "--affinity", "--explain"});
  if (plan.status == 3) throw Skip(plan.err);
}

struct Measured {
  Report report;
  std::vector<std::chrono::nanoseconds> least, most;  // idle time meanwhile, by CPU
  std::chrono::nanoseconds throttled;
};

/// `cpu`: the only one that it may use; -1: all.
Measured measure(const std::string& tool, Strings options, int cpu) {
  Quota quota;
  Process busy({.argv = {"/bin/sh", "-c", "while :; do :; done"}});
  quota.add(busy.pid());
  if (cpu >= 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<std::size_t>(cpu), &one);
    EXPECT_EQ(::sched_setaffinity(busy.pid(), sizeof one, &one), 0);
  }
  options.insert(options.end(), {"--json", "--affinity", "-p", std::to_string(busy.pid())});
  auto before = idle_times();
  Tracer tracer(tool, options);
  auto from = idle_times();
  auto stat = quota.stat();
  ::usleep(1'500'000);
  auto throttled = stat.growth("throttled_time") * 1ns + stat.growth("throttled_usec") * 1us;
  auto until = idle_times();
  Measured m{.report = tracer.stop(), .throttled = throttled};
  auto after = idle_times();
  for (std::size_t i = 0; i < from.size(); i++) {
    m.least.push_back(until[i] - from[i]);
    m.most.push_back(after[i] - before[i]);
  }
  return m;
}

TOOL_TEST(Affinity, WaitsForOneCpu) {
  require_affinity("runqlat");
  auto m = measure("runqlat", {}, 0);
  auto idle = part(m.report, "cpu_idle") + part(m.report, "cache_warm"),
       busy = part(m.report, "cpus_busy"), quota = part(m.report, "quota");
  // The report excludes waits in progress at the start and at the end.
  EXPECT_GE(idle + quota, m.least[0] - 3 * kPeriod - kTick);
  EXPECT_GE(quota, m.throttled - 3 * kPeriod);
  EXPECT_LE(quota, m.throttled + 3 * kPeriod);
  EXPECT_LE(idle, kPeriod);
  EXPECT_GT(quota + busy, 500ms) << "it does not wait for its quota";
  EXPECT_LE(part(m.report, "unknown"), kPeriod) << "of a wait that began before tracing";
}

TOOL_TEST(Affinity, WaitsForAnyCpu) {
  require_affinity("runqlat");
  auto m = measure("runqlat", {}, -1);
  auto idle = part(m.report, "cpu_idle") + part(m.report, "cache_warm");
  std::chrono::nanoseconds all{};
  for (auto time : m.most) all += time;
  // At least the idle time of each CPU, and at most the sum over all.
  EXPECT_GE(idle + part(m.report, "quota"),
            *std::max_element(m.least.begin(), m.least.end()) - 3 * kPeriod - kTick);
  EXPECT_LE(idle, all + kTick);
  EXPECT_LE(part(m.report, "unknown"), kPeriod) << "of a wait that began before tracing";
}

TOOL_TEST(Affinity, EachLongWait) {
  require_affinity("runqslower");
  auto m = measure("runqslower", {"20000"}, 0);
  std::chrono::nanoseconds idle{}, quota{};
  EXPECT_GT(m.report.body.size(), 3u);
  for (auto& wait : m.report.body) {
    ASSERT_FALSE(wait["idle_ns"].is_null());
    EXPECT_LE(wait["idle_ns"].u64() + wait["quota_ns"].u64(), wait["latency_ns"].u64());
    EXPECT_LE(wait["warm_ns"].u64(), wait["idle_ns"].u64());
    idle += std::chrono::nanoseconds(wait["idle_ns"].u64());
    quota += std::chrono::nanoseconds(wait["quota_ns"].u64());
  }
  EXPECT_LE(idle, m.most[0] + kTick);
  EXPECT_GE(quota, m.throttled - 3 * kPeriod);
}

TOOL_TEST(Affinity, DelaysOfATask) {
  require_affinity("schedlat");
  auto m = measure("schedlat", {}, 0);
  auto all = [&](const char* key) { return std::chrono::nanoseconds(m.report.sum(key)); };
  auto idle = all("idle_ns"), quota = all("quota_ns");
  EXPECT_GE(quota, m.throttled - 3 * kPeriod);
  EXPECT_LE(quota, m.throttled + 3 * kPeriod);
  EXPECT_LE(idle, kPeriod);
  EXPECT_LE(all("unknown_ns"), kPeriod) << "of a wait that began before tracing";
  EXPECT_LE(idle + quota + all("unknown_ns"), all("wait_ns"));
  EXPECT_LE(all("warm_ns"), idle);
}

// Three threads begin on one CPU and may then use all: while another one is idle, they wait for
// the load balancer. The scheduler's own setting decides whether it takes their caches for warm.
TOOL_TEST(Affinity, CacheWarm) {
  require_affinity("runqlat");
  if (!in_guest()) throw Skip("changes the scheduler's settings: a guest's only");
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) throw Skip("there is one CPU");
  const std::string file = "/sys/kernel/debug/sched/migration_cost_ns";
  if (slurp(file).empty()) {
    run({"mount", "-t", "debugfs", "debugfs", "/sys/kernel/debug"});
    if (slurp(file).empty()) throw Skip("this kernel has no such setting");
  }
  for (bool warm : {false, true}) {
    SCOPED_TRACE(warm);
    Setting cost(file, warm ? "1000000000" : "0");
    Workload workload("runqueue", "--threads 3 --ms 200 --widen", kLinger);
    Tracer tracer("runqlat", {"--json", "--affinity", "-p", workload.id()});
    workload.release();
    workload.truth();
    auto report = tracer.stop();
    auto idle = part(report, "cpu_idle"), held = part(report, "cache_warm");
    if (warm) {
      EXPECT_GT(held, 1ms) << "none waited beside an idle CPU";
      EXPECT_LE(idle, held / 10);
    } else {
      EXPECT_EQ(held, 0ms);
    }
  }
}

// Three on one CPU keep it busy: none of them waits while it is idle.
TOOL_TEST(Affinity, BusyCpu) {
  require_affinity("runqlat");
  require_whole_cpus();
  Workload workload("runqueue", "--threads 3 --ms 300", kLinger);
  Tracer tracer("runqlat", {"--json", "--affinity", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto delay = std::chrono::nanoseconds(truth["run_delay_ns"].u64());
  EXPECT_GE(part(report, "cpus_busy"), delay * 95 / 100);
  EXPECT_LE(part(report, "cpu_idle") + part(report, "cache_warm"), delay / 20);
  EXPECT_LE(part(report, "unknown"), kPeriod) << "of a wait that began before tracing";
}

}  // namespace
}  // namespace coretap::tooltest
