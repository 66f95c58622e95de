// cachetop against cachestat, and a process that accesses a known number of pages of a file.
#include "shared.hpp"

namespace coretap::tooltest {
// The same programs, summed and by process.
TOOL_TEST(Cachetop, AgreesWithCachestat) {
  const std::string phases = "pagecache --phase cold,warm,write,mmap";
  auto [seen, other] = observe_beside(phases,
                                      {"cachetop --json --strict -p {pid},{other} 3600",
                                       "cachestat --json --strict -p {pid},{other} 3600"},
                                      phases);
  auto rows = seen.report(0), sums = seen.report(1);
  auto pages = seen.truth["file_pages"].u64();
  ASSERT_EQ(rows.body.size(), 2u);
  for (auto& line : rows.body) {
    expect_fields(line, {{"comm", "pagecache"}, {"uid", getuid()}});
    expect_within(std::vector{line},
                  {{"misses", pages}, {"hits", pages - kFewPages}, {"dirtied", pages}});
    // Pages created by the write were not cached before.
    EXPECT_LT(line["write_hit_ratio"].real(), 0.5);
  }
  for (auto* key : {"accessed", "misses", "added", "write_added", "dirtied"})
    EXPECT_EQ(rows.sum(key), sums.sum(key)) << key;
}

TOOL_TEST(Cachetop, ShareOfHits) {
  auto [seen, cold] = observe_beside(
      "pagecache --phase cold", Strings{"cachetop --json --strict -s misses -p {pid},{other} 3600"},
      "pagecache --phase warm");
  auto pages = seen.truth["file_pages"].u64();
  auto rows = seen.report().body;
  ASSERT_EQ(rows.size(), 2u);
  expect_fields(rows[0], {{"pid", cold["pid"].u64()}});
  expect_within(std::vector{rows[0]}, {{"misses", pages, pages + kFewPages}});
  EXPECT_LT(rows[0]["hit_ratio"].real(), 0.1);
  expect_within(std::vector{rows[1]}, {{"misses", 0, kFewPages}});
  EXPECT_GT(rows[1]["hit_ratio"].real(), 0.9);
}

TESTS_OF(cachetop, .events = {{}, "pagecache --size 262144"},
         // No tiny: the ledger counts events, and one may access many pages.
         .stress = total_row("pagecache --phase warm --rounds {n}", 10, "accessed+added+dirtied",
                             [](stress::Load& load) { return 2 * load.truth("page_accesses"); })
                       .with_slack(kFewPages));

}  // namespace coretap::tooltest
