// funcinterval against programs that make a known number of calls, at least a known time apart.
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <map>

#include <vector>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kSleepUs = 2000;
constexpr std::uint64_t kSleepsBetweenNs = 3 * kSleepUs * 1000;  // from one round to the next

std::string calls(const std::string& function) { return workload_path("calls") + ":" + function; }

using Histograms = std::map<std::string, Json>;

Histograms by_target(const Report& report) {
  Histograms all;
  for (auto& histogram : report.body) {
    check_histogram(histogram, 1);
    all.emplace(histogram["target"].str(), histogram);
  }
  return all;
}

struct Observed {
  Histograms histograms;
  Json truth;
  Report report;
};

Observed observe(const Strings& words, const std::string& workload_name = "calls",
                 const Strings& arguments = {"--calls", "20", "--sleep-us",
                                             std::to_string(kSleepUs)}) {
  require_tool("funcinterval");
  Workload workload(workload_name, arguments, kLinger);
  Strings options{"--json", "--strict", "-p", workload.id()};
  options.insert(options.end(), words.begin(), words.end());
  Tracer tracer("funcinterval", options);
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  return {by_target(report), truth, report};
}

std::uint64_t below(const Json& histogram, std::uint64_t ns) {
  std::uint64_t n = 0;
  for (auto& slot : histogram["histogram"].items())
    if (slot["below_ns"].u64() <= ns) n += slot["count"].u64();
  return n;
}

/// The first two that this process may use; fewer where there is one.
std::vector<int> two_cpus() {
  std::vector<int> all;
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed)) return all;
  for (int cpu = 0; cpu < CPU_SETSIZE && all.size() < 2; cpu++)
    if (CPU_ISSET(cpu, &allowed)) all.push_back(cpu);
  return all;
}

std::function<void()> on_cpu(int cpu) {
  return [cpu] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one)) _exit(1);
  };
}

/// Two processes that call at the same time, each on a CPU of its own.
struct Pair {
  std::uint64_t calls = 0, elapsed_ns = 0;
  Histograms histograms;
  Report report;
};

Pair observe_pair(const Strings& words, const std::string& rounds) {
  require_tool("funcinterval");
  auto cpus = two_cpus();
  if (cpus.size() < 2) throw Skip("one CPU");
  Workload first("probes", {"--calls", rounds}, {.linger = true, .in_child = on_cpu(cpus[0])});
  Workload second("probes", {"--calls", rounds}, {.linger = true, .in_child = on_cpu(cpus[1])});
  Strings options{"--json", "--strict", "-p", first.id() + "," + second.id()};
  options.insert(options.end(), words.begin(), words.end());
  Tracer tracer("funcinterval", options);
  Pair seen;
  auto start = std::chrono::steady_clock::now();
  first.release();
  second.release();
  seen.calls = first.truth()["calls"].u64() + second.truth()["calls"].u64();
  seen.elapsed_ns = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start)
          .count());
  seen.report = tracer.stop();
  seen.histograms = by_target(seen.report);
  return seen;
}

TOOL_TEST(Funcinterval, IntervalsLastAsLongAsTheSleepsInThem) {
  auto seen = observe({calls("timed_call"), calls("inner_call")});
  const auto n = seen.truth["calls"].u64();
  ASSERT_EQ(seen.histograms.size(), 2u) << "each target has its own";
  for (auto& [name, histogram] : seen.histograms) {
    EXPECT_EQ(histogram["count"].u64(), n - 1) << name;
    EXPECT_GE(histogram["total_ns"].u64(), (n - 1) * kSleepsBetweenNs) << name;
    EXPECT_EQ(below(histogram, kSleepsBetweenNs), 0u) << name;
  }
  EXPECT_EQ(seen.report.ledger["shown"].u64(), 2 * (n - 1));
}

TOOL_TEST(Funcinterval, LongIntervalsAmongShortOnes) {
  auto seen = observe({calls("recursive_call")});
  const auto n = seen.truth["calls"].u64();
  auto& histogram = seen.histograms["recursive_call"];
  EXPECT_EQ(histogram["count"].u64(), seen.truth["recursive"].u64() - 1);
  EXPECT_GE(histogram["total_ns"].u64(), (n - 1) * kSleepsBetweenNs);
  EXPECT_GE(histogram["count"].u64() - below(histogram, kSleepsBetweenNs), n - 1);
}

TOOL_TEST(Funcinterval, TracepointsAndProbes) {
  const auto probes = workload_path("probes");
  auto seen = observe({"t:syscalls:sys_*_getppid", "u:" + probes + ":plain",
                       probes + ":counted_even", "r:" + probes + ":counted_each"},
                      "probes", {"--calls", "1001"});
  const auto n = seen.truth["calls"].u64(), even = seen.truth["even"].u64();
  EXPECT_EQ(seen.histograms["syscalls:sys_enter_getppid"]["count"].u64(), n - 1);
  EXPECT_EQ(seen.histograms["syscalls:sys_exit_getppid"]["count"].u64(), n - 1);
  EXPECT_EQ(seen.histograms["coretap_test:plain"]["count"].u64(), n - 1);
  EXPECT_EQ(seen.histograms["counted_each"]["count"].u64(), n - 1);
  EXPECT_EQ(seen.histograms["counted_even"]["count"].u64(), even - 1);
}

TOOL_TEST(Funcinterval, KernelFunctions) {
  struct stat st {};
  if (::stat("/sys/bus/event_source/devices/kprobe/type", &st)) {
    require_tool("funcinterval");
    auto result = run({tool_path("funcinterval"), "-d", "0.1", "vfs_read"});
    EXPECT_EQ(result.status, 3);
    EXPECT_TRUE(contains(result.err, "CONFIG_KPROBES")) << result.err;
    return;
  }
  auto seen = observe({"hrtimer_nanosleep", "r::do_nanosleep"});
  const auto n = 3 * seen.truth["calls"].u64();
  ASSERT_EQ(seen.histograms.size(), 2u);
  for (auto& [name, histogram] : seen.histograms) {
    EXPECT_EQ(histogram["count"].u64(), n - 1) << name;
    EXPECT_EQ(below(histogram, kSleepUs * 1000), 0u) << name;
  }
}

// Intervals of all CPUs together are parts of the time that has passed: none counts twice.
TOOL_TEST(Funcinterval, CallsOfTwoCpusShareTheTime) {
  auto seen = observe_pair({"t:syscalls:sys_enter_getppid"}, "200000");
  auto& histogram = seen.histograms["syscalls:sys_enter_getppid"];
  EXPECT_EQ(histogram["count"].u64(), seen.calls - 1);
  if (seen.report.header["limits"].strings().empty())
    EXPECT_LE(histogram["total_ns"].u64(), seen.elapsed_ns);
  else
    EXPECT_TRUE(contains(seen.report.header["limits"].strings()[0], "no atomic exchange"));
}

TOOL_TEST(Funcinterval, PerThreadAndPerCpu) {
  for (auto& option : {"--per-thread", "--per-cpu"}) {
    auto seen = observe_pair(
        {option, "t:syscalls:sys_enter_getppid", "t:syscalls:sys_exit_getppid"}, "5000");
    ASSERT_EQ(seen.histograms.size(), 2u) << option;
    for (auto& [name, histogram] : seen.histograms) {
      EXPECT_EQ(histogram["count"].u64(), seen.calls - 2) << option << ' ' << name;
      EXPECT_LE(histogram["total_ns"].u64(), 2 * seen.elapsed_ns) << option << ' ' << name;
    }
    EXPECT_EQ(seen.report.header["limits"].strings(), Strings{}) << option;
  }
}

// What is filtered does not end the intervals of what is not.
TOOL_TEST(Funcinterval, OfOneProcess) {
  require_tool("funcinterval");
  Workload other("calls", {"--calls", "50", "--sleep-us", "500"}, kLinger);
  other.release();
  auto seen = observe({"sys_getppid"});
  other.truth();
  const auto n = seen.truth["calls"].u64();
  ASSERT_EQ(seen.histograms.size(), 1u);
  auto& histogram = seen.histograms.begin()->second;
  EXPECT_EQ(histogram["count"].u64(), n - 1);
  EXPECT_EQ(below(histogram, kSleepsBetweenNs), 0u);
}

TOOL_TEST(Funcinterval, EachReportHasItsOwn) {
  require_tool("funcinterval");
  Workload workload("calls", {"--calls", "100", "--sleep-us", "5000"}, kLinger);
  Tracer tracer("funcinterval",
                {"--json", "--strict", "-i", "0.3", "-p", workload.id(), calls("timed_call")});
  workload.release();
  const auto n = workload.truth()["calls"].u64();
  auto report = tracer.stop();
  EXPECT_GE(report.body.size(), 2u);
  EXPECT_EQ(report.sum("count"), n - 1);
}

TOOL_TEST(Funcinterval, TextIsAsBccHasIt) {
  require_tool("funcinterval");
  Workload workload("calls", {"--calls", "4"}, kLinger);
  Tracer tracer("funcinterval", {"-u", "-T", "-p", workload.id(), calls("timed_call")});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "Function = timed_call")) << text;
  EXPECT_TRUE(contains(text, "     usecs               : count    distribution\n")) << text;
  EXPECT_TRUE(contains(text, ", count: 3\n")) << text;
}

TOOL_TEST(Funcinterval, SaysWhatIsWrong) {
  require_tool("funcinterval");
  struct Case {
    Strings words;
    std::string says;
  };
  for (auto& c : std::vector<Case>{{{"--per-thread", "t:syscalls:sys_enter_*"}, "room for 64"},
                                   {{"--per-thread", "--per-cpu"}, "--per-cpu"},
                                   {{"-c", "9999"}, "CPU"},
                                   {{"t:sched"}, "category and a name"},
                                   {{calls("timed_cal")}, "did you mean 'timed_call'"}}) {
    Strings words{tool_path("funcinterval"), "-d", "0.1"};
    words.insert(words.end(), c.words.begin(), c.words.end());
    auto result = run(words);
    SCOPED_TRACE(c.words.back() + ": " + result.err);
    EXPECT_EQ(result.status, 2);
    EXPECT_TRUE(contains(result.err, c.says)) << "not: " << c.says;
    EXPECT_TRUE(result.out.empty());
  }
}

const DeclareTests kFuncinterval{{
    .name = "funcinterval",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "probes --calls 20"},
    .nothing_when_idle = true,
    .stress = {.workload = "probes --calls {n}",
               .events = 500000,
               .options = "--per-thread t:syscalls:sys_enter_getppid",
               .shown = "count",
               // The first call of a thread ends no interval.
               .truth = [](stress::Load& load) { return load.truth("calls") - 1; }},
    .long_run = {{.arguments = "-i 10 t:sched:* t:syscalls:*"}},
}};

}  // namespace
}  // namespace coretap::tooltest
