// hfaults against a workload that maps huge pages of each kind, and /proc/vmstat.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Hfaults, TransparentOnes) {
  Scene scene("faulter --anon 2000 --thp 6");
  Counters around;
  scene.trace("hfaults --json --strict -p {pid}");
  auto seen = scene.finish();
  auto report = seen.report();
  EXPECT_EQ(report.sum("thp") + report.sum("fallbacks"), 6u);
  expect_within(report, {at_most("thp", around.growth("thp_fault_alloc")),
                         at_most("fallbacks", around.growth("thp_fault_fallback")),
                         exactly("hugetlb", 0), exactly("collapses", 0)});
  // A huge page has one fault, a small one 512.
  EXPECT_EQ(seen.truth["thp"]["minor"].u64(), 6u);
  for (auto& row : report.body) expect_fields(row, {{"comm", "faulter"}});
}

TOOL_TEST(Hfaults, ThoseOfHugetlb) {
  auto seen = observe("hfaults --json --strict -p {pid}", "faulter --anon 100 --hugetlb 4");
  EXPECT_EQ(seen.truth["hugetlb"]["minor"].u64(), 4u);
  expect_within(seen.report(),
                {{"hugetlb", 4, 4}, {"thp", 0, 0}, {"fallbacks", 0, 0}, {"collapses", 0, 0}});
}

TOOL_TEST(Hfaults, CollapsesAreTheOwners) {
  auto seen = observe("hfaults --json --strict -p {pid}", "faulter --collapse 3");
  auto collapsed = seen.truth["collapsed"].u64();
  if (!collapsed) throw Skip("khugepaged collapsed nothing");
  expect_fields(line_with(seen.report().body, {}),
                {{"collapses", collapsed}, {"thp", 0}, {"pid", seen.pid}});  // not made by faults
}

TOOL_TEST(Hfaults, SmallPagesAreNotSeen) {
  auto seen = observe("hfaults --json -p {pid}", "faulter --anon 3000 --file 100");
  EXPECT_TRUE(seen.report().body.empty());
}

TESTS_OF(hfaults, .events = {{}, "faulter --thp 3"}, .alone = true,
         .stress = count_row("faulter --anon 10000 --thp {n}", 20, "thp+fallbacks",
                             [](stress::Load& load) {
                               return load.workload().truth()["thp"]["minor"].u64();
                             }));

}  // namespace coretap::tooltest
