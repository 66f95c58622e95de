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

// Each CPU keeps its rows at hand, but with --max-keys.
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
                                         Strings{"-d"}, Strings{"--include-irqs"},
                                         Strings{"--max-keys", "1000"}));

// Those that interrupted one process, by the kernel's trace of their ends.
TOOL_TEST(Softirqs, OfOneProcess) {
  require_tool("softirqs");
  Workload workload("sleeper", {"--sleeps", "1", "--spin", "500"}, kLinger);
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

/// Times of softirqs, with the interrupts that nest in them.
struct Times {
  double count = 0, gross_ns = 0, irq_ns = 0;
  double average() const { return gross_ns / count; }
  double share() const { return irq_ns / gross_ns; }
};

const Strings kInterrupts{"irq_vectors/local_timer",   "irq_vectors/reschedule",
                          "irq_vectors/call_function", "irq_vectors/call_function_single",
                          "irq_vectors/irq_work",      "irq/irq_handler"};

Strings events_of_interrupts() {
  Strings all{"irq/softirq_entry", "irq/softirq_exit"};
  for (auto& name : kInterrupts)
    for (auto* end : {"_entry", "_exit"}) all.push_back(name + end);
  return all;
}

Times traced(const Trace& trace) {
  struct Cpu {
    std::uint64_t softirq = 0, irq = 0;
    double irq_ns = 0;
  };
  std::map<int, Cpu> cpus;
  Times all;
  for (auto& e : trace.events()) {
    auto& cpu = cpus[e.cpu];
    if (e.name == "softirq_entry") {
      cpu = {e.ns, 0, 0};
    } else if (e.name == "softirq_exit") {
      if (!cpu.softirq) continue;
      all.count++;
      all.gross_ns += static_cast<double>(e.ns - cpu.softirq);
      all.irq_ns += cpu.irq_ns;
      cpu.softirq = 0;
    } else if (e.name.ends_with("_entry")) {
      cpu.irq = e.ns;
    } else if (cpu.softirq && cpu.irq) {
      cpu.irq_ns += static_cast<double>(e.ns - cpu.irq);
      cpu.irq = 0;
    }
  }
  return all;
}

// Packets are received while timers of sleeping threads expire: a part of the time is theirs.
TOOL_TEST(Softirqs, InterruptsAreSubtracted) {
  require_tool("softirqs");
  const Strings transfers{"--sessions", "40", "--server-bytes", "4000000"};
  Workload tcp("tcp", transfers),
      sleeper("sleeper", {"--threads", "8", "--sleeps", "400", "--ms", "1"});
  Tracer net("softirqs", {"--json"}), gross("softirqs", {"--json", "--include-irqs"});
  Trace trace(events_of_interrupts());
  tcp.release();
  sleeper.release();
  tcp.truth();
  trace.stop();
  auto without = net.stop(), with = gross.stop();
  auto truth = traced(trace);
  if (truth.irq_ns < 20'000) throw Skip("hardly an interrupt came while a softirq ran");
  Times shown{static_cast<double>(without.sum("count")),
              static_cast<double>(without.sum("total_ns") + without.sum("irq_ns")),
              static_cast<double>(without.sum("irq_ns"))};
  EXPECT_GT(shown.share(), 0.6 * truth.share());
  EXPECT_LT(shown.share(), 1.6 * truth.share());
  EXPECT_GT(shown.average(), 0.6 * truth.average());
  EXPECT_LT(shown.average(), 1.6 * truth.average());
  // What one of the tools leaves out is in the other's time.
  auto all = static_cast<double>(with.sum("total_ns")) / static_cast<double>(with.sum("count"));
  EXPECT_NEAR(all, shown.average(), 0.25 * all);
  for (auto& line : without.body) {
    auto count = line["count"].u64(), total = line["total_ns"].u64(), most = line["max_ns"].u64();
    EXPECT_LE(most, total);
    EXPECT_GE(most * count, total);
    EXPECT_GT(most, 0u);
  }
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

const DeclareTests kSoftirqs{{
    .name = "softirqs",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "sleeper --sleeps 1 --spin 300"},
    .nothing_when_idle = true,
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 1000,
               .shown = "count",
               .tiny = "--max-keys 1",
               .kernel_event = "irq/softirq_exit"},
    .long_run = {{.arguments = "--per-cpu 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
