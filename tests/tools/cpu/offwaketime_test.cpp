// offwaketime: the stacks of who waits and of who ends it.
#include "wakers.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Offwaketime, BothStacks) {
  auto run = run_with("offwaketime", {});
  expect_reads(run, sum_of(run, [&](auto& line) {
                 auto wakers = line["wakers"].items();
                 return line["tid"].i64() == run.target &&
                        has_frame(line, "user_stack", "workload_middle") &&
                        has_frame(line, "kernel_stack", "pipe_read") && wakers.size() == 1 &&
                        wakers[0]["tid"].i64() == run.waker &&
                        has_frame(wakers[0], "user_stack", "workload_wake") &&
                        has_frame(wakers[0], "kernel_stack", "pipe_write");
               }));
  for (auto& line : run.report.body) {
    EXPECT_FALSE(line["runnable"].boolean());
    EXPECT_EQ(line["pid"].u64(), run.report.body[0]["pid"].u64());
  }
}

TOOL_TEST(Offwaketime, PartsOfTheStacks) {
  auto kernel = run_with("offwaketime", {"-K"});
  for (auto& line : kernel.report.body) {
    EXPECT_TRUE(line["user_stack"].strings().empty());
    for (auto& waker : line["wakers"].items()) EXPECT_TRUE(waker["user_stack"].strings().empty());
  }
  auto user = run_with("offwaketime", {"-U", "-m", "1000"});
  expect_reads(user, sum_of(user, [&](auto& line) {
                 auto wakers = line["wakers"].items();
                 return line["kernel_stack"].strings().empty() && wakers.size() == 1 &&
                        !wakers[0]["tid"].is_null() &&
                        has_frame(wakers[0], "user_stack", "workload_wake");
               }));
}

const DeclareTests kOffwaketime{{
    .name = "offwaketime",
    .reports = {{ReportKind::stacks}},
    .events = {{}, "sleeper --sleeps 3"},
    .stress = {.workload = stress::sleeps(),
               .events = 3000,
               .options = "--state 3",
               .shown = "count",
               .truth = stress::waits,
               .tiny = "--stack-storage-size 1"},
    .long_run = {{.arguments = "-m 1000 --unwind-memory 4M", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
