// brkstack against a process that moves the end of its heap a known number of times.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Brkstack, EachChangeWithItsBytes) {
  auto seen = observe("brkstack --json --strict -p {pid}", "grower");
  auto all = seen.report().body;
  auto grow = lines_with_frame(all, "user_stack", "workload_grow"),
       shrink = lines_with_frame(all, "user_stack", "workload_shrink");
  expect_sums(grow, seen.truth, {"grows", "grown_bytes"});
  expect_sums(shrink, seen.truth, {"shrinks", "shrunk_bytes"});
  EXPECT_EQ(sum(grow, "shrinks"), 0u);
  EXPECT_EQ(sum(shrink, "grows"), 0u);
  for (auto& line : all) expect_fields(line, {{"call", "brk"}, {"comm", "grower"}});
}

TOOL_TEST(Brkstack, MappingsIfAskedAndNoSmallChanges) {
  auto seen = observe_all(
      {"brkstack --json --strict --mmap -p {pid}", "brkstack --json --strict -m 65537 -p {pid}"},
      "grower");
  auto all = seen.report().body;
  expect_sums(lines_with_frame(all, "user_stack", "workload_map"), seen.truth,
              {{"grows", "maps"}, {"grown_bytes", "mapped_bytes"}});
  expect_sums(lines_with_frame(all, "user_stack", "workload_grow"), seen.truth, {"grows"});
  auto large = seen.report(1);
  EXPECT_TRUE(large.body.empty());
  EXPECT_GE(large.lost("filtered"), seen.truth["changes"].u64());
}

TOOL_TEST(Brkstack, BytesForFlameGraphs) {
  auto seen = observe("brkstack -f -p {pid}", "grower");
  expect_contains(seen.text(), {"grower;"});
  EXPECT_FALSE(contains(seen.text(), "workload_shrink")) << seen.text();
  std::uint64_t sum = 0;
  for (auto& line : lines(seen.text()))
    if (contains(line, ";workload_grow")) sum += std::stoull(line.substr(line.rfind(' ') + 1));
  EXPECT_EQ(sum, seen.truth["grown_bytes"].u64());
}

TESTS_OF(brkstack, .reports = {{ReportKind::aggregate}, {ReportKind::stacks, {"--folded"}}},
         .events = {{}, "grower --count 20"},
         .stress = count_row("grower --count {n} --bytes 4096", 3000, "grows+shrinks", "changes")
                       .with_slack(10),  // of its C library
         .long_run = {{.arguments = "-i 10 --mmap"}});

}  // namespace coretap::tooltest
