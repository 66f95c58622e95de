// statsnoop against a program that knows the result of each of its calls.
#include "calls.hpp"

namespace coretap::tooltest {
TOOL_TEST(Statsnoop, EveryCallWithItsResult) {
  auto seen = observe_all(
      {"statsnoop --json -p {pid}", "statsnoop --json -x -p {pid}", "statsnoop -t -s -n filecalls"},
      "filecalls --stats 20 --scene", {});
  auto calls = seen.truth["scene"].items();
  auto bulk = seen.truth["stats"].u64();
  auto report = seen.report();
  EXPECT_EQ(report.lost("lost"), 0u);
  EXPECT_EQ(report.lost("truncated"), 1u) << "the path that is too long for the kernel too";
  // At its start and end the C library may stat the output.
  auto events = report.body;
  std::erase_if(events,
                [](auto& event) { return !event["dirfd"].is_null() && event["dirfd"].i64() <= 2; });
  ASSERT_EQ(events.size(), bulk + calls.size());
  for (std::size_t i = 0; i < bulk; i++) EXPECT_EQ(events[i]["path"].str(), "/proc/self/comm");
  for (std::size_t i = 0; i < calls.size(); i++) {
    SCOPED_TRACE(i);
    expect_file_call(events[bulk + i], calls[i], "path");
    auto path = unhex(calls[i]["path_hex"].str());
    if (calls[i]["known"].boolean())
      expect_fields(events[bulk + i], {{"incomplete", path.size() > 4095}});
  }
  EXPECT_EQ(seen.report(1).body.size(), seen.truth["failures"].u64());
  EXPECT_TRUE(safe_for_terminals(seen.text(2)));
  expect_contains(seen.text(2), {" -1 ENOENT   newfstatat   /no/where\n"});
}

TESTS_OF(
    statsnoop, .events = {"-s", "filecalls --stats 3"},
    .stress = event_row("filecalls --stats {n}", 20000, "stats").with_slack(10).with_copies(8));

}  // namespace coretap::tooltest
