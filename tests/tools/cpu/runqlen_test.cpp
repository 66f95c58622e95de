// runqlen against the kernel's run delays: the mean length of a run queue times the duration is the
// wait of all its tasks together (Little's law).
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr double kHz = 999;

/// The line of the CPU that the workload keeps busy.
Json of_busy_cpu(const Observed& seen, std::size_t tool) {
  return line_with(seen.body(tool), {{"cpu", seen.number("cpu")}});
}

TOOL_TEST(Runqlen, TotalIsWhatTasksWaited) {
  require_whole_cpus();
  auto seen = observe_all({"runqlen --json --strict -C -f 999", "runqlen --json -C -O -f 999"},
                          "runqueue --threads 4 --ms 1500");
  auto line = of_busy_cpu(seen, 0), occupancy = of_busy_cpu(seen, 1);
  auto waited = seen.truth["run_delay_ns"].real();
  // Other tasks wait for that CPU, too; ticks of a busy guest are late.
  expect_between(line["total"].real() / kHz * 1e9, 0.75 * waited, 1.5 * waited);
  // Four threads share the CPU: one runs, three wait, in nearly all samples of that time.
  std::uint64_t three = 0, all = 0;
  for (auto& slot : line["histogram"].items()) {
    EXPECT_EQ(slot["below"].u64(), slot["from"].u64() + 1) << "slots are linear";
    all += slot["count"].u64();
    if (slot["from"].u64() >= 3) three += slot["count"].u64();
  }
  EXPECT_EQ(all, line["count"].u64());
  EXPECT_GT(static_cast<double>(three) / kHz, 0.6 * 1.5);
  auto queued = occupancy["queued"].real(), samples = occupancy["samples"].real();
  EXPECT_LE(queued, samples);
  EXPECT_NEAR(occupancy["occupancy_ratio"].real(), queued / samples, 1e-6);
  EXPECT_GT(queued / kHz, 0.7 * 1.5);
}

TESTS_OF(runqlen, .events = {"-C", "runqueue --threads 2 --ms 60"}, .alone = true,
         .stress = count_row("sleeper --sleeps 1 --spin {n}", 1000, "count",
                             samples_each(5'000'000), "-C --period 5000000")
                       .sampled(0.25),
         .long_run = {{.arguments = "-C 10"}});

}  // namespace
}  // namespace coretap::tooltest
