// seeksize against a process that reads a private device in a known order.
#include "disks.hpp"

namespace coretap::tooltest {
TOOL_TEST(Seeksize, SequentialReads) {
  auto seen = on_loop({"seeksize --json --strict -D -p {pid} -d {disk}", "seeksize -p {pid}"},
                      "--op read --count 60");
  auto line = only(seen.body());
  expect_same(line, seen.truth, {"disk"});
  expect_fields(line, "comm blockio total_sectors 0");
  EXPECT_EQ(line["count"].u64(), seen.number("count") - 1) << "the first has none before it";
  expect_fields(only(line["histogram"].items()), "from_sectors 0");
  expect_contains(seen.text(1), {"Process Name = blockio\n", " sectors "});
}

// Alternates between two blocks: the distance is from the end of one to the start of the other.
TOOL_TEST(Seeksize, ForwardsAndBackwards) {
  auto seen = on_loop({"seeksize --json --strict --signed -p {pid} -d {disk}"},
                      "--count 41 --size 64k --span 128k");
  ASSERT_EQ(seen.shown(0), 2u);
  for (auto& line : seen.body()) {
    bool back = line["direction"].str() == "backwards";
    expect_fields(line, {{"count", 20}, {"total_sectors", back ? 20 * 256 : 0}});
  }
}

TESTS_OF(seeksize, .events = {"-D", "blockio --count 5"}, .nothing_when_idle = true,
         // The first request of a disk has no distance.
         .stress = count_row(
                       "blockio --make loop --count {n} --span 4m", 1500, "count",
                       [](stress::Load& load) { return load.truth("count") - 1; }, "-D")
                       .with_slack(1),
         .long_run = {{.arguments = "-D 10"}});

}  // namespace coretap::tooltest
