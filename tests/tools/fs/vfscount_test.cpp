// vfscount against a program that makes a known number of calls on files.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Vfscount, FunctionsThatAreCalled) {
  auto seen = observe("vfscount --json --strict -p {pid}", "filecalls --rounds 50");
  auto rows = seen.report().body;
  for (auto& row : rows)
    EXPECT_TRUE(row["target"].str().starts_with("vfs_")) << row["target"].str();
  // Each round has two reads (read and pread) and two writes; at the end it prints some lines, and
  // waits for input.
  auto calls = 2 * seen.truth["rounds"].u64();
  expect_within(lines_with(rows, {{"target", "vfs_read"}}), {{"count", calls, calls + 2}});
  expect_within(lines_with(rows, {{"target", "vfs_write"}}), {{"count", calls + 1, calls + 20}});
}

TOOL_TEST(Vfscount, Columns) { expect_contains(output_of("vfscount 0.2"), {"FUNC", "vfs_read"}); }

// Where functions cannot be traced, the error names an alternative.
TOOL_TEST(Vfscount, WhatToUseInstead) {
  if (run({tool_path("vfscount"), "0.1"}).status == 0) throw Skip("functions can be traced here");
  expect_refused("vfscount 0.1", {"vfsstat"}, 3);
}

TESTS_OF(vfscount, .events = {{}, "filecalls --rounds 5"},
         .stress = total_row(
                       "filecalls --rounds {n}", 5000,
                       [](const Json& line) {
                         return line["target"].str() == "vfs_read" ? line["count"].u64() : 0;
                       },
                       [](stress::Load& load) { return 2 * load.truth("rounds"); })
                       .with_slack(2),
         .long_run = {{.arguments = "60"}});

}  // namespace coretap::tooltest
