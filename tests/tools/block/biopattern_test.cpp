// biopattern against a process that writes in a known order to a private device.
#include "disks.hpp"

namespace coretap::tooltest {
TOOL_TEST(Biopattern, SequentialAndRandom) {
  for (std::string pattern : {"seq", "random"}) {
    SCOPED_TRACE(pattern);
    auto seen = on_loop({"biopattern --json --strict -d {disk}"},
                        "--count 60 --span 8m --pattern " + pattern);
    auto line = only(seen.body());
    expect_same(line, seen.truth, {"disk", {"ios", "count"}, {"total_bytes", "bytes"}});
    auto random = line["random"].u64(), sequential = line["sequential"].u64();
    EXPECT_EQ(random + sequential, seen.number("count") - 1) << "the first is neither";
    EXPECT_NEAR(line["random_ratio"].real() + line["sequential_ratio"].real(), 1, 1e-9);
    if (pattern == "seq")
      EXPECT_EQ(random, 0u);
    else
      EXPECT_LE(sequential, 3u);
  }
}

// With a flush after each write; a flush has no position on the disk.
TOOL_TEST(Biopattern, FlushesDoNotMoveTheDisk) {
  auto seen = on_loop({"biopattern --json --strict -d {disk}"}, "--op flush --count 20");
  expect_sums(seen.report(), seen.truth, {{"ios", "count"}});
  EXPECT_EQ(seen.report().sum("random"), 0u);
}

TOOL_TEST(Biopattern, DisksApartInText) {
  auto [one, two] =
      watch_each({{"blockio --make loop --count 10", {"biopattern -T", "biopattern --json"}},
                  {"blockio --make loop --count 20"}});
  expect_contains(one.text(0), {one.filled(" {disk} ")});
  expect_sums(lines_with(one.body(1), {{"disk", one.filled("{disk}")}}), one.truth,
              {{"ios", "count"}});
  expect_sums(lines_with(one.body(1), {{"disk", two.filled("{disk}")}}), two.truth,
              {{"ios", "count"}});
}

TESTS_OF(biopattern, .events = {{}, "blockio --count 5"}, .nothing_when_idle = true,
         .stress = writes_to_loop("ios"));

}  // namespace coretap::tooltest
