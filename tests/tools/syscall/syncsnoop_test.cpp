// syncsnoop against a program that flushes files in known ways.
#include "calls.hpp"

namespace coretap::tooltest {
TOOL_TEST(Syncsnoop, EveryCallWithItsFile) {
  auto [seen, other] =
      watch_each({{"filecalls --syncs 20 --scene",
                   {"syncsnoop --json --strict -p {pid}", "syncsnoop --json -m 600000 -p {pid}"}},
                  {"filecalls --syncs 10"}},
                 {});
  auto calls = seen.truth["scene"].items();
  auto bulk = seen.number("syncs");
  auto events = seen.body();
  ASSERT_EQ(events.size(), bulk + calls.size());
  for (std::size_t i = 0; i < events.size(); i++) {
    SCOPED_TRACE(i);
    expect_same(events[i], seen.truth, {"pid"});
    // Calls of the bulk equal the first of the scene.
    expect_file_call(events[i], calls[i < bulk ? 0 : i - bulk], "file");
  }
  EXPECT_TRUE(seen.body(1).empty());
  EXPECT_GE(seen.report(1).lost("filtered"), events.size());
}

TESTS_OF(syncsnoop, .events = {{}, "filecalls --syncs 3"},
         .stress = event_row("filecalls --syncs {n}", 20000, "syncs"));

}  // namespace coretap::tooltest
