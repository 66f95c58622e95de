#include "reports/heatmap.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

hist of(std::initializer_list<std::pair<int, std::uint64_t>> slots) {
  hist h{};
  for (auto& [slot, count] : slots) h.slots[slot] = count;
  return h;
}

TEST(HeatLine, DenserWithMoreValues) {
  std::uint64_t most = 1;
  EXPECT_EQ(heat_line(of({{0, 1000}, {2, 1}, {3, 30}}), 5, 1, most), "@ .= ");
  EXPECT_EQ(most, 1000u);
  EXPECT_EQ(heat_line(of({{1, 1000}}), 5, 2, most), "  @@      ");
  EXPECT_EQ(heat_line(of({}), 5, 1, most), "     ");
  // One value beside millions is seen.
  most = 1;
  heat_line(of({{0, UINT64_MAX / 2}}), 4, 1, most);
  EXPECT_EQ(heat_line(of({{3, 1}}), 4, 1, most), "   .");
  // What is above the last range is in it.
  most = 1;
  EXPECT_EQ(heat_line(of({{4, 5}, {63, 5}}), 3, 1, most), "  @");
  EXPECT_EQ(most, 10u);
}

TEST(HeatHeader, BoundsWithTheirUnits) {
  EXPECT_EQ(heat_header({}, 12, 2), "0       16us    256us   ");
  EXPECT_EQ(heat_header({.unit = unit::bytes, .step = 1}, 12, 2), "0       16      256     ");
  EXPECT_EQ(heat_header({.unit = unit::plain, .step = 1, .linear = true}, 20, 1),
            "0       8       16  ");
}

TEST(HeatMap, WellFormedWithoutValues) {
  HeatMap map{HistogramScale{}};
  auto svg = map.svg({"</title>", "values", {}});
  EXPECT_TRUE(says(svg, "<title>&lt;/title&gt;</title>"));
  EXPECT_TRUE(svg.ends_with("</svg>\n"));
}

TEST(HeatMap, TheSameCellAddsUp) {
  HeatMap map{HistogramScale{}};
  map.begin_column("10:00:00.000");
  map.add("", of({{3, 5}, {4, 1}}));
  map.add("", of({{3, 2}}));
  EXPECT_TRUE(
      says(map.svg({"t", "values", {}}), "data-n=\"7\"", "data-n=\"1\"", "total: 8 values"));
}

}  // namespace
}  // namespace coretap
