#include "compare/comparison.hpp"

#include "compare/compare_text.hpp"
#include "compare/worlds.hpp"
#include "coretap/sanitize.hpp"
#include "expect.hpp"

namespace coretap::compare {

namespace {

using Verdict = Line::Verdict;

Series recording(const World& world, std::uint64_t seed, double shift = 0) {
  Random random(seed);
  return simulated(world, 2.3e5, shift, random);
}

const Line& line(const Comparison& c, std::string_view what, std::string_view key = {}) {
  static const Line kNone;
  auto at = std::ranges::find_if(c.lines, [&](auto& l) { return l.what == what && l.key == key; });
  EXPECT_NE(at, c.lines.end()) << what;
  return at == c.lines.end() ? kNone : *at;
}

int changes(const Comparison& c) {
  return static_cast<int>(std::ranges::count_if(
      c.lines, [](auto& l) { return l.verdict == Verdict::more || l.verdict == Verdict::less; }));
}

Comparison compared(const Series& a, const Series& b, const Choices& choices = {}) {
  auto c = compare({a}, {b}, choices);
  EXPECT_TRUE(c) << (c ? "" : c.error().what);
  return c ? *c : Comparison{};
}

/// Some of the events did not get into the recording, and are counted.
Series with_losses(Series s, std::uint64_t each) {
  std::uint64_t seen = 0;
  for (auto& interval : s.intervals)
    for (auto& [name, h] : interval.histograms)
      for (auto& [bucket, n] : h.counts) {
        auto lost = (seen + n) / each - seen / each;
        seen += n;
        n -= lost;
        s.facts.lost += lost;
        s.facts.kept -= lost;
      }
  return s;
}

TEST(Compare, ARecordingIsLikeItself) {
  for (auto& world : {World{}, World{.jitter = 0.15, .correlation = 0.8, .rate_jitter = 0.2}})
    for (std::uint64_t seed = 1; seed <= 20; seed++) {
      auto whole = recording(world, seed);
      EXPECT_EQ(changes(compared(whole, whole)), 0);
      auto half = whole;
      half.intervals.resize(30);
      EXPECT_EQ(changes(compared(whole, half)), 0) << seed;
      EXPECT_EQ(changes(compared(half, whole)), 0) << seed;
    }
}

TEST(Compare, LostEventsGiveWiderRanges) {
  auto whole = recording({}, 3);
  auto rest = with_losses(whole, 50);
  EXPECT_NEAR(rest.facts.lost_share(), 0.02, 1e-4);
  auto same = compared(whole, whole), less = compared(whole, rest);
  EXPECT_EQ(changes(less), 0);
  for (auto what : {"p50", "p90"}) {
    EXPECT_LT(*line(less, what).low, *line(same, what).low) << what;
    EXPECT_GT(*line(less, what).high, *line(same, what).high) << what;
    EXPECT_GT(*line(less, what).smallest, *line(same, what).smallest) << what;
  }
  // 2 % are lost: the slowest 1 % may be any of them.
  EXPECT_EQ(line(less, "p99").verdict, Verdict::lost);
  EXPECT_NEAR(*line(less, "events/s").change, 0, 1e-3);
  // A change that lost events cannot explain is found.
  auto slower = with_losses(recording({.values = 1e6}, 4, 0.1), 500);
  EXPECT_EQ(line(compared(recording({.values = 1e6}, 5), slower), "p50").verdict, Verdict::more);
}

TEST(Compare, TooShortRecordingsAreNotJudged) {
  auto c = compared(recording({.intervals = 15}, 1), recording({.intervals = 15}, 2, 1.0));
  EXPECT_EQ(changes(c), 0);
  EXPECT_EQ(line(c, "p50").verdict, Verdict::few);
  // p99 of 700 values: 7 are beyond it.
  c = compared(recording({.values = 600}, 1), recording({.values = 600}, 2, 1.0));
  EXPECT_EQ(line(c, "p99").verdict, Verdict::few);
  EXPECT_EQ(line(c, "p50").verdict, Verdict::more);
}

TEST(Compare, SmallChangesDoNotCount) {
  auto a = recording({.values = 1e7}, 1), b = recording({.values = 1e7}, 2, 0.02);
  EXPECT_EQ(line(compared(a, b), "p50").verdict, Verdict::same);
  EXPECT_EQ(line(compared(a, b, {.at_least = 0.01}), "p50").verdict, Verdict::more);
  EXPECT_EQ(line(compared(b, a, {.at_least = 0.01}), "p50").verdict, Verdict::less);
}

TEST(Compare, OldHistogramsHaveExactSharesAndRanges) {
  auto a = folded(recording({.values = 1e6}, 1)), b = folded(recording({.values = 1e6}, 2, 0.2));
  auto c = compared(a, b);
  auto& p99 = line(c, "p99");
  EXPECT_EQ(p99.kind, Line::Kind::range);
  EXPECT_EQ(p99.verdict, Verdict::untested);
  EXPECT_EQ(p99.a_below, 2 * *p99.a);
  auto& above = line(c, "above");
  EXPECT_EQ(above.verdict, Verdict::more);
  Sums sums;
  for (auto& i : a.intervals)
    for (auto& [name, h] : i.histograms) sums.add(h);
  EXPECT_NEAR(*above.a, share_above(sums, a.buckets.of(static_cast<std::uint64_t>(above.bound))),
              1e-12);
  EXPECT_TRUE(says(in_text(c), "above 256 us", "wide buckets: no test"));
  EXPECT_EQ(changes(compared(a, a)), 0);
}

TEST(Compare, DifferentThingsAreRefused) {
  auto a = recording({}, 1), b = a;
  auto why = [&] {
    auto c = compare({a}, {b}, {});
    return c ? std::string() : c.error().what;
  };
  EXPECT_EQ(why(), "");
  b.facts.name = "runqlat";
  EXPECT_EQ(why(), "recordings of simulated and runqlat cannot be compared");
  b = a;
  b.facts.counted = "--queued";
  EXPECT_TRUE(says(why(), "count different events"));
  b = a;
  b.buckets = Buckets::fine_of({.step = 1'000'000});
  EXPECT_TRUE(says(why(), "different bounds"));
  // One with fine buckets and one without have slots in common.
  b = folded(a);
  EXPECT_EQ(why(), "");
  b = a;
  b.intervals.clear();
  EXPECT_TRUE(says(why(), "no intervals"));
  b = a;
  EXPECT_TRUE(says(compare({a, a}, {b, b}, {}).error().what, "2 recordings with 2"));
  EXPECT_TRUE(says(compare({a}, {b, b, b}, {}).error().what, "1 recordings with 3"));
  EXPECT_TRUE(says(compare({a}, {b}, {.paired = true}).error().what, "not pairs"));
}

TEST(Compare, SetsOfRecordings) {
  std::vector<Series> a, b, c;
  for (std::uint64_t i = 0; i < 5; i++) {
    a.push_back(recording({.intervals = 10}, 10 + i));
    b.push_back(recording({.intervals = 10}, 20 + i));
    c.push_back(recording({.intervals = 10}, 30 + i, 0.1));
  }
  EXPECT_EQ(changes(*compare(a, b, {})), 0);
  auto more = *compare(a, c, {});
  EXPECT_EQ(line(more, "p50").verdict, Verdict::more);
  EXPECT_NEAR(*line(more, "p50").change, 0.1, 0.02);
}

/// Both of a pair have the same load, which is another one in each pair.
TEST(Compare, PairsSeeTheSameDrift) {
  std::vector<Series> a, b;
  for (std::uint64_t i = 0; i < 12; i++) {
    Random random(100 + i);
    const auto load = 2e5 * std::exp(0.3 * random.normal());
    a.push_back(simulated({.intervals = 10}, load, 0, random));
    b.push_back(simulated({.intervals = 10}, load, 0.06, random));
  }
  EXPECT_EQ(changes(*compare(a, b, {})), 0);
  EXPECT_EQ(line(*compare(a, b, {.paired = true}), "p50").verdict, Verdict::more);
}

/// Disk a is the same in both, disk b gets slower.
Series of_two_disks(std::uint64_t seed, double shift) {
  auto all = recording({.values = 1e6}, seed);
  auto other = recording({.values = 5e5}, seed + 100, shift);
  Series s;
  s.facts = all.facts;
  s.buckets = all.buckets;
  const auto a = s.number({"events", "disk=vda"}), b = s.number({"events", "disk=vdb"});
  for (std::size_t i = 0; i < all.intervals.size(); i++)
    s.intervals.push_back({.seconds = 1,
                           .histograms = {{a, all.intervals[i].histograms[0].second},
                                          {b, other.intervals[i].histograms[0].second}}});
  return s;
}

TEST(Compare, KeysThatCarryAChange) {
  auto c = compared(of_two_disks(1, 0), of_two_disks(2, 0.5));
  double sum = 0;
  int parts = 0;
  for (auto& each : c.contributions) {
    if (each.what != "p90") continue;
    sum += each.part;
    parts++;
    EXPECT_EQ(each.changed, each.key == "disk=vdb");
    EXPECT_GT(each.part, each.key == "disk=vdb" ? 0.9 : -0.1);
  }
  EXPECT_EQ(parts, 2);
  EXPECT_NEAR(sum, 1, 1e-9);
  EXPECT_TRUE(says(in_text(c), "disk=vdb carries", "of the change of p90; disk=vda is unchanged."));
  auto choice = Choices{.wanted = {{"p50", "disk=vdb"}, {"p50", "disk=vda"}, {"mean", ""}}};
  c = compared(of_two_disks(1, 0), of_two_disks(2, 0.5), choice);
  EXPECT_NEAR(*line(c, "p50", "disk=vdb").change, 0.5, 0.02);
  EXPECT_EQ(line(c, "p50", "disk=vda").verdict, Verdict::same);
  EXPECT_EQ(line(c, "mean").verdict, Verdict::more);
}

/// Rows of `keys` keys with `rate` events per second each, but for one.
Series table(std::uint64_t seed, int keys, double rate, double jitter, double first) {
  Series s;
  s.facts.name = "table";
  Random random(seed);
  for (int i = 0; i < 60; i++) {
    Interval interval{.seconds = 1};
    const auto load = std::exp(jitter * random.normal());
    for (int k = 0; k < keys; k++)
      if (auto n = random.poisson(rate * load * (k ? 1 : first)))
        interval.counts.emplace_back(s.number({"calls", fmt::format("comm=c{}", k)}), n);
    s.intervals.push_back(std::move(interval));
  }
  return s;
}

TEST(Compare, RowsAreRates) {
  int alarms = 0, doubled = 0;
  for (std::uint64_t i = 0; i < 30; i++) {
    alarms +=
        changes(compared(table(2 * i, 200, 5, 0.15, 1), table(2 * i + 1, 200, 5, 0.15, 1))) > 0;
    auto c = compared(table(2 * i, 20, 5, 0.1, 1), table(2 * i + 1, 20, 5, 0.1, 2.5));
    doubled += line(c, "calls/s", "comm=c0").verdict == Verdict::more;
    EXPECT_EQ(c.lines[1].key, "comm=c0");  // the largest contribution
  }
  EXPECT_LE(alarms, 1);
  EXPECT_GE(doubled, 29);
}

/// The correlation of intervals, computed in two ways.
TEST(Compare, RatesOfRowsAreThoseOfHistograms) {
  auto rows = [](Series s) {
    for (auto& interval : s.intervals) {
      for (auto& [name, h] : interval.histograms)
        for (auto& [bucket, n] : h.counts) interval.counts.emplace_back(name, n);
      interval.histograms.clear();
    }
    return s;
  };
  for (std::uint64_t i = 0; i < 10; i++) {
    const World world{.correlation = 0.8, .rate_jitter = 0.2};
    auto a = recording(world, 2 * i), b = recording(world, 2 * i + 1);
    auto one = line(compared(a, b), "events/s"),
         other = line(compared(rows(a), rows(b)), "events/s");
    EXPECT_NEAR(*one.change, *other.change, 1e-9);
    EXPECT_NEAR(std::log1p(*one.smallest) / std::log1p(*other.smallest), 1, 0.1);
    EXPECT_EQ(one.kind, other.kind);
  }
}

TEST(Compare, KeysThatAreNewOrGone) {
  auto a = table(1, 5, 50, 0.05, 1), b = table(2, 4, 50, 0.05, 0);
  auto c = compared(a, b, {.wanted = {{"share", "comm=c1"}}});
  EXPECT_EQ(line(c, "calls/s", "comm=c0").verdict, Verdict::less);
  EXPECT_TRUE(line(c, "calls/s", "comm=c0").gone_or_new);
  EXPECT_EQ(line(c, "calls/s", "comm=c1").verdict, Verdict::same);
  EXPECT_NEAR(*line(c, "share", "comm=c1").change, 5.0 / 3 - 1, 0.1);
  auto back = compared(b, a);
  EXPECT_EQ(line(back, "calls/s", "comm=c4").verdict, Verdict::more);
  EXPECT_TRUE(says(in_text(c), "comm=c0", "gone"));
  EXPECT_TRUE(says(in_text(back), "comm=c0", "new"));
  // Both sides have a few events of it.
  auto d = compared(table(1, 1, 0.05, 0, 1), table(2, 1, 0.05, 0, 1));
  EXPECT_EQ(d.rare, 1);
  EXPECT_EQ(changes(d), 0);
}

TEST(CompareText, LinesAreAtMost80Columns) {
  auto a = of_two_disks(1, 0), b = of_two_disks(2, 0.5);
  a.facts.kernel = "6.18.44";
  b.facts.kernel = "6.18.45";
  auto c = compared(a, b);
  EXPECT_EQ(c.different, Words{"kernel"});
  auto text = in_text(c);
  EXPECT_TRUE(says(text, "different: kernel", "0 lost in both", "p50", "events/s", "99 % sure"));
  auto lines = lines_of(text);
  for (std::size_t i = 1; i < lines.size(); i++)
    EXPECT_LE(lines[i].size(), lines[i].find("carries") == std::string::npos ? 80 : 200)
        << lines[i];
  for (auto& each : lines_of(in_json(c))) EXPECT_TRUE(parsed_json(each).HasMember("type"));
  auto p50 = parsed_json(lines_of(in_json(c))[1]);
  for (auto* key : {"a", "b", "change", "low", "high", "p", "smallest"})
    EXPECT_TRUE(p50[key].IsNumber()) << key;
  EXPECT_EQ(members(p50, "type what verdict"), "\"change\" \"p50\" \"more\"");
  for (auto& each : lines_of(in_csv(c))) EXPECT_EQ(count_of(each, ","), 11) << each;
}

TEST(CompareText, LongNamesAreCut) {
  Comparison c;
  c.lines = {
      {.what = "p99", .key = "comm=\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4\u00e4", .a = 1.0},
      {.what = "p99", .key = "file=\x1b[31m" + std::string(200, 'x'), .a = 1.0}};
  auto text = in_text(c);
  EXPECT_EQ(valid_utf8(text), text);
  EXPECT_EQ(text.find('\x1b'), text.npos);
  EXPECT_TRUE(says(text, "p99 of file=", ".."));
}

TEST(CompareText, Amounts) {
  EXPECT_EQ(amount(212'400, unit::ns), "212 us");
  EXPECT_EQ(amount(2'312'000, unit::ns), "2.31 ms");
  EXPECT_EQ(amount(999'900, unit::ns), "1.00 ms");
  EXPECT_EQ(amount(7, unit::ns), "7.00 ns");
  EXPECT_EQ(amount(-41e6, unit::ns), "-41.0 ms");
  EXPECT_EQ(amount(4096, unit::bytes), "4.00 KiB");
  EXPECT_EQ(amount(1944, unit::plain), "1,944");
  EXPECT_EQ(amount(1234567, unit::plain), "1,234,567");
  EXPECT_EQ(percent(0.0512), "+5.1 %");
  EXPECT_EQ(percent(-0.999), "-99.9 %");
  EXPECT_EQ(percent(11.3), "x 12.3");
  EXPECT_EQ(percent(INFINITY), "x ?");
}

TEST(CompareText, ConditionsAreParsed) {
  auto parsed = [](const std::string& text) {
    auto c = condition_in(text);
    if (!c) return c.error().what;
    return fmt::format("{}|{}|{}|{:g}|{}", c->what, c->key, c->above ? '>' : '<', c->limit,
                       c->of == Condition::parts ? "parts" : "amount");
  };
  expect_each(parsed, {
                          "p99 > +10% => p99||>|0.1|parts",
                          "p99>10 % => p99||>|0.1|parts",
                          "events/s < -5% => events/s||<|-0.05|parts",
                          "p99.9 of disk=vda > 2ms => p99.9|disk=vda|>|2e+06|amount",
                          "rate of comm=a>b > +1/s => rate|comm=a>b|>|1|amount",
                          "share of comm=sh > +50% => share|comm=sh|>|0.5|parts",
                          "lost > 0.1% => lost||>|0.001|parts",
                      });
  expect_says(parsed, {
                          "p99 => has no < or >",
                          "p99 > => has no number",
                          "p99 > 10 furlongs => unknown unit",
                          "p99 > 10/s => unknown unit",
                          "events/s > 10ms => unknown unit",
                          "p101 > 10% => compares p50",
                          "share > 10% => share of KEY=VALUE",
                          "p99 of vda > 1% => a key is NAME=VALUE",
                          "p99 > nan% => has no number",
                      });
}

TEST(CompareText, ConditionsHoldIfTheWholeRangeDoes) {
  Comparison c{.scale = {.unit = unit::ns}};
  c.b.lost = 2;
  c.b.kept = 998;
  c.lines = {{.what = "p99",
              .a = 1e6,
              .b = 1.273e6,
              .change = 0.273,
              .low = 0.148,
              .high = 0.411,
              .smallest = 0.1,
              .verdict = Verdict::more},
             {.what = "events/s",
              .kind = Line::Kind::rate,
              .a = 1000,
              .b = 1004,
              .change = 0.004,
              .low = -0.022,
              .high = 0.029,
              .smallest = 0.03,
              .verdict = Verdict::same},
             {.what = "max", .a = 41e6, .b = 38e6, .change = -0.0732},
             {.what = "p50", .verdict = Verdict::few}};
  auto said = [&](const std::string& text) { return answer(*condition_in(text), c).text; };
  for (auto* each :
       {"p99 > +10%: holds (+27.3 %, at least +14.8 %)",
        "events/s < -5%: does not hold (+0.4 %, at least -2.2 %)",
        "events/s > 5%: does not hold (+0.4 %, at most +2.9 %)",
        "p99 > +20%: undecided (+27.3 %, +14.8 %..+41.1 %)",
        "p99 > 0.1ms: holds (+273 us, at least +148 us)",
        "rate > -100/s: holds (+4.00 /s, at least -22.0 /s)",
        "p99 < 50%: holds (+27.3 %, at most +41.1 %)",
        "max > 0%: does not hold (-7.3 %, one value)",
        "p50 > 0%: undecided (too few intervals or events)",
        "p90 > 0%: undecided (there is no such value)", "lost > 0.1%: holds (0.2 %)"}) {
    auto condition = std::string(each).substr(0, std::string_view(each).find(": "));
    EXPECT_EQ(said(condition), each);
  }
}

TEST(CompareText, PlansSayHowLongRecordingsMustBe) {
  auto p = plan(recording({}, 1), 0.05);
  ASSERT_TRUE(p);
  ASSERT_EQ(p->lines.size(), 4);
  auto& p99 = p->lines[2];
  EXPECT_GT(p99.smallest, 0.04);
  EXPECT_NEAR(p99.seconds / 60, std::pow(std::log1p(p99.smallest) / std::log1p(0.05), 2), 1e-6);
  EXPECT_TRUE(says(in_text(*p), "seen from", "+5.0 % needs", "p99", "2 x "));
  EXPECT_FALSE(plan(recording({.intervals = 10}, 1), 0.05));
}

}  // namespace

}  // namespace coretap::compare
