// vfsstat against a process that makes known numbers of calls on files.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Vfsstat, EachOperationOfAProcess) {
  auto [seen, other] = observe_beside("filecalls --rounds 30",
                                      {"vfsstat --json --strict -p {pid}", "vfsstat -p {pid} 3600"},
                                      "filecalls --rounds 50");
  auto rounds = seen.truth["rounds"].u64();
  auto report = seen.report();
  expect_within(
      report, {between("reads", 4 * rounds, 4 * rounds + kFewCalls),
               between("writes", 3 * rounds, 3 * rounds + kFewCalls), exactly("creates", rounds)});
  for (auto* key : {"fsyncs", "opens", "unlinks", "mkdirs", "rmdirs"})
    EXPECT_EQ(report.sum(key), 2 * rounds) << key;
  auto& text = seen.text(1);
  auto row = words(lines(text).at(1));
  ASSERT_EQ(row.size(), 9u) << text;
  // All cover the same time: rates have the ratios of the counts.
  EXPECT_NEAR(std::stod(row[4]), 2 * std::stod(row[5]), 2) << text;
  EXPECT_GT(std::stod(row[1]), std::stod(row[3])) << text;
}

TESTS_OF(vfsstat, .events = {{}, "filecalls --rounds 5"},
         .stress = total_row("filecalls --rounds {n}", 2000,
                             "reads+writes+fsyncs+opens+unlinks+mkdirs+rmdirs", "operations")
                       .with_slack(kFewCalls));

}  // namespace coretap::tooltest
