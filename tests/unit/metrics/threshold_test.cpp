// Conditions on metrics: which are taken, and when they are met.
#include "metrics/threshold.hpp"

#include "all_tools.hpp"
#include "cli/parser.hpp"

namespace coretap::metrics {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::shared_ptr<const Plan> metrics_of(std::string_view name, const Words& arguments = {}) {
  auto tool = build(*find_tool(name));
  auto parsed = parse_command_line(tool, arguments);
  if (!parsed) throw std::runtime_error(parsed.error().what);
  tool.report = chosen_report(tool, parsed->config);
  return *make_plan(tool, parsed->config, {});
}

/// A tool's series, and the conditions that were met.
struct Judged {
  Judged(std::string_view tool, const Words& arguments, const Words& conditions)
      : plan(metrics_of(tool, arguments)),
        series(std::vector<bool>(plan->labels.size()), plan->values(), 100),
        totals(plan->totals.size()) {
    std::vector<Threshold> all;
    for (auto& text : conditions) {
      auto one = parse_threshold(text);
      if (!one) throw std::runtime_error(one.error().what);
      all.push_back(std::move(*one));
    }
    judge = std::make_unique<Judge>(all, *plan, "entry1", [this](std::size_t number, double value) {
      met.emplace_back(number, value);
    });
  }
  void add(const Words& labels, std::size_t at, std::uint64_t value) {
    Numbers values(plan->values());
    values[at] = value;
    series.add(labels, values, value);
  }
  /// A second later.
  std::size_t look() {
    now += kSecond;
    judge->look(series, totals, now);
    return met.size();
  }

  std::shared_ptr<const Plan> plan;
  SeriesTable series;
  Numbers totals;
  std::unique_ptr<Judge> judge;
  std::vector<std::pair<std::size_t, double>> met;
  std::uint64_t now = 7 * kSecond;
};

TEST(Threshold, Forms) {
  auto t =
      parse_threshold("  coretap_x{disk=\"a \\\"b\\\"\", operation=\"W\"}  p99.9 >  20ms for 10s");
  ASSERT_TRUE(t) << t.error().what;
  EXPECT_EQ(t->metric, "coretap_x");
  EXPECT_EQ(t->labels, (std::vector<std::pair<std::string, std::string>>{{"disk", "a \"b\""},
                                                                         {"operation", "W"}}));
  EXPECT_EQ(t->measure, Threshold::Measure::percentile);
  EXPECT_DOUBLE_EQ(t->percent, 99.9);
  EXPECT_DOUBLE_EQ(t->limit, 0.02);
  EXPECT_EQ(t->seconds, 10);
  EXPECT_EQ(t->words(0.0345), "34.5 ms");
  auto rate = parse_threshold("coretap_x_total < 5K/s");
  ASSERT_TRUE(rate);
  EXPECT_EQ(rate->measure, Threshold::Measure::rate);
  EXPECT_FALSE(rate->above);
  EXPECT_EQ(rate->limit, 5 * 1024);
  EXPECT_EQ(rate->seconds, 0);
  EXPECT_TRUE(names_metric(" coretap_x"));
  EXPECT_FALSE(names_metric("oomkill"));
  for (auto* bad : {"coretap_x",
                    "coretap_x >",
                    "coretap_x > x",
                    "coretap_x > 1 for",
                    "x > 1",
                    "coretap_x > 1 for 0s",
                    "coretap_x > 1 for 2h",
                    "coretap_x > 1 or 2",
                    "coretap_x p0 > 1ms",
                    "coretap_x p100 > 1ms",
                    "coretap_x p99 > 1ms/s",
                    "coretap_x{a} > 1",
                    "coretap_x{a=\"b\" > 1",
                    "coretap_x{a=\"b > 1",
                    "coretap_x{} > 1",
                    "coretap_x > nan",
                    "coretap_x > 1e999",
                    "coretap_x > 1 for inf",
                    "coretap_x>1",
                    "coretap_x > 1kg"})
    EXPECT_FALSE(parse_threshold(bad)) << bad;
  EXPECT_FALSE(parse_threshold("coretap_x > 1 " + std::string(5000, 'x')));
}

TEST(Threshold, MetricsHaveTheirMeasures) {
  const auto histogram = metrics_of("biolatency", {"-D"}), counter = metrics_of("syscount");
  const auto is = [](const Plan& plan, std::string_view text) {
    return applies(*parse_threshold(text), plan, "entry1");
  };
  EXPECT_TRUE(*is(*histogram, "coretap_biolatency_seconds{disk=\"sda\"} p99 > 1ms"));
  EXPECT_TRUE(*is(*histogram, "coretap_biolatency_seconds{entry=\"entry1\"} p99 > 1ms"));
  EXPECT_FALSE(*is(*histogram, "coretap_biolatency_seconds{entry=\"other\"} p99 > 1ms"));
  EXPECT_FALSE(*is(*histogram, "coretap_runqlat_seconds p99 > 1ms"));
  EXPECT_TRUE(*is(*counter, "coretap_syscount_total{syscall=\"read\"} > 100/s"));
  for (auto* wrong : {"coretap_biolatency_seconds > 1ms", "coretap_biolatency_seconds p99 > 1",
                      "coretap_biolatency_seconds p99 > 1K", "coretap_biolatency_seconds > 5/s",
                      "coretap_biolatency_seconds{comm=\"x\"} p99 > 1ms"})
    EXPECT_FALSE(is(*histogram, wrong)) << wrong;
  EXPECT_FALSE(is(*counter, "coretap_syscount_total > 100"));
  EXPECT_FALSE(is(*counter, "coretap_syscount_total > 100ms/s"));
}

TEST(Threshold, PercentilesAreOfTheLastSecond) {
  Judged j("biolatency", {"-D"},
           {"coretap_biolatency_seconds p99 > 10ms", "coretap_biolatency_seconds p99 > 10ms for 3s",
            "coretap_biolatency_seconds{disk=\"sdb\"} p50 > 10ms"});
  ASSERT_EQ(j.plan->families[0].buckets.bounds[3], 16'000u) << "ns";
  // 16.4 ms to 32.8 ms.
  const auto bounds = j.plan->families[0].buckets.bounds;
  const auto slow = static_cast<std::size_t>(
      std::ranges::find_if(bounds, [](auto b) { return b > 20'000'000; }) - bounds.begin());
  j.add({"sda"}, slow, 1000);  // before: not of the last second
  EXPECT_EQ(j.look(), 0u);
  j.add({"sda"}, 3, 1000);
  EXPECT_EQ(j.look(), 0u);
  EXPECT_EQ(j.look(), 0u) << "no events";
  for (int i = 1; i <= 4; i++) {
    j.add({"sda"}, 3, 50);
    j.add({"sda"}, slow, 50);
    j.look();
    EXPECT_EQ(j.met.size(), i < 3 ? 1u : 2u) << i;
  }
  EXPECT_EQ(j.met[0].first, 0u);
  EXPECT_EQ(j.met[1].first, 1u);
  EXPECT_GT(j.met[0].second, 0.0164);
  EXPECT_LE(j.met[0].second, 0.0328);
  j.look();  // none: it begins again
  j.add({"sdb"}, slow, 1);
  EXPECT_EQ(j.look(), 4u) << "all disks, and sdb";
  EXPECT_EQ(j.met.back().first, 2u);
}

TEST(Threshold, Rates) {
  Judged j("syscount", {},
           {"coretap_syscount_total{syscall=\"read\"} > 10/s", "coretap_syscount_total > 10/s",
            "coretap_syscount_total < 2/s for 2s"});
  std::size_t syscall = 0;
  while (j.plan->labels[syscall].name != "syscall") syscall++;
  const auto labels = [&](const std::string& name) {
    Words all(j.plan->labels.size(), "x86_64");
    all[syscall] = name;
    return all;
  };
  std::size_t count = 0;
  for (auto& f : j.plan->families)
    if (f.name == "coretap_syscount_total") count = f.at;
  j.add(labels("read"), count, 1000);
  EXPECT_EQ(j.look(), 0u);
  j.add(labels("read"), count, 6);
  j.add(labels("write"), count, 6);
  EXPECT_EQ(j.look(), 1u);
  EXPECT_EQ(j.met[0], (std::pair<std::size_t, double>(1, 12)));
  j.add(labels("read"), count, 11);
  EXPECT_EQ(j.look(), 2u);
  EXPECT_EQ(j.met[1], (std::pair<std::size_t, double>(0, 11)));
  j.series.clear();  // series may go
  EXPECT_EQ(j.look(), 2u);
  EXPECT_EQ(j.look(), 3u);
  EXPECT_EQ(j.met[2].first, 2u);
}

TEST(Threshold, GaugesAreComparedOneByOne) {
  Judged j("loads", {}, {"coretap_loads > 5", "coretap_loads{state=\"D\"} > 2 for 2s"});
  const auto& labels = j.plan->labels;
  ASSERT_EQ(labels.size(), 1u);
  std::size_t at = 0;
  for (auto& f : j.plan->families)
    if (f.name == "coretap_loads") at = f.at;
  const auto reading = [&](std::uint64_t running, std::uint64_t blocked) {
    j.series.clear();
    j.add({"R"}, at, running);
    j.add({"D"}, at, blocked);
    return j.look();
  };
  EXPECT_EQ(reading(4, 3), 0u) << "7 together";
  EXPECT_EQ(reading(6, 3), 1u);
  EXPECT_EQ(reading(6, 3), 2u);
  EXPECT_EQ(reading(6, 0), 2u);
  EXPECT_EQ(j.met[0].second, 6);
  EXPECT_EQ(j.met[1].second, 3);
}

}  // namespace
}  // namespace coretap::metrics
