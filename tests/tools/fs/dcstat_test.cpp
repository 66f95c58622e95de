// dcstat against a process that looks up known numbers of names.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Dcstat, LookupsOfAProcess) {
  auto [seen, other] = observe_beside("lookups --absent 50",
                                      {"dcstat --json --strict -p {pid}", "dcstat -p {pid} 3600"},
                                      "lookups --absent 200 --present 300");
  auto report = seen.report();
  EXPECT_EQ(report.sum("refs"), 500u);
  EXPECT_EQ(report.sum("slow_refs"), 200u);
  EXPECT_EQ(report.sum("misses"), 200u);
  expect_contains(seen.text(1), {" 60.00\n"});
}

TESTS_OF(dcstat, .events = {{}, "lookups --absent 5"},
         .stress = total_row("lookups --absent {n}", 20000, "refs", "lookups").with_slack(20));

}  // namespace coretap::tooltest
