// biostacks against a process that makes a known number of requests from known code.
#include "disks.hpp"

namespace coretap::tooltest {
TOOL_TEST(Biostacks, EveryRequestWithItsStacks) {
  auto seen = on_loop({"biostacks --json --strict --user-stacks -p {pid} -d {disk}"}, "--count 40");
  auto report = seen.report();
  ASSERT_FALSE(report.body.empty());
  expect_sums(report, seen.truth, {"count"});
  EXPECT_LE(report.sum("total_ns"), seen.number("took_ns"));
  for (auto& line : report.body) {
    expect_fields(line, {{"comm", "blockio"}, {"pid", seen.pid}});
    expect_same(line, seen.truth, {"disk"});
    EXPECT_TRUE(has_frame(line, "kernel_stack", "submit_bio")) << line.text();
    EXPECT_TRUE(has_frame(line, "user_stack", "main") || has_frame(line, "user_stack", "write"))
        << line.text();
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
}

TOOL_TEST(Biostacks, TextHasFramesAboveTheHistogram) {
  auto seen = on_loop({"biostacks -m -p {pid}"}, "--count 10");
  auto& text = seen.text();
  auto title = text.find(seen.filled("comm = blockio, pid = {pid}, disk = "));
  ASSERT_NE(title, std::string::npos) << text;
  auto frame = text.find("\n        ", title), histogram = text.find("msecs", title);
  EXPECT_LT(frame, histogram) << text;
  EXPECT_NE(histogram, std::string::npos) << text;
}

TESTS_OF(biostacks, .events = {"--user-stacks", "blockio --count 5"}, .nothing_when_idle = true,
         .stress = writes_to_loop("count"), .long_run = {{.arguments = "--user-stacks 60"}});

}  // namespace coretap::tooltest
