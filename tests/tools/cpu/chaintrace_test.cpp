// chaintrace: from the wait back to the timer.
#include "wakers.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Chaintrace, EndsInTheTimer) {
  auto run = run_with("chaintrace", {});
  expect_reads(run, sum_of(run, [&](auto& line) {
                 auto wakers = line["wakers"].items();
                 return line["tid"].i64() == run.target && wakers.size() == 2 &&
                        wakers[0]["tid"].i64() == run.waker &&
                        has_frame(wakers[0], "user_stack", "workload_wake") &&
                        wakers[1]["context"].str() != "task" &&
                        has_frame(wakers[1], "kernel_stack", "hrtimer_wakeup");
               }));
}

TOOL_TEST(Chaintrace, LengthAndAge) {
  for (Strings options : {Strings{"-n", "1"}, Strings{"--max-age", "0"}}) {
    auto run = run_with("chaintrace", options);
    ASSERT_FALSE(run.report.body.empty());
    for (auto& line : run.report.body) EXPECT_LE(line["wakers"].items().size(), 1u);
  }
  EXPECT_EQ(run({tool_path("chaintrace"), "-n", "9"}).status, 2);
}

TOOL_TEST(Chaintrace, FoldedAndText) {
  require_tool("chaintrace");
  std::string out[2];
  for (int i = 0; i < 2; i++) {
    Strings words{tool_path("chaintrace")};
    if (i == 0) words.push_back("-f");
    for (auto& word :
         Strings{"--", workload_path("sleeper"), "--sleeps", "5", "--block-on", "pipe"})
      words.push_back(word);
    auto done = run(words);
    EXPECT_EQ(done.status, 0) << done.err;
    out[i] = done.out;
  }
  EXPECT_TRUE(contains(out[0], "sleeper;")) << out[0];
  EXPECT_TRUE(contains(out[0], ";sleeper;--;try_to_wake_up")) << out[0];
  EXPECT_TRUE(contains(out[1], "    waker2:          [")) << out[1];
  EXPECT_TRUE(contains(out[1], "    waker1:          sleeper ")) << out[1];
  EXPECT_TRUE(contains(out[1], "    target:          sleeper ")) << out[1];
}

const DeclareTests kChaintrace{{
    .name = "chaintrace",
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
