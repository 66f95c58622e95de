// softirqslower against the kernel's own trace of softirqs that interrupted one process.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kSpin[] = "sleeper --sleeps 1 --spin 500";

bool runs(const Json& line) { return line["stage"].str() == "softirq runtime"; }

struct Mean {
  double sum = 0, count = 0;
  void add(std::uint64_t n) {
    sum += static_cast<double>(n);
    count++;
  }
  double ns() const { return sum / count; }
};

/// Mean time from one event of a softirq to the next, by CPU and softirq, if it interrupted the
/// process.
Mean mean_of(const Trace& trace, pid_t task, const std::string& from, const std::string& to) {
  std::map<std::pair<int, std::string>, std::uint64_t> open;
  Mean mean;
  for (auto& e : trace.events()) {
    auto& start = open[{e.cpu, e.value("vec")}];
    if (e.name == from && !start) start = e.ns;
    if (e.name != to) continue;
    if (start && e.task == task) mean.add(e.ns - start);
    start = 0;
  }
  return mean;
}

// Both stages by the kernel's clock; the times of each tracer include the other's programs.
TOOL_TEST(Softirqslower, TimesAsInTheTrace) {
  auto workload = Workload::of(kSpin, kLinger);
  Tracer tracer("softirqslower", "--json 0 -p " + workload.id());
  // Ends first: otherwise a start without its end would match the end of a later one.
  Trace trace("irq/softirq_exit irq/softirq_entry irq/softirq_raise");
  workload.release();
  workload.truth();
  trace.stop();
  Mean waited, ran;
  for (auto& line : tracer.stop().body) (runs(line) ? ran : waited).add(line["latency_ns"].u64());
  auto waits = mean_of(trace, workload.pid(), "softirq_raise", "softirq_entry");
  auto executions = mean_of(trace, workload.pid(), "softirq_entry", "softirq_exit");
  if (waits.count < 10 || executions.count < 10) throw Skip("too few softirqs");
  EXPECT_NEAR(waited.ns(), waits.ns(), 0.3 * waits.ns() + 3'000 * slowness());
  EXPECT_NEAR(ran.ns(), executions.ns(), 0.3 * executions.ns() + 3'000 * slowness());
}

TOOL_TEST(Softirqslower, EveryRun) {
  Scene scene(kSpin);
  Trace trace("irq/softirq_exit");
  scene.trace("softirqslower --json --strict 0 -p {pid}");
  auto seen = scene.finish();
  trace.stop();
  Counts ran;
  std::uint64_t waits = 0, all = 0;
  for (auto& line : seen.report().body) {
    expect_fields(line, {{"comm", "sleeper"}, {"pid", seen.pid}});
    EXPECT_LT(line["latency_ns"].u64(), 10'000'000'000u);
    if (runs(line)) {
      ran[line["name"].str()]++;
      all++;
      continue;
    }
    expect_fields(line, {{"stage", "irq(hard) to softirq"}});
    EXPECT_GT(line["latency_ns"].u64(), 0u);
    EXPECT_FALSE(line["raised_by_comm"].str().empty());
    waits++;
  }
  EXPECT_EQ(ran, softirqs_of(trace, static_cast<pid_t>(seen.pid)));
  EXPECT_LE(waits, all);
  EXPECT_GE(waits, all / 2);
}

TOOL_TEST(Softirqslower, OnlyWhatIsSlow) {
  Scene scene(kSpin);
  Trace trace("irq/softirq_exit");
  for (auto* least : {"3", "60000000"})
    scene.trace(Strings("softirqslower --json --strict --stage run -p {pid}") + least);
  auto seen = scene.finish();
  trace.stop();
  auto truth = trace.lines(static_cast<pid_t>(seen.pid)).size();
  if (!truth) throw Skip("no softirq interrupted the process");
  auto slow = seen.report(0), nothing = seen.report(1);
  for (auto& line : slow.body) {
    EXPECT_GE(line["latency_ns"].u64(), 3'000u);
    EXPECT_TRUE(runs(line));
  }
  EXPECT_GE(slow.body.size() + slow.lost("filtered"), truth);
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_GE(nothing.lost("filtered"), truth);
}

TESTS_OF(softirqslower, .events = {"0", "sleeper --sleeps 1 --spin 300"},
         .stress = event_row("sleeper --sleeps 1 --spin {n}", 1000, {}, "--stage run 0")
                       .by_kernel_event("irq/softirq_exit"),
         .long_run = {{.arguments = "1000"}});

}  // namespace
}  // namespace coretap::tooltest
