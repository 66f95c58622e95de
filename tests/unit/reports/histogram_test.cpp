#include "reports/histogram.hpp"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <algorithm>
#include <map>
#include <sstream>
#include <vector>

namespace coretap {
namespace {

hist with(const std::map<int, std::uint64_t>& slots) {
  hist h{};
  for (auto [slot, count] : slots) h.slots[slot] = count;
  return h;
}

std::vector<std::string> lines(const std::string& text) {
  std::vector<std::string> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

TEST(Histogram, EmptyDrawsNothing) {
  EXPECT_EQ(draw_histogram(hist{}, "usecs"), "");
  EXPECT_EQ(histogram_count(hist{}), 0u);
}

// Character by character what scripts and eyes know.
TEST(Histogram, TheKnownFormat) {
  EXPECT_EQ(draw_histogram(with({{0, 2061}}), "usecs"),
            "     usecs               : count    distribution\n"
            "         0 -> 1          : 2061     |****************************************|\n");
  EXPECT_EQ(draw_histogram(with({{1, 10}, {3, 40}, {4, 1}}), "msecs"),
            "     msecs               : count    distribution\n"
            "         0 -> 1          : 0        |                                        |\n"
            "         2 -> 3          : 10       |**********                              |\n"
            "         4 -> 7          : 0        |                                        |\n"
            "         8 -> 15         : 40       |****************************************|\n"
            "        16 -> 31         : 1        |*                                       |\n");
}

TEST(Histogram, StarsAreRoundedDownAndNeverBeyondTheBar) {
  auto text =
      lines(draw_histogram(with({{0, UINT64_MAX / 64}, {1, UINT64_MAX / 65}, {2, 1}}), "usecs"));
  ASSERT_EQ(text.size(), 4u);
  auto stars = [](const std::string& line) { return std::count(line.begin(), line.end(), '*'); };
  EXPECT_EQ(stars(text[1]), 40);
  EXPECT_EQ(stars(text[2]), 39);
  EXPECT_EQ(stars(text[3]), 0);
  for (auto slots : {std::map<int, std::uint64_t>{{5, UINT64_MAX}}, {{0, 1}, {5, UINT64_MAX}}}) {
    auto wide = lines(draw_histogram(with(slots), "usecs"));
    EXPECT_EQ(stars(wide.back()), 40);
  }
}

TEST(Histogram, WideBoundsWidenAllRows) {
  auto narrow = lines(draw_histogram(with({{31, 1}}), "nsecs"));
  EXPECT_EQ(narrow.size(), 33u);
  EXPECT_EQ(narrow.back(),
            "2147483648 -> 4294967295 : 1        |****************************************|");
  auto wide = lines(draw_histogram(with({{0, 1}, {32, 1}}), "nsecs"));
  EXPECT_EQ(wide.size(), 34u);
  EXPECT_EQ(wide[1],
            "                   0 -> 1                    : 1        "
            "|****************************************|");
  EXPECT_EQ(wide.back(),
            "          4294967296 -> 8589934591           : 1        "
            "|****************************************|");
  for (auto& rows : {narrow, wide})
    for (auto& row : rows) EXPECT_EQ(row.find(" : "), rows[0].find(" : ")) << row;
}

TEST(Histogram, TheLastSlot) {
  auto rows = lines(draw_histogram(with({{63, 7}}), "nsecs"));
  EXPECT_EQ(rows.size(), 65u);
  EXPECT_EQ(rows.back(),
            " 9223372036854775808 -> 18446744073709551615 : 7        "
            "|****************************************|");
}

TEST(Histogram, SlotsHaveNoGaps) {
  EXPECT_EQ(slot_from(0), 0u);
  EXPECT_EQ(slot_below(0), 2u);
  EXPECT_EQ(slot_from(1), 2u);
  EXPECT_EQ(slot_below(62), 1ull << 63);
  EXPECT_EQ(slot_from(63), 1ull << 63);
  EXPECT_EQ(slot_below(63), UINT64_MAX);
  for (int i = 1; i < HIST_SLOTS; i++) EXPECT_EQ(slot_from(i), slot_below(i - 1)) << i;
}

TEST(Histogram, Count) { EXPECT_EQ(histogram_count(with({{0, 1}, {30, 2}, {63, 3}})), 6u); }

rapidjson::Document json(const hist& h, std::uint64_t unit) {
  JsonLine line;
  json_histogram(line, h, unit);
  rapidjson::Document d;
  d.Parse(std::string(line.finish()).c_str());
  EXPECT_FALSE(d.HasParseError());
  return d;
}

TEST(Histogram, Json) {
  auto h = with({{0, 3}, {10, 4}});
  h.total_ns = 5'000'000;
  auto d = json(h, 1000);
  EXPECT_EQ(d["count"].GetUint64(), 7u);
  EXPECT_EQ(d["total_ns"].GetUint64(), 5'000'000u);
  auto& slots = d["histogram"];
  ASSERT_EQ(slots.Size(), 2u) << "only slots that counted";
  EXPECT_EQ(slots[0]["from_ns"].GetUint64(), 0u);
  EXPECT_EQ(slots[0]["below_ns"].GetUint64(), 2000u);
  EXPECT_EQ(slots[0]["count"].GetUint64(), 3u);
  EXPECT_EQ(slots[1]["from_ns"].GetUint64(), 1'024'000u);
  EXPECT_EQ(slots[1]["below_ns"].GetUint64(), 2'048'000u);
  EXPECT_EQ(slots[1]["count"].GetUint64(), 4u);
  EXPECT_EQ(json(hist{}, 1000)["histogram"].Size(), 0u);
}

TEST(Histogram, JsonBoundsStayOrdered) {
  hist h{};
  for (auto& slot : h.slots) slot = 1;
  for (std::uint64_t unit : {1ull, 1000ull, 1000000ull}) {
    auto d = json(h, unit);
    std::uint64_t last = 0;
    for (auto& slot : d["histogram"].GetArray()) {
      EXPECT_GE(slot["from_ns"].GetUint64(), last) << unit;
      EXPECT_GE(slot["below_ns"].GetUint64(), slot["from_ns"].GetUint64()) << unit;
      last = slot["from_ns"].GetUint64();
    }
  }
}

}  // namespace
}  // namespace coretap
