// irqslower against the kernel's own trace of interrupts of one process.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kTimer[] = "236";  // LOCAL_TIMER_VECTOR of x86

struct Interrupted {
  Report report;
  std::size_t truth = 0;  ///< interrupts of the process
  double mean_ns = 0;     ///< their mean time
};

Interrupted interrupted(const Strings& options) {
  Scene scene("sleeper --sleeps 1 --spin 500");
  Trace trace("irq_vectors/local_timer_entry irq_vectors/local_timer_exit");
  scene.trace("irqslower --json --strict -p {pid}" + options);
  auto seen = scene.finish();
  trace.stop();
  std::uint64_t start = 0, count = 0, sum = 0;
  for (auto& e : trace.events(static_cast<pid_t>(seen.pid))) {
    if (e.name == "local_timer_entry") {
      start = e.ns;
    } else if (start) {
      count++;
      sum += e.ns - start;
    }
  }
  if (!count) throw Skip("no timer interrupted the process");
  return {seen.report(), count, static_cast<double>(sum) / static_cast<double>(count)};
}

TOOL_TEST(Irqslower, EveryRun) {
  auto [report, truth, mean_ns] = interrupted("--vectors 0");
  for (auto& line : report.body) {
    expect_fields(line, {{"comm", "sleeper"}});
    EXPECT_LT(line["latency_ns"].u64(), 1'000'000'000u);
    EXPECT_FALSE(line["name"].str().empty());
  }
  auto timers = lines_with(report.body, {{"name", "local_timer"}});
  ASSERT_EQ(timers.size(), truth);
  for (auto& line : timers) EXPECT_EQ(std::to_string(line["irq"].u64()), kTimer);
  // The times of each tracer include the other's programs.
  EXPECT_NEAR(static_cast<double>(sum(timers, "latency_ns")) / static_cast<double>(timers.size()),
              mean_ns, 0.3 * mean_ns + 3'000 * slowness());
}

TOOL_TEST(Irqslower, OneVectorThatIsSlow) {
  auto [report, truth, mean_ns] = interrupted({"--vectors", "-i", kTimer, "2"});
  for (auto& line : report.body) {
    expect_fields(line, {{"name", "local_timer"}});
    EXPECT_GE(line["latency_ns"].u64(), 2'000u);
  }
  EXPECT_GT(mean_ns, 0);
  EXPECT_LE(report.body.size(), truth);
  EXPECT_GE(report.body.size() + report.lost("filtered"), truth);
}

TOOL_TEST(Irqslower, HandlersOfDevices) {
  Trace trace("irq/irq_handler_exit");
  Tracer tracer("irqslower", "--json --strict 0");
  write_to_disk();
  auto report = tracer.stop();
  trace.stop();
  auto truth = trace.lines().size();
  if (!truth) throw Skip("no device interrupts here");
  // The trace starts before the tool and ends after it.
  EXPECT_LE(report.body.size(), truth);
  EXPECT_GE(report.body.size(), truth / 2);
  EXPECT_TRUE(lines_with(report.body, {{"name", "local_timer"}}).empty());
}

TESTS_OF(irqslower, .events = {"--vectors 0", "sleeper --sleeps 1 --spin 300"},
         .stress = event_row("sleeper --sleeps 1 --spin {n}", 1000, {},
                             {"--vectors", "-i", kTimer, "0"})
                       .by_kernel_event("irq_vectors/local_timer_exit"),
         .long_run = {{.arguments = "--vectors 100"}});

}  // namespace
}  // namespace coretap::tooltest
