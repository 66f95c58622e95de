// funcinterval against programs that make a known number of calls, at least a known time apart.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kSleepUs = 2000;
constexpr std::uint64_t kSleepsBetweenNs = 3 * kSleepUs * 1000;  // from one round to the next

struct Intervals : Observed {
  std::map<std::string, Json> histograms = by_target(report());
  std::uint64_t calls = truth["calls"].u64();
};

Intervals intervals(const Strings& words,
                    const std::string& workload = fmt::format("calls --calls 20 --sleep-us {}",
                                                              kSleepUs)) {
  return {observe("funcinterval --json --strict -p {pid}" + words, workload)};
}

std::uint64_t below(const Json& histogram, std::uint64_t ns) {
  std::uint64_t n = 0;
  for (auto& slot : histogram["histogram"].items())
    if (slot["below_ns"].u64() <= ns) n += slot["count"].u64();
  return n;
}

/// The first two CPUs that this process may use.
std::vector<int> two_cpus() {
  std::vector<int> all;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) throw Skip("no CPUs are known");
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &allowed)) all.push_back(cpu);
  if (all.size() < 2) throw Skip("one CPU");
  return all;
}

/// Two processes that call at the same time, each on a separate CPU.
struct Pair {
  std::uint64_t calls = 0, elapsed_ns = 0;
  Report report;
};

Pair of_pair(const std::string& words, const std::string& rounds) {
  require_tool("funcinterval");
  auto cpus = two_cpus();
  stress::Load first("probes", "--calls " + rounds, cpus[0]);
  stress::Load second("probes", "--calls " + rounds, cpus[1]);
  auto ids = first.workload().id() + "," + second.workload().id();
  Tracer tracer("funcinterval", "--json --strict -p " + ids + " " + words);
  auto start = std::chrono::steady_clock::now();
  first.release();
  second.release();
  auto calls = first.truth("calls") + second.truth("calls");
  std::chrono::nanoseconds elapsed = std::chrono::steady_clock::now() - start;
  return {calls, static_cast<std::uint64_t>(elapsed.count()), tracer.stop()};
}

TOOL_TEST(Funcinterval, IntervalsLastAsLongAsTheSleepsInThem) {
  auto seen = intervals({calls("timed_call"), calls("inner_call")});
  ASSERT_EQ(seen.histograms.size(), 2u) << "each target has its own";
  for (auto& [name, histogram] : seen.histograms) {
    EXPECT_EQ(histogram["count"].u64(), seen.calls - 1) << name;
    EXPECT_GE(histogram["total_ns"].u64(), (seen.calls - 1) * kSleepsBetweenNs) << name;
    EXPECT_EQ(below(histogram, kSleepsBetweenNs), 0u) << name;
  }
  EXPECT_EQ(seen.report().ledger["shown"].u64(), 2 * (seen.calls - 1));
}

TOOL_TEST(Funcinterval, LongIntervalsAmongShortOnes) {
  auto seen = intervals(calls("recursive_call"));
  auto& histogram = seen.histograms.at("recursive_call");
  EXPECT_EQ(histogram["count"].u64(), seen.truth["recursive"].u64() - 1);
  EXPECT_GE(histogram["total_ns"].u64(), (seen.calls - 1) * kSleepsBetweenNs);
  EXPECT_GE(histogram["count"].u64() - below(histogram, kSleepsBetweenNs), seen.calls - 1);
}

// Intervals of all CPUs together add up to the elapsed time: none counts twice.
TOOL_TEST(Funcinterval, CallsOfTwoCpusShareTheTime) {
  auto seen = of_pair("t:syscalls:sys_enter_getppid", "200000");
  auto histogram = by_target(seen.report).at("syscalls:sys_enter_getppid");
  EXPECT_EQ(histogram["count"].u64(), seen.calls - 1);
  auto limits = seen.report.header["limits"].strings();
  if (limits.empty())
    EXPECT_LE(histogram["total_ns"].u64(), seen.elapsed_ns);
  else
    EXPECT_TRUE(contains(limits[0], "no atomic exchange"));
}

TOOL_TEST(Funcinterval, PerThreadAndPerCpu) {
  for (std::string option : {"--per-thread", "--per-cpu"}) {
    SCOPED_TRACE(option);
    auto seen =
        of_pair(option + " t:syscalls:sys_enter_getppid t:syscalls:sys_exit_getppid", "5000");
    auto histograms = by_target(seen.report);
    ASSERT_EQ(histograms.size(), 2u);
    for (auto& [name, histogram] : histograms) {
      EXPECT_EQ(histogram["count"].u64(), seen.calls - 2) << name;
      EXPECT_LE(histogram["total_ns"].u64(), 2 * seen.elapsed_ns) << name;
    }
    EXPECT_EQ(seen.report.header["limits"].strings(), Strings{});
  }
}

// Excluded calls do not end intervals.
TOOL_TEST(Funcinterval, OfOneProcess) {
  Scene other("calls --calls 50 --sleep-us 500");
  other.workload().release();
  auto seen = intervals("sys_getppid");
  other.workload().truth();
  ASSERT_EQ(seen.histograms.size(), 1u);
  auto& histogram = seen.histograms.begin()->second;
  EXPECT_EQ(histogram["count"].u64(), seen.calls - 1);
  EXPECT_EQ(below(histogram, kSleepsBetweenNs), 0u);
}

TOOL_TEST(Funcinterval, EachReportHasItsOwn) {
  auto seen = observe("funcinterval --json --strict -i 0.3 -p {pid} " + calls("timed_call"),
                      "calls --calls 100 --sleep-us 5000");
  EXPECT_GE(seen.report().body.size(), 2u);
  EXPECT_EQ(seen.report().sum("count"), seen.truth["calls"].u64() - 1);
}

TOOL_TEST(Funcinterval, SaysWhatIsWrong) {
  require_tool("funcinterval");
  expect_refusals("funcinterval", {{"--per-thread t:syscalls:sys_enter_*", "room for 64"},
                                   {"--per-thread --per-cpu", "--per-cpu"},
                                   {"-c 9999", "CPU"}});
}

TESTS_OF(funcinterval, .events = {{}, "probes --calls 20"}, .nothing_when_idle = true,
         // The first call of a thread ends no interval.
         .stress = total_row(
             "probes --calls {n}", 500000, "count",
             [](stress::Load& load) { return load.truth("calls") - 1; },
             "--per-thread t:syscalls:sys_enter_getppid"),
         .long_run = {{.arguments = "-i 10 t:sched:* t:syscalls:*"}});

}  // namespace
}  // namespace coretap::tooltest
