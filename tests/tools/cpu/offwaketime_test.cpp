// offwaketime: the stacks of the waiting task and of its waker.
#include "wakers.hpp"

namespace coretap::tooltest {
TOOL_TEST(Offwaketime, BothStacks) {
  auto waits = waits_by("offwaketime");
  expect_reads(waits, [&](auto& line) {
    auto wakers = line["wakers"].items();
    return line["tid"].i64() == waits.target && has_frame(line, "user_stack", "workload_middle") &&
           has_frame(line, "kernel_stack", "pipe_read") && wakers.size() == 1 &&
           wakers[0]["tid"].i64() == waits.waker &&
           has_frame(wakers[0], "user_stack", "workload_wake") &&
           has_frame(wakers[0], "kernel_stack", "pipe_write");
  });
  for (auto& line : waits.report.body)
    expect_fields(line, {{"runnable", false}, {"pid", waits.report.body[0]["pid"].u64()}});
}

TOOL_TEST(Offwaketime, PartsOfTheStacks) {
  for (auto& line : waits_by("offwaketime -K").report.body) {
    EXPECT_TRUE(line["user_stack"].strings().empty());
    for (auto& waker : line["wakers"].items()) EXPECT_TRUE(waker["user_stack"].strings().empty());
  }
  auto user = waits_by("offwaketime -U -m 1000");
  expect_reads(user, [](auto& line) {
    auto wakers = line["wakers"].items();
    return line["kernel_stack"].strings().empty() && wakers.size() == 1 &&
           !wakers[0]["tid"].is_null() && has_frame(wakers[0], "user_stack", "workload_wake");
  });
}

const DeclareTests kOffwaketime{tests_of_waits("offwaketime", "-m 1000 --unwind-memory 4M")};

}  // namespace coretap::tooltest
