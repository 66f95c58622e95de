// The text format of Prometheus.
#include "metrics/page.hpp"
#include "expect.hpp"

namespace coretap::metrics {
namespace {

constexpr BaseUnit kNano{"seconds", 1, 1}, kMicro{"seconds", 1, 1'000}, kPages{"bytes", 4096};

TEST(MetricsPage, NumbersHaveTheDigitsOfTheirUnit) {
  constexpr BaseUnit kThousandths{.thousandths = true};
  struct {
    BaseUnit unit;
    std::uint64_t number;
    std::string_view text;
  } const cases[] = {{kNano, 0, "0"},
                     {kNano, 1, "0.000000001"},
                     {kNano, 1'500'000'000, "1.5"},
                     {kNano, 7'000'000'000, "7"},
                     {kMicro, 2'000'001, "2.000001"},
                     {kPages, 3, "12288"},
                     {kPages, UINT64_MAX, "18446744073709551615"},
                     {kThousandths, 0, "0.000"},
                     {kThousandths, 1'041, "1.041"},
                     {kThousandths, static_cast<std::uint64_t>(-1'000), "-1.000"},
                     {kThousandths, static_cast<std::uint64_t>(-7), "-0.007"}};
  for (auto& c : cases) EXPECT_EQ(in_base_unit(c.unit, c.number), c.text);
}

TEST(MetricsPage, LabelsAreEscaped) {
  EXPECT_EQ(labels_text({}), "");
  EXPECT_EQ(labels_text({{"comm", "a\"b\\c\nd"}, {"op", "R"}}),
            "{comm=\"a\\\"b\\\\c\\nd\",op=\"R\"}");
  EXPECT_EQ(label_value("a\xff"), "a\xef\xbf\xbd");
  EXPECT_EQ(label_value(std::string(200, 'x')).size(), 128u);
  // No partial character at the end.
  std::string umlauts;
  for (int i = 0; i < 100; i++) umlauts += "\xc3\xa4";
  auto cut = label_value("x" + umlauts);
  EXPECT_EQ(cut.size(), 127u);
  EXPECT_EQ(cut.substr(cut.size() - 2), "\xc3\xa4");
}

TEST(MetricsPage, HistogramsAreCumulative) {
  Family f{.name = "h_seconds", .type = Type::histogram, .help = "h", .unit = kNano};
  f.buckets = {.first = 0, .bounds = {2'000, 4'000}};
  std::uint64_t values[] = {3, 2, 1, 12'345};
  Page page;
  page.family(f.name, f.type, "with \\ and\nlines");
  page.samples(f, "{disk=\"sda\"}", values);
  EXPECT_EQ(page.take(),
            "# HELP h_seconds with \\\\ and\\nlines\n"
            "# TYPE h_seconds histogram\n"
            "h_seconds_bucket{disk=\"sda\",le=\"0.000002\"} 3\n"
            "h_seconds_bucket{disk=\"sda\",le=\"0.000004\"} 5\n"
            "h_seconds_bucket{disk=\"sda\",le=\"+Inf\"} 6\n"
            "h_seconds_sum{disk=\"sda\"} 0.000012345\n"
            "h_seconds_count{disk=\"sda\"} 6\n");
}

TEST(MetricsPage, FamiliesOfSeveralPagesComeTogether) {
  auto one = [](std::string_view family, std::string_view labels) {
    Page page;
    page.family(family, Type::counter, "help");
    page.sample(family, labels, std::uint64_t{1});
    return page.take();
  };
  MergedPage all;
  all.add(one("a_total", "{tool=\"x\"}") + one("b_total", ""));
  all.add(one("a_total", "{tool=\"y\"}"));
  all.add("what is no page\n");
  EXPECT_EQ(all.text(),
            "# HELP a_total help\n# TYPE a_total counter\na_total{tool=\"x\"} 1\n"
            "a_total{tool=\"y\"} 1\n"
            "# HELP b_total help\n# TYPE b_total counter\nb_total 1\n");
}

}  // namespace
}  // namespace coretap::metrics
