// wakeuptime: the task that ends a wait.
#include "wakers.hpp"

namespace coretap::tooltest {
TOOL_TEST(Wakeuptime, WhoEndsTheWait) {
  auto waits = waits_by("wakeuptime");
  expect_reads(waits, [](auto& line) {
    auto wakers = line["wakers"].items();
    return wakers.size() == 1 && wakers[0]["context"].str() == "task" &&
           wakers[0]["comm"].str() == "sleeper" &&
           has_frame(wakers[0], "kernel_stack", "pipe_write");
  });
  // A timer ends the writer's own sleeps, except for one that expires before the task is off its
  // CPU.
  auto by_timer = lines_where(waits.report, [](auto& line) {
    auto wakers = line["wakers"].items();
    return wakers.size() == 1 && wakers[0]["context"].str() != "task" &&
           has_frame(wakers[0], "kernel_stack", "hrtimer_wakeup");
  });
  EXPECT_LE(sum(by_timer, "count"), kSleeps);
  EXPECT_GE(sum(by_timer, "count"), kSleeps - 2);
  for (auto& line : waits.report.body) expect_fields(line, {{"comm", "sleeper"}});
}

const DeclareTests kWakeuptime{tests_of_waits("wakeuptime")};

}  // namespace coretap::tooltest
