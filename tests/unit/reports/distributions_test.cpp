// Histograms, heat maps of them, and percentiles.
#include "coretap/percentiles.hpp"
#include "expect.hpp"
#include "reports/heatmap.hpp"
#include "reports/histogram.hpp"

namespace coretap {
namespace {

constexpr HistogramScale kNs{unit::ns, 1}, kUs{unit::ns, 1'000}, kMs{unit::ns, 1'000'000};

const std::string kFull = "|****************************************|";

hist with(const std::map<int, std::uint64_t>& slots) {
  hist h{};
  for (auto [slot, count] : slots) h.slots[slot] = count;
  return h;
}

TEST(Histogram, EmptyDrawsNothing) {
  EXPECT_EQ(draw_histogram(hist{}, kUs), "");
  EXPECT_EQ(histogram_count(hist{}), 0u);
  EXPECT_EQ(histogram_count(with({{0, 1}, {30, 2}, {63, 3}})), 6u);
}

// Character by character the format that scripts and users know.
TEST(Histogram, TheKnownFormat) {
  EXPECT_EQ(draw_histogram(with({{0, 2061}}), kUs),
            "     usecs               : count    distribution\n"
            "         0 -> 1          : 2061     |****************************************|\n");
  EXPECT_EQ(draw_histogram(with({{1, 10}, {3, 40}, {4, 1}}), kMs),
            "     msecs               : count    distribution\n"
            "         0 -> 1          : 0        |                                        |\n"
            "         2 -> 3          : 10       |**********                              |\n"
            "         4 -> 7          : 0        |                                        |\n"
            "         8 -> 15         : 40       |****************************************|\n"
            "        16 -> 31         : 1        |*                                       |\n");
}

TEST(Histogram, AnyNumberOfBars) {
  EXPECT_EQ(draw_bars({}, "cpu", "count"), "");
  EXPECT_EQ(draw_bars({{"0", 0}}, "cpu", "msecs"),
            "       cpu : msecs    distribution\n"
            "         0 : 0        |                                        |\n");
  std::vector<Bar> bars;
  for (std::uint64_t i = 0; i < 300; i++) bars.push_back({std::to_string(i), i});
  auto text = lines_of(draw_bars(bars, "cpu", "count"));
  ASSERT_EQ(text.size(), 301u);
  EXPECT_EQ(text[0], "       cpu : count    distribution");
  EXPECT_EQ(text[300], "       299 : 299      |****************************************|");
  EXPECT_EQ(lines_of(draw_bars(bars, "cpu", "count", 40)).back(),
            "       299 : 299      |****************|");
}

TEST(Histogram, StarsAreRoundedDownAndNeverBeyondTheBar) {
  auto text =
      lines_of(draw_histogram(with({{0, UINT64_MAX / 64}, {1, UINT64_MAX / 65}, {2, 1}}), kUs));
  ASSERT_EQ(text.size(), 4u);
  auto stars = [](const std::string& line) { return std::count(line.begin(), line.end(), '*'); };
  EXPECT_EQ(stars(text[1]), 40);
  EXPECT_EQ(stars(text[2]), 39);
  EXPECT_EQ(stars(text[3]), 0);
  for (auto& h : {with({{5, UINT64_MAX}}), with({{0, 1}, {5, UINT64_MAX}})})
    EXPECT_EQ(stars(lines_of(draw_histogram(h, kUs)).back()), 40);
}

TEST(Histogram, WideBoundsWidenAllRows) {
  auto narrow = lines_of(draw_histogram(with({{31, 1}}), kNs));
  EXPECT_EQ(narrow.size(), 33u);
  EXPECT_EQ(narrow.back(),
            "2147483648 -> 4294967295 : 1        |****************************************|");
  auto wide = lines_of(draw_histogram(with({{0, 1}, {32, 1}}), kNs));
  EXPECT_EQ(wide.size(), 34u);
  EXPECT_EQ(wide[1], "                   0 -> 1                    : 1        " + kFull);
  EXPECT_EQ(wide.back(), "          4294967296 -> 8589934591           : 1        " + kFull);
  for (auto& rows : {narrow, wide})
    for (auto& row : rows) EXPECT_EQ(row.find(" : "), rows[0].find(" : ")) << row;
}

TEST(Histogram, TheLastSlot) {
  auto rows = lines_of(draw_histogram(with({{63, 7}}), kNs));
  EXPECT_EQ(rows.size(), 65u);
  EXPECT_EQ(rows.back(), " 9223372036854775808 -> 18446744073709551615 : 7        " + kFull);
}

TEST(Histogram, SlotsHaveNoGaps) {
  EXPECT_EQ(kNs.from(0), 0u);
  EXPECT_EQ(kNs.below(0), 2u);
  EXPECT_EQ(kNs.from(63), 1ull << 63);
  EXPECT_EQ(kNs.below(63), UINT64_MAX);
  for (int i = 1; i < HIST_SLOTS; i++) EXPECT_EQ(kNs.from(i), kNs.below(i - 1)) << i;
}

/// By division alone: how often a value can be halved, and the rest.
struct Halved {
  int times = 0;
  std::uint64_t rest;
};
Halved halved_below(std::uint64_t value, std::uint64_t below) {
  Halved h{.rest = value};
  for (; h.rest >= below; h.rest /= 2) h.times++;
  return h;
}

/// Where a value is counted: the first eight slots are single values, then eight are an octave.
std::uint32_t fine_slot_of(std::uint64_t value, std::uint64_t step) {
  const auto [times, rest] = halved_below(value / step, 16);
  return rest < 8 ? static_cast<std::uint32_t>(rest)
                  : static_cast<std::uint32_t>(8 * times + static_cast<int>(rest));
}

TEST(FineHistogram, FoldsToTheSlotsOfToday) {
  std::mt19937_64 random(5);  // NOLINT(cert-msc32-c,cert-msc51-cpp): the same each time
  for (std::uint64_t step : {1, 8, 10, 64, 1000, 1024}) {
    const auto fine_steps = fine_step(step);
    EXPECT_EQ(fine_steps, step % 8 ? step : step / 8);
    fine_hist fine{};
    hist expected{};
    auto add = [&](std::uint64_t value) {
      const auto slot = fine_slot_of(value, fine_steps);
      ASSERT_LT(slot, HIST_FINE_SLOTS);
      fine.slots[slot]++;
      fine.total += value;
      expected.slots[halved_below(value / step, 2).times]++;
      expected.total += value;
    };
    for (int i = 0; i < 1'000'000; i++) add(random() >> (random() % 64));
    for (int power = 0; power < 64; power++)
      for (std::uint64_t near : {std::uint64_t{0}, std::uint64_t{1}, UINT64_MAX}) {
        add((1ULL << power) + near);
        add((1ULL << power) * step + near);
        add((1ULL << power) * fine_steps + near);
      }
    fine.named = expected.named = 1;
    const auto h = folded(fine, step);
    EXPECT_EQ(memcmp(&h, &expected, sizeof h), 0) << step;
    for (std::uint32_t i = 0; i + 1 < HIST_FINE_SLOTS; i++) {
      EXPECT_GE(slot_of_fine(i, step), 0);
      EXPECT_LE(slot_of_fine(i, step), slot_of_fine(i + 1, step));
      // Eight for each slot.
      if (step % 8 == 0 && i >= 8) {
        EXPECT_EQ(slot_of_fine(i, step), static_cast<int>(i / 8) - 1);
      }
    }
  }
}

rapidjson::Document json(const hist& h, const HistogramScale& scale) {
  JsonLine line;
  json_histogram(line, h, scale);
  return parsed_json(line.finish());
}

TEST(Histogram, Json) {
  auto h = with({{0, 3}, {10, 4}});
  h.total = 5'000'000;
  // Only non-zero slots.
  EXPECT_EQ(members(json(h, kUs), "count total_ns histogram"),
            R"(7 5000000 [{"from_ns":0,"below_ns":2000,"count":3},)"
            R"({"from_ns":1024000,"below_ns":2048000,"count":4}])");
  EXPECT_EQ(members(json(hist{}, kUs), "histogram"), "[]");
}

TEST(Histogram, JsonBoundsStayOrdered) {
  hist h{};
  std::ranges::fill(h.slots, 1);
  for (auto& scale : {kNs, kUs, kMs}) {
    auto d = json(h, scale);
    Numbers bounds;
    for (auto& slot : d["histogram"].GetArray())
      for (auto* key : {"from_ns", "below_ns"}) bounds.push_back(slot[key].GetUint64());
    EXPECT_TRUE(std::ranges::is_sorted(bounds)) << scale.step;
  }
}

TEST(Histogram, OtherUnitsHaveTheirOwnKeysAndTitles) {
  constexpr HistogramScale kKbytes{unit::bytes, 1024};
  auto h = with({{2, 3}});
  h.total = 15'000;
  EXPECT_EQ(lines_of(draw_histogram(h, kKbytes))[0],
            "     kbytes              : count    distribution");
  EXPECT_EQ(members(json(h, kKbytes), "total_bytes histogram"),
            R"(15000 [{"from_bytes":4096,"below_bytes":8192,"count":3}])");
  EXPECT_EQ(members(json(h, {unit::plain, 1}), "total histogram"),
            R"(15000 [{"from":4,"below":8,"count":3}])");
}

TEST(Histogram, LinearSlotsAreOneStepEach) {
  constexpr HistogramScale kLength{unit::plain, 1, true, "runqlen"};
  auto h = with({{2, 40}, {4, 10}, {63, 1}});
  auto text = lines_of(draw_histogram(h, kLength));
  ASSERT_EQ(text.size(), 63u);
  EXPECT_EQ(text[0], "   runqlen : count    distribution");
  EXPECT_EQ(text[1], "         2 : 40       |****************************************|");
  EXPECT_EQ(text[3], "         4 : 10       |**********                              |");
  EXPECT_EQ(text.back(), "       63+ : 1        |*                                       |");
  EXPECT_EQ(kLength.from(5), 5u);
  EXPECT_EQ(kLength.below(5), 6u);
  EXPECT_EQ(kLength.below(63), UINT64_MAX);
}

TEST(Histogram, FitsNarrowTerminals) {
  auto h = with({{0, 8}, {3, 2}});
  for (int columns : {80, 60, 50, 45}) {
    for (auto& line : lines_of(draw_histogram(h, kUs, columns)))
      EXPECT_LE(line.size(), static_cast<std::size_t>(columns)) << line;
  }
  EXPECT_EQ(lines_of(draw_histogram(h, kUs, 46))[1],
            "         0 -> 1          : 8        |********|");
  EXPECT_EQ(draw_histogram(h, kUs, 200), draw_histogram(h, kUs, 80));
}

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
  // One value beside millions is visible.
  most = 1;
  heat_line(of({{0, UINT64_MAX / 2}}), 4, 1, most);
  EXPECT_EQ(heat_line(of({{3, 1}}), 4, 1, most), "   .");
  // Values above the last range are in it.
  most = 1;
  EXPECT_EQ(heat_line(of({{4, 5}, {63, 5}}), 3, 1, most), "  @");
  EXPECT_EQ(most, 10u);
}

TEST(HeatLegend, HasTheLeastNumberOfEachCharacter) {
  EXPECT_EQ(heat_legend(1), "@ 1");
  EXPECT_EQ(heat_legend(2), "* 1  @ 2");
  std::mt19937_64 random(5);
  for (int round = 0; round < 300; round++) {
    const auto most = round < 40 ? static_cast<std::uint64_t>(round) + 1
                                 : std::max<std::uint64_t>(1, random() >> (random() % 64));
    std::istringstream words(heat_legend(most));
    std::vector<std::pair<char, std::uint64_t>> steps;
    for (std::string letter, number; words >> letter >> number;)
      steps.emplace_back(letter[0], std::stoull(number));
    ASSERT_FALSE(steps.empty());
    EXPECT_EQ(steps.front().second, 1u);
    EXPECT_EQ(steps.back().first, '@');
    auto letter_of = [&](std::uint64_t count) {
      auto scale = most;
      return heat_line(of({{0, count}}), 1, 1, scale)[0];
    };
    for (std::size_t i = 0; i < steps.size(); i++) {
      EXPECT_EQ(letter_of(steps[i].second), steps[i].first) << most;
      if (i) {
        EXPECT_EQ(letter_of(steps[i].second - 1), steps[i - 1].first) << most;
      }
    }
  }
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

/// As in the kernel program, by floating point.
std::uint32_t bucket_of(std::uint64_t value) {
  if (value < 64) return static_cast<std::uint32_t>(value);
  auto power = static_cast<std::uint32_t>(std::ilogb(static_cast<long double>(value)));
  return (power - 5) * 64 + static_cast<std::uint32_t>((value >> (power - 6)) - 64);
}

TEST(Percentiles, BucketsFollowEachOther) {
  EXPECT_EQ(bucket_of(UINT64_MAX), 3775u);
  for (std::uint32_t bucket = 0; bucket < 3775; bucket++) {
    auto from = fine_from(bucket), next = fine_from(bucket + 1);
    ASSERT_LT(from, next) << bucket;
    ASSERT_LE(static_cast<double>(next - from), std::max(1.0, static_cast<double>(from) / 64));
    EXPECT_EQ(bucket_of(from), bucket);
    EXPECT_EQ(bucket_of(next - 1), bucket);
  }
}

TEST(Percentiles, WithinOnePercentOfTheValues) {
  std::mt19937_64 random(1);
  Numbers values;
  FineCounts counts;
  for (int i = 0; i < 10'000; i++) {
    values.push_back(random() >> (random() % 60));
    counts[bucket_of(values.back())]++;
  }
  std::sort(values.begin(), values.end());
  for (double percent : {0.0, 1.0, 16.0, 50.0, 90.0, 99.0, 99.9, 100.0}) {
    auto rank = std::max(1.0, std::ceil(static_cast<double>(values.size()) * percent / 100));
    auto truth = static_cast<double>(values[static_cast<std::size_t>(rank) - 1]);
    EXPECT_NEAR(static_cast<double>(fine_percentile(counts, percent)), truth, truth * 0.008 + 0.5);
  }
  EXPECT_EQ(fine_percentile({}, 50), 0u);
}

}  // namespace
}  // namespace coretap
