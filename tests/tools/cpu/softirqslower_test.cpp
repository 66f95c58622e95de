// softirqslower against the kernel's own trace of softirqs that interrupted one process.
#include <cctype>
#include <map>
#include <set>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

using Counts = std::map<std::string, std::uint64_t>;
const Strings kSpin{"--sleeps", "1", "--spin", "500"};

/// By name, of "softirq_exit: vec=9 [action=RCU]".
Counts traced(const Strings& lines) {
  Counts all;
  for (auto& line : lines) {
    std::string name;
    for (auto c : line.substr(line.find("action=") + 7))
      if (std::isalpha(c) || c == '_') name += static_cast<char>(std::tolower(c));
    all[name]++;
  }
  return all;
}

bool runs(const Json& line) { return line["stage"].str() == "softirq runtime"; }

/// Times from one event of a softirq to the next one, by CPU and softirq, where that interrupted
/// one process.
std::vector<std::uint64_t> times_of(const Trace& trace, pid_t task, const std::string& from,
                                    const std::string& to) {
  std::map<std::pair<int, std::string>, std::uint64_t> open;
  std::vector<std::uint64_t> all;
  for (auto& e : trace.events()) {
    auto& start = open[{e.cpu, e.value("vec")}];
    if (e.name == from && !start) start = e.ns;
    if (e.name != to) continue;
    if (start && e.task == task) all.push_back(e.ns - start);
    start = 0;
  }
  return all;
}

double mean(const std::vector<std::uint64_t>& all) {
  double sum = 0;
  for (auto n : all) sum += static_cast<double>(n);
  return sum / static_cast<double>(all.size());
}

// Both stages by the kernel's own clock; each tracer's programs are in the other's times.
TOOL_TEST(Softirqslower, TimesAsInTheTrace) {
  require_tool("softirqslower");
  Workload workload("sleeper", kSpin, kLinger);
  Tracer tracer("softirqslower", {"--json", "0", "-p", workload.id()});
  // Ends first: a start without its end would be taken for that of a later one.
  Trace trace(Strings{"irq/softirq_exit", "irq/softirq_entry", "irq/softirq_raise"});
  workload.release();
  workload.truth();
  trace.stop();
  auto report = tracer.stop();
  std::vector<std::uint64_t> waited, ran;
  for (auto& line : report.body) (runs(line) ? ran : waited).push_back(line["latency_ns"].u64());
  auto waits = times_of(trace, workload.pid(), "softirq_raise", "softirq_entry");
  auto executions = times_of(trace, workload.pid(), "softirq_entry", "softirq_exit");
  if (waits.size() < 10 || executions.size() < 10) throw Skip("too few softirqs");
  EXPECT_NEAR(mean(waited), mean(waits), 0.3 * mean(waits) + 3'000 * slowness());
  EXPECT_NEAR(mean(ran), mean(executions), 0.3 * mean(executions) + 3'000 * slowness());
}

TOOL_TEST(Softirqslower, EveryRun) {
  require_tool("softirqslower");
  Workload workload("sleeper", kSpin, kLinger);
  Trace trace("irq/softirq_exit");
  Tracer tracer("softirqslower", {"--json", "--strict", "0", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  trace.stop();
  auto truth = traced(trace.lines(workload.pid()));
  if (truth.empty()) throw Skip("no softirq interrupted the process");
  Counts ran;
  std::uint64_t waits = 0, all = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["comm"].str(), "sleeper");
    EXPECT_EQ(line["pid"].i64(), workload.pid());
    EXPECT_LT(line["latency_ns"].u64(), 10'000'000'000u);
    if (runs(line)) {
      ran[line["name"].str()]++;
      all++;
      continue;
    }
    EXPECT_EQ(line["stage"].str(), "irq(hard) to softirq");
    EXPECT_GT(line["latency_ns"].u64(), 0u);
    EXPECT_FALSE(line["raised_by_comm"].str().empty());
    waits++;
  }
  EXPECT_EQ(ran, truth);
  EXPECT_LE(waits, all);
  EXPECT_GE(waits, all / 2);
}

TOOL_TEST(Softirqslower, OnlyWhatIsSlow) {
  require_tool("softirqslower");
  Workload workload("sleeper", kSpin, kLinger);
  Trace trace("irq/softirq_exit");
  const Strings common{"--json", "--strict", "--stage", "run", "-p", workload.id()};
  auto with = [&](const char* least) {
    auto words = common;
    words.emplace_back(least);
    return std::make_unique<Tracer>("softirqslower", words);
  };
  auto some = with("3"), none = with("60000000");
  workload.release();
  workload.truth();
  auto slow = some->stop(), nothing = none->stop();
  trace.stop();
  auto truth = trace.lines(workload.pid()).size();
  if (!truth) throw Skip("no softirq interrupted the process");
  for (auto& line : slow.body) {
    EXPECT_GE(line["latency_ns"].u64(), 3'000u);
    EXPECT_TRUE(runs(line));
  }
  EXPECT_GE(slow.body.size() + slow.ledger["filtered"].u64(), truth);
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_GE(nothing.ledger["filtered"].u64(), truth);
}

TOOL_TEST(Softirqslower, TextHasTheKnownColumns) {
  require_tool("softirqslower");
  Workload workload("sleeper", kSpin, kLinger);
  Tracer tracer("softirqslower", {"0", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find("TIME         STAGE                SOFTIRQ       LAT(us)  CPU COMM\n"),
            std::string::npos)
      << text;
  for (auto* bad : {"-1", "x"})
    EXPECT_NE(run({tool_path("softirqslower"), "--", bad}).status, 0) << bad;
  auto result = run({tool_path("softirqslower"), "--stage", "x"});
  EXPECT_EQ(result.status, 2);
  EXPECT_NE(result.err.find("wait or run"), std::string::npos) << result.err;
}

const DeclareTests kSoftirqslower{{
    .name = "softirqslower",
    .events = {"0", "sleeper --sleeps 1 --spin 300"},
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 1000,
               .options = "--stage run 0",
               .tiny = "--ring-size 4096",
               .kernel_event = "irq/softirq_exit"},
    .long_run = {{.arguments = "1000"}},
}};

}  // namespace
}  // namespace coretap::tooltest
