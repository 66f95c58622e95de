#include "compare/comparison.hpp"
#include "expect.hpp"

namespace coretap::compare {

namespace {

std::string line(int second, std::string_view keys, std::string_view slots) {
  return fmt::format(
      R"({{"type":"histogram","tool":"biolatency","time":"2026-11-29T04:{:02}:{:02}.500000+00:00",{})"
      R"("count":3,"total_ns":9000,"histogram":[{}]}})"
      "\n",
      second / 60, second % 60, keys, slots);
}

constexpr std::string_view kSlots =
    R"({"from_ns":0,"below_ns":2000,"count":1},{"from_ns":4000,"below_ns":8000,"count":2})";

TEST(CompareLines, HistogramsOfIntervals) {
  std::string text = R"({"type":"header","tool":"biolatency","version":"0.1.0","kernel":"6.18.44"})"
                     "\n";
  for (int i : {0, 1, 2, 3, 6, 7}) {
    text += line(i, R"("disk":"vda","flags":null,)", kSlots);
    if (i == 2) text += line(i, R"("disk":"vdb",)", kSlots);
  }
  text += R"({"type":"ledger","seen":30,"shown":21,"filtered":4,"lost":5})"
          "\n";
  auto s = series_of_lines(text, "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->facts.name, "biolatency");
  EXPECT_EQ(s->facts.kernel, "6.18.44");
  EXPECT_EQ(s->facts.lost, 5);
  EXPECT_EQ(s->facts.kept, 21);
  EXPECT_EQ(s->intervals.size(), 8);  // two without events
  EXPECT_NEAR(s->seconds(), 8, 1e-6);
  EXPECT_TRUE(s->intervals[4].histograms.empty());
  ASSERT_EQ(s->intervals[2].histograms.size(), 2);
  ASSERT_EQ(s->names.size(), 2);
  EXPECT_EQ(s->names[1].key, "disk=vdb");
  EXPECT_EQ(s->buckets.scale.step, 1000);
  EXPECT_FALSE(s->buckets.scale.linear);
  auto& h = s->intervals[0].histograms[0].second;
  EXPECT_EQ(h.total, 9000);
  using Counts = std::vector<std::pair<std::uint32_t, std::uint64_t>>;
  EXPECT_EQ(h.counts, (Counts{{0, 1}, {2, 2}}));
}

TEST(CompareLines, StepsFromBounds) {
  auto step = [](const std::string& slots) {
    auto s = series_of_lines(line(1, "", slots), "f");
    if (!s) return s.error().what;
    return fmt::format("{}{}", s->buckets.scale.step, s->buckets.scale.linear ? " linear" : "");
  };
  auto slot = [](std::uint64_t from, std::uint64_t below) {
    return fmt::format(R"({{"from_ns":{},"below_ns":{},"count":1}})", from, below);
  };
  EXPECT_EQ(step(slot(4000, 8000)), "1000");
  EXPECT_EQ(step(slot(4'000'000, 8'000'000)), "1000000");
  EXPECT_EQ(step(slot(4, 8)), "1");
  EXPECT_EQ(step(slot(0, 2048) + ',' + slot(4096, 8192)), "1024");
  EXPECT_EQ(step(slot(0, 1) + ',' + slot(1, 2) + ',' + slot(5, 6)), "1 linear");
  EXPECT_TRUE(says(step(slot(3000, 6000) + ',' + slot(4000, 8000)), "unknown bounds"));
}

TEST(CompareLines, FilesOfAnyContent) {
  auto why = [](std::string_view text) {
    auto s = series_of_lines(text, "f\x1b");
    return s ? std::string("?") : s.error().what;
  };
  EXPECT_EQ(why(""), "f\\x1b has nothing that can be compared by intervals");
  EXPECT_EQ(why("usecs : count\n"), "f\\x1b is not a file of JSON lines");
  EXPECT_EQ(why("[[[[\n"), "f\\x1b is not a file of JSON lines");
  EXPECT_EQ(why(R"({"type":"event"})"
                "\n"),
            "f\\x1b has nothing that can be compared by intervals");
  EXPECT_TRUE(
      says(why(line(1, "", R"(1,{"from_ns":5,"below_ns":1,"count":2})")), "unknown bounds"));
  EXPECT_FALSE(read_series("/nonexistent"));
}

}  // namespace

}  // namespace coretap::compare
