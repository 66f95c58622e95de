// irqslower against the kernel's own trace of interrupts of one process.
#include <set>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kTimer[] = "236";  // LOCAL_TIMER_VECTOR of x86

struct Seen {
  Report report;
  std::size_t truth = 0;  ///< that interrupted the process
  double mean_ns = 0;     ///< of them
};

Seen of_a_process(Strings options) {
  require_tool("irqslower");
  Workload workload("sleeper", {"--sleeps", "1", "--spin", "500"}, kLinger);
  Trace trace(Strings{"irq_vectors/local_timer_entry", "irq_vectors/local_timer_exit"});
  options.insert(options.begin(), {"--json", "--strict", "-p", workload.id()});
  Tracer tracer("irqslower", options);
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  trace.stop();
  Seen seen{std::move(report)};
  std::uint64_t start = 0, sum = 0;
  for (auto& e : trace.events(workload.pid())) {
    if (e.name == "local_timer_entry") {
      start = e.ns;
    } else if (start) {
      seen.truth++;
      sum += e.ns - start;
    }
  }
  if (!seen.truth) throw Skip("no timer interrupted the process");
  seen.mean_ns = static_cast<double>(sum) / static_cast<double>(seen.truth);
  return seen;
}

TOOL_TEST(Irqslower, EveryRun) {
  auto [report, truth, mean_ns] = of_a_process({"--vectors", "0"});
  std::size_t timers = 0;
  double sum = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["comm"].str(), "sleeper");
    EXPECT_LT(line["latency_ns"].u64(), 1'000'000'000u);
    EXPECT_FALSE(line["name"].str().empty());
    if (line["name"].str() != "local_timer") continue;
    EXPECT_EQ(std::to_string(line["irq"].u64()), kTimer);
    sum += static_cast<double>(line["latency_ns"].u64());
    timers++;
  }
  ASSERT_EQ(timers, truth);
  // Each tracer's programs are in the other's times.
  EXPECT_NEAR(sum / static_cast<double>(timers), mean_ns, 0.3 * mean_ns + 3'000 * slowness());
}

TOOL_TEST(Irqslower, OneVectorThatIsSlow) {
  auto [report, truth, mean_ns] = of_a_process({"--vectors", "-i", kTimer, "2"});
  for (auto& line : report.body) {
    EXPECT_EQ(line["name"].str(), "local_timer");
    EXPECT_GE(line["latency_ns"].u64(), 2'000u);
  }
  EXPECT_GT(mean_ns, 0);
  EXPECT_LE(report.body.size(), truth);
  EXPECT_GE(report.body.size() + report.ledger["filtered"].u64(), truth);
}

TOOL_TEST(Irqslower, HandlersOfDevices) {
  require_tool("irqslower");
  Trace trace("irq/irq_handler_exit");
  Tracer tracer("irqslower", {"--json", "--strict", "0"});
  run({"sh", "-c",
       "for i in $(seq 30); do dd if=/dev/zero of=irqslower.tmp bs=64k count=1 "
       "conv=fsync 2>/dev/null; done; rm irqslower.tmp"});
  auto report = tracer.stop();
  trace.stop();
  auto truth = trace.lines().size();
  if (!truth) throw Skip("no device interrupts here");
  // The trace starts before the tool and ends after it.
  EXPECT_LE(report.body.size(), truth);
  EXPECT_GE(report.body.size(), truth / 2);
  for (auto& line : report.body) EXPECT_NE(line["name"].str(), "local_timer");
}

TOOL_TEST(Irqslower, TextHasTheKnownColumns) {
  require_tool("irqslower");
  auto result = run({tool_path("irqslower"), "--vectors", "--duration", "0.5", "0"});
  if (result.status == 3) throw Skip(result.err);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("TIME          CPU   IRQ HANDLER                      LAT(us) COMM\n"),
            std::string::npos)
      << result.out.substr(0, 300);
  for (auto* bad : {"-1", "x"})
    EXPECT_NE(run({tool_path("irqslower"), "--", bad}).status, 0) << bad;
}

const DeclareTests kIrqslower{{
    .name = "irqslower",
    .events = {"--vectors 0", "sleeper --sleeps 1 --spin 300"},
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 1000,
               .options = {"--vectors", "-i", kTimer, "0"},
               .tiny = "--ring-size 4096",
               .kernel_event = "irq_vectors/local_timer_exit"},
    .long_run = {{.arguments = "--vectors 100"}},
}};

}  // namespace
}  // namespace coretap::tooltest
