// brkstack against a process that moves the end of its heap a known number of times.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Brkstack, EachChangeWithItsBytes) {
  auto seen =
      observe_all({"brkstack --json --strict -p {pid}", "brkstack --json --strict --mmap -p {pid}",
                   "brkstack --json --strict -m 65537 -p {pid}", "brkstack -f -p {pid}"},
                  "grower");
  auto all = seen.body(), mapped = seen.body(1);
  auto grow = lines_with_frame(all, "user_stack", "workload_grow"),
       shrink = lines_with_frame(all, "user_stack", "workload_shrink");
  expect_sums(grow, seen.truth, {"grows", "grown_bytes"});
  expect_sums(shrink, seen.truth, {"shrinks", "shrunk_bytes"});
  EXPECT_EQ(sum(grow, "shrinks"), 0u);
  EXPECT_EQ(sum(shrink, "grows"), 0u);
  for (auto& line : all) expect_fields(line, {{"call", "brk"}, {"comm", "grower"}});
  expect_sums(lines_with_frame(mapped, "user_stack", "workload_map"), seen.truth,
              {{"grows", "maps"}, {"grown_bytes", "mapped_bytes"}});
  expect_sums(lines_with_frame(mapped, "user_stack", "workload_grow"), seen.truth, {"grows"});
  EXPECT_TRUE(seen.body(2).empty());
  EXPECT_GE(seen.report(2).lost("filtered"), seen.number("changes"));
  // For flame graphs: bytes of growth.
  std::uint64_t bytes = 0;
  for (auto& line : lines(seen.text(3))) {
    EXPECT_TRUE(line.starts_with("grower;") && !contains(line, "workload_shrink")) << line;
    if (contains(line, ";workload_grow")) bytes += std::stoull(line.substr(line.rfind(' ') + 1));
  }
  EXPECT_EQ(bytes, seen.number("grown_bytes"));
}

TESTS_OF(brkstack, .reports = {{ReportKind::aggregate}, {ReportKind::stacks, {"--folded"}}},
         .events = {{}, "grower --count 20"},
         .stress = count_row("grower --count {n} --bytes 4096", 3000, "grows+shrinks", "changes")
                       .with_slack(10),  // by its C library
         .long_run = {{.arguments = "-i 10 --mmap"}});

}  // namespace coretap::tooltest
