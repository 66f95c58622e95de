// chaintrace: from the wait back to the timer.
#include "wakers.hpp"

namespace coretap::tooltest {
TOOL_TEST(Chaintrace, EndsInTheTimer) {
  auto waits = waits_by("chaintrace");
  expect_reads(waits, [&](auto& line) {
    auto wakers = line["wakers"].items();
    return line["tid"].i64() == waits.target && wakers.size() == 2 &&
           wakers[0]["tid"].i64() == waits.waker &&
           has_frame(wakers[0], "user_stack", "workload_wake") &&
           wakers[1]["context"].str() != "task" &&
           has_frame(wakers[1], "kernel_stack", "hrtimer_wakeup");
  });
}

TOOL_TEST(Chaintrace, LengthAndAge) {
  for (auto* words : {"chaintrace -n 1", "chaintrace --max-age 0"}) {
    auto waits = waits_by(words);
    ASSERT_FALSE(waits.report.body.empty());
    for (auto& line : waits.report.body) EXPECT_LE(line["wakers"].items().size(), 1u);
  }
}

TOOL_TEST(Chaintrace, FoldedAndText) {
  auto command = as_command("sleeper --sleeps 5 --block-on pipe");
  expect_contains(output_of("chaintrace -f" + command), {"sleeper;", ";sleeper;--;try_to_wake_up"});
  expect_contains(
      output_of("chaintrace" + command),
      {"    waker2:          [", "    waker1:          sleeper ", "    target:          sleeper "});
}

const DeclareTests kChaintrace{tests_of_waits("chaintrace")};

}  // namespace coretap::tooltest
