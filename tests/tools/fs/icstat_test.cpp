// icstat against a program that opens files by their handles: each is one look-up of an inode.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Icstat, LookUpsAndMisses) {
  auto seen = observe_all({"icstat --json --strict -p {pid}", "icstat --json --strict -u 54321"},
                          "filecalls --handles 200");
  auto handles = seen.truth["handles"].u64();
  auto report = seen.report(0), none = seen.report(1);
  // Half of them are of a removed file.
  EXPECT_EQ(report.sum("lookups"), 2 * handles);
  EXPECT_EQ(report.sum("misses"), handles);
  EXPECT_EQ(none.sum("lookups"), 0u);
  EXPECT_GE(none.lost("filtered"), 2 * handles);
}

TESTS_OF(icstat, .events = {{}, "filecalls --handles 20"},
         .stress = total_row("filecalls --handles {n}", 5000, "lookups",
                             [](stress::Load& load) { return 2 * load.truth("handles"); }));

}  // namespace coretap::tooltest
