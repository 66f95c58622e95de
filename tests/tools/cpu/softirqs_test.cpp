// softirqs against /proc/softirqs, and against the kernel's own trace of one process.
#include <map>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

/// How often each softirq ran so far, on all CPUs; "net_rx".
Counts ran() {
  Counts all;
  std::istringstream file(slurp("/proc/softirqs"));
  std::string line;
  std::getline(file, line);
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name.empty()) continue;
    name.pop_back();
    for (char& c : name) c = static_cast<char>(std::tolower(c));
    for (std::uint64_t n; words >> n;) all[name] += n;
  }
  return all;
}

Counts counted(const Report& report) {
  Counts all;
  for (auto& line : report.body) all[line["name"].str()] += line["count"].u64();
  return all;
}

/// Of each softirq no more than ran while the tool was started and ended, and no less than ran
/// while it certainly traced.
void as_the_kernel(const Strings& more) {
  require_tool("softirqs");
  Counts at[4];
  at[0] = ran();
  Strings options{"--json", "--strict"};
  options.insert(options.end(), more.begin(), more.end());
  Tracer tracer("softirqs", options);
  at[1] = ran();
  Workload workload("tcp", {});
  workload.release();
  workload.truth();
  at[2] = ran();
  auto report = tracer.stop();
  at[3] = ran();
  auto counts = counted(report);
  EXPECT_GE(counts.size(), 3u);
  EXPECT_GE(counts["net_rx"], 10u) << "packets over the loopback device";
  for (auto& [name, n] : at[2]) {
    EXPECT_GE(counts[name], n - at[1].at(name)) << name;
    EXPECT_LE(counts[name], at[3].at(name) - at[0].at(name)) << name;
  }
}

class SoftirqsCounts : public testing::TestWithParam<Strings> {};

TEST_P(SoftirqsCounts, AsTheKernel){TOOL_TEST_BODY(as_the_kernel(GetParam()))}

INSTANTIATE_TEST_SUITE_P(Ways, SoftirqsCounts,
                         testing::Values(Strings{}, Strings{"--events"}, Strings{"--per-cpu"},
                                         Strings{"-d"}, Strings{"--include-irqs"}));

// Those that interrupted one process, by the kernel's trace of their ends.
TOOL_TEST(Softirqs, OfOneProcess) {
  require_tool("softirqs");
  Workload workload("sleeper", {"--sleeps", "1", "--spin", "500"}, {.linger = true});
  Trace trace("irq/softirq_exit");
  Tracer tracer("softirqs", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  trace.stop();
  Counts truth;
  for (auto& line : trace.lines(workload.pid())) {
    auto at = line.find("action=");
    ASSERT_NE(at, std::string::npos) << line;
    std::string name;
    for (auto c : line.substr(at + 7))
      if (std::isalpha(c) || c == '_') name += static_cast<char>(std::tolower(c));
    truth[name]++;
  }
  if (truth.empty()) throw Skip("no softirq interrupted the process");
  EXPECT_EQ(counted(report), truth);
}

// The same softirqs with nested interrupts are no shorter.
TOOL_TEST(Softirqs, InterruptsAreSubtracted) {
  require_tool("softirqs");
  Workload workload("sleeper", {"--sleeps", "1", "--spin", "500"}, {.linger = true});
  Tracer with("softirqs", {"--json", "--include-irqs", "-p", workload.id()});
  Tracer without("softirqs", {"--json", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto gross = with.stop(), net = without.stop();
  ASSERT_EQ(counted(gross), counted(net));
  for (auto& line : net.body) {
    auto count = line["count"].u64(), total = line["total_ns"].u64(), most = line["max_ns"].u64();
    EXPECT_LE(most, total);
    EXPECT_GE(most * count, total);
    EXPECT_GT(most, 0u);
  }
  // One tool's programs are in the other's times; what they add differs by their order.
  auto slack = net.sum("count") * 20'000;
  EXPECT_LE(net.sum("total_ns") + net.sum("irq_ns"), gross.sum("total_ns") + slack);
}

TOOL_TEST(Softirqs, TextIsTheKnownTable) {
  require_tool("softirqs");
  auto result = run({tool_path("softirqs"), "0.3", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("SOFTIRQ          TOTAL_usecs MAX_usecs\n"), std::string::npos)
      << result.out;
  result = run({tool_path("softirqs"), "-N", "-C", "--per-cpu", "0.3", "1"});
  EXPECT_NE(result.out.find("SOFTIRQ          TOTAL_nsecs TOTAL_count MAX_nsecs CPU\n"),
            std::string::npos)
      << result.out;
  result = run({tool_path("softirqs"), "--events", "0.3", "1"});
  EXPECT_NE(result.out.find("SOFTIRQ          TOTAL_count\n"), std::string::npos) << result.out;
  result = run({tool_path("softirqs"), "-d", "0.3", "1"});
  EXPECT_NE(result.out.find("softirq = "), std::string::npos) << result.out;
  for (auto* bad : {"-d", "-N", "--include-irqs"})
    EXPECT_EQ(run({tool_path("softirqs"), "--events", bad}).status, 2) << bad;
}

const DeclareTests declared{{
    .name = "softirqs",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, {"sleeper", "--sleeps", "1", "--spin", "300"}},
    .nothing_when_idle = true,
    .stress = {.workload = "sleeper",
               .arguments = [](std::uint64_t n) -> Strings {
                 return {"--sleeps", "1", "--spin", std::to_string(n)};
               },
               .events = 1000,
               .shown = stress::counted,
               .tiny = {"--max-keys", "1"},
               .kernel_event = "irq/softirq_exit"},
    .long_run = {{.arguments = {"--per-cpu", "10"}}},
}};

}  // namespace
}  // namespace coretap::tooltest
