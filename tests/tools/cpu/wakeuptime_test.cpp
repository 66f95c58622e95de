// wakeuptime: who ends a wait.
#include "wakers.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Wakeuptime, WhoEndsTheWait) {
  auto run = run_with("wakeuptime", {});
  expect_reads(run, sum_of(run, [](auto& line) {
                 auto wakers = line["wakers"].items();
                 return wakers.size() == 1 && wakers[0]["context"].str() == "task" &&
                        wakers[0]["comm"].str() == "sleeper" &&
                        has_frame(wakers[0], "kernel_stack", "pipe_write");
               }));
  // The writer's own sleeps end by the timer.
  auto timer = sum_of(run, [](auto& line) {
    auto wakers = line["wakers"].items();
    return wakers.size() == 1 && wakers[0]["context"].str() != "task" &&
           has_frame(wakers[0], "kernel_stack", "hrtimer_wakeup");
  });
  EXPECT_EQ(timer.count, kSleeps);
  for (auto& line : run.report.body) EXPECT_EQ(line["comm"].str(), "sleeper");
}

const DeclareTests kWakeuptime{{
    .name = "wakeuptime",
    .reports = {{ReportKind::stacks}},
    .events = {{}, "sleeper --sleeps 3"},
    .stress = {.workload = stress::sleeps(),
               .events = 3000,
               .options = "--state 3",
               .shown = "count",
               .truth = stress::waits,
               .tiny = "--stack-storage-size 1"},
    .long_run = {{.arguments = "-m 1000", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
