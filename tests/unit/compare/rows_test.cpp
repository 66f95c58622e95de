// Tables, events and stacks: false alarms of simulated recordings, planted changes, and the lines
// of reports that recordings are read from. CORETAP_PAIRS: as in worlds_test.cpp.
#include "compare/compare_text.hpp"
#include "compare/comparison.hpp"
#include "compare/stack_picture.hpp"
#include "compare/worlds.hpp"
#include "expect.hpp"

namespace coretap::compare {

namespace {

using Verdict = Line::Verdict;

bool is_change(const Line& line) {
  return line.verdict == Verdict::more || line.verdict == Verdict::less;
}

/// Of many pairs of equal recordings.
struct Alarms {
  double lines = 0, outside = 0, reports = 0, pairs = 0;
  std::string text() const {
    return fmt::format("{:.2f} % of {} lines, {:.2f} % of {} reports", 100 * outside / lines, lines,
                       100 * reports / pairs, pairs);
  }
};

int pair_count() {
  auto* text = std::getenv("CORETAP_PAIRS");
  return text ? std::max(std::atoi(text) / 5, 1) : 24;
}

template <class Make>
Alarms alarms(const Make& make) {
  Alarms found;
  for (int i = 0; i < pair_count(); i++) {
    // Not the seeds of worlds_test.cpp, with which the rule was chosen.
    Random random(static_cast<std::uint64_t>(i) * 15'485'863 + 9'176'423);
    const std::vector<Series> a{make(random)}, b{make(random)};
    auto c = compare(a, b, {.at_least = 0});
    EXPECT_TRUE(c);
    for (auto& line : c->lines) {
      if (!line.low) continue;
      found.lines++;
      found.outside += *line.low > 0 || *line.high < 0;
    }
    found.reports += std::ranges::any_of(c->lines, is_change);
    found.pairs++;
  }
  return found;
}

void expect_few(const char* name, const Alarms& found) {
  if (std::getenv("CORETAP_PAIRS")) fmt::print("{:<28} {}\n", name, found.text());
  // Lines of a report are not independent of each other: as if each pair had 8 that are.
  const auto independent = 8 * found.pairs;
  EXPECT_LE(found.outside / found.lines, 0.015 + 2.5 * std::sqrt(0.015 / independent))
      << name << ": " << found.text();
  EXPECT_LE(found.reports / found.pairs, 0.01 + 2.5 * std::sqrt(0.01 / found.pairs))
      << name << ": " << found.text();
}

const std::pair<const char*, World> kWorlds[] = {
    {"steady", {.values = 60'000}},
    {"10 %, rho 0.5", {.values = 60'000, .correlation = 0.5, .rate_jitter = 0.1}},
    {"15 %, rho 0.8", {.values = 60'000, .correlation = 0.8, .rate_jitter = 0.15}},
    {"16 intervals", {.values = 16'000, .intervals = 16, .correlation = 0.5, .rate_jitter = 0.1}},
};

TEST(CompareRows, EqualTablesRaiseFewAlarms) {
  for (auto& [name, world] : kWorlds) {
    auto& one = world;
    expect_few(name, alarms([&](Random& random) { return simulated_table(one, 60, random); }));
  }
}

TEST(CompareRows, EqualStacksRaiseFewAlarms) {
  for (auto& [name, world] : kWorlds) {
    auto& one = world;
    expect_few(name, alarms([&](Random& random) { return simulated_stacks(one, random); }));
  }
}

TEST(CompareRows, AChangedKeyIsFound) {
  Random random(77);
  const World world{.values = 60'000, .correlation = 0.5, .rate_jitter = 0.05};
  auto changed = world;
  changed.shift = 0.5;
  const std::vector<Series> a{simulated_table(world, 60, random)},
      b{simulated_table(changed, 60, random)};
  auto c = compare(a, b, {});
  ASSERT_TRUE(c);
  for (auto& line : c->lines) {
    if (line.key != "comm=c0") continue;
    if (line.what == "mean bytes") {
      EXPECT_EQ(line.verdict, Verdict::same);
      EXPECT_NEAR(*line.a, 4096 * std::exp(0.5), 400);
      continue;
    }
    EXPECT_EQ(line.verdict, Verdict::more) << line.what;
    EXPECT_LT(*line.low, 0.5) << line.what;
    EXPECT_GT(*line.high, 0.5) << line.what;
  }
  EXPECT_TRUE(says(in_text(*c), "comm=c0 count/s", "comm=c0 bytes/s", "mean bytes"));
  EXPECT_TRUE(says(in_json(*c), R"("what":"bytes/s","key":"comm=c0")"));
  const auto condition = *condition_in("count/s of comm=c0 > +10%");
  EXPECT_EQ(answer(condition, *c).is, Answer::holds);
  const auto mean = *condition_in("mean bytes of comm=c0 > +30%");
  EXPECT_EQ(answer(mean, *c).is, Answer::not_so);
}

/// 2 % of the time, at several lengths of noise.
TEST(CompareRows, TwoPercentOfTheTimeIsTheLargestFrame) {
  int found = 0, first = 0, wrong = 0;
  const int count = pair_count();
  for (int i = 0; i < count; i++) {
    Random random(static_cast<std::uint64_t>(i) * 32'452'843 + 49'979'687);
    const World world{.values = 60'000, .intervals = 60, .correlation = 0.5, .rate_jitter = 0.02};
    auto grown = world;
    grown.shift = 0.02;
    const std::vector<Series> a{simulated_stacks(world, random)},
        b{simulated_stacks(grown, random)};
    auto c = compare(a, b, {});
    ASSERT_TRUE(c);
    const Line* largest = nullptr;
    for (auto& line : c->lines) {
      if (line.what != "self/s" || !is_change(line)) continue;
      if (line.key == "function=grown")
        found++;
      else
        wrong++;
      if (!largest || line.contribution > largest->contribution) largest = &line;
    }
    first += largest && largest->key == "function=grown" && largest->verdict == Verdict::more;
    const auto svg = differential_svg(*c, a, b);
    EXPECT_TRUE(says(svg, "grown", "red: more, blue: less"));
  }
  if (std::getenv("CORETAP_PAIRS"))
    fmt::print("2 % of the time: found {}, largest {}, others {} of {}\n", found, first, wrong,
               count);
  EXPECT_GE(found, 0.95 * count);
  EXPECT_GE(first, 0.95 * count);
  EXPECT_LE(wrong, 0.05 * count + 1);
}

TEST(CompareRows, StacksInText) {
  Random random(5);
  const World world{.values = 200'000};
  auto grown = world;
  grown.shift = 0.04;
  const std::vector<Series> a{simulated_stacks(world, random)}, b{simulated_stacks(grown, random)};
  auto c = compare(a, b, {});
  ASSERT_TRUE(c);
  EXPECT_TRUE(says(in_text(*c), "samples/s", "self grown", "total grown",
                   "stack prog;main;by3;grown", "functions and stacks without a change",
                   "seen would have been"));
  EXPECT_EQ(answer(*condition_in("self/s of function=grown > +50%"), *c).is, Answer::holds);
  // A recording is like itself: nothing is red or blue.
  auto same = compare(a, a, {});
  EXPECT_EQ(std::ranges::count_if(same->lines, is_change), 0);
  // The legend has each style once.
  const auto svg = differential_svg(*c, a, b), unchanged = differential_svg(*same, a, a);
  EXPECT_GT(count_of(svg, "class=\"more6\""), 1u);
  for (auto style : {"more1", "more2", "more3", "more4", "more5", "more6", "less1", "less6"})
    EXPECT_LE(count_of(unchanged, fmt::format("class=\"{}\"", style)), 1u) << style;
  auto other = a;
  other[0].whole = "time_ns";
  EXPECT_TRUE(says(compare(a, other, {}).error().what, "other stacks"));
}

std::string at(int second) {
  return fmt::format(R"("time":"2026-11-29T04:{:02}:{:02}.500000+00:00")", second / 60,
                     second % 60);
}

TEST(CompareRows, LinesOfTables) {
  std::string text;
  for (int i = 0; i < 20; i++)
    for (auto comm : {"a", "b"})
      if (i != 7)
        text += fmt::format(
            R"({{"type":"row","tool":"t",{},"pid":{},"comm":"{}","disk":null,"ios":{},"ios_per_second":9,)"
            R"("bytes":4096,"average_ns":7,"max_ns":5,"time_ns":12000}})"
            "\n",
            at(i), i, comm, i + 1);
  auto s = series_of_lines(text, "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->intervals.size(), 20);  // one without rows
  EXPECT_TRUE(s->intervals[7].counts.empty());
  std::set<std::string> names;
  for (auto& name : s->names) names.insert(name.what + " " + name.key);
  EXPECT_EQ(names, (std::set<std::string>{"bytes comm=a", "bytes comm=b", "ios comm=a",
                                          "ios comm=b", "time_ns comm=a", "time_ns comm=b"}));
  EXPECT_EQ(s->means, (std::map<std::string, std::string>{{"bytes", "ios"}, {"time_ns", "ios"}}));
  EXPECT_EQ(s->events[s->number({"bytes", "comm=a"})], 202);  // without the eighth: 210 - 8
  EXPECT_EQ(s->events[s->number({"ios", "comm=a"})], 0);
  auto c = compare({*s}, {*s}, {});
  ASSERT_TRUE(c);
  EXPECT_EQ(std::ranges::count_if(c->lines, is_change), 0);
}

TEST(CompareRows, LinesOfEvents) {
  std::string text =
      R"({"type":"header","tool":"t","version":"0.1.0","kernel":"6.18",)" + at(0) + "}\n";
  for (int i = 0; i < 400; i++)
    text += fmt::format(
        R"({{"type":"event","tool":"t",{},"monotonic_ns":5,"comm":"{}","file":"f{}","latency_ns":{}}})"
        "\n",
        at(i / 10), i % 2 ? "a" : "b", i, 1000 + i);
  auto s = series_of_lines(text, "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->intervals.size(), 39);
  EXPECT_NEAR(s->seconds(), 39, 1e-6);
  ASSERT_EQ(s->names.size(), 2);
  EXPECT_EQ(s->names[0].key, "comm=b");
  auto c = compare({*s}, {*s}, {.wanted = {{"p90", "comm=a"}}});
  ASSERT_TRUE(c);
  auto line = [&](std::string_view what, std::string_view key) {
    auto found =
        std::ranges::find_if(c->lines, [&](auto& l) { return l.what == what && l.key == key; });
    EXPECT_NE(found, c->lines.end()) << what;
    return found == c->lines.end() ? Line{} : *found;
  };
  EXPECT_NEAR(*line("p50", "").a, 1200, 3);
  EXPECT_NEAR(*line("p90", "comm=a").a, 1360, 4);
  EXPECT_NEAR(*line("events/s", "").a, 400 / 39.0, 0.01);
  EXPECT_NEAR(*line("events/s", "comm=a").a, 200 / 39.0, 0.01);
  EXPECT_EQ(std::ranges::count_if(c->lines,
                                  [](auto& l) { return l.what == "events/s" && l.key.empty(); }),
            1);
}

TEST(CompareRows, LinesOfStacks) {
  std::string text;
  for (int i = 0; i < 16; i++) {
    text += fmt::format(R"({{"type":"report","tool":"t",{}}})", at(i)) + "\n";
    if (i == 3) continue;
    text +=
        R"({"type":"stack","tool":"t","comm":"sh","pid":1,"kernel_stack":["read","entry"],"user_stack":["loop","loop","a;b"],"total_ns":500,"count":2})"
        "\n"
        R"({"type":"stack","tool":"t","comm":"sh","pid":2,"kernel_stack":[],"user_stack":["loop","a;b"],"total_ns":100,"count":1})"
        "\n";
  }
  auto s = series_of_lines(text, "f");
  ASSERT_TRUE(s) << s.error().what;
  EXPECT_EQ(s->whole, "time_ns");
  EXPECT_EQ(s->intervals.size(), 16);
  EXPECT_TRUE(s->intervals[3].counts.empty());
  std::map<std::string, std::uint64_t> sums;
  for (auto& [name, n] : s->intervals[0].counts)
    sums[s->names[name].what + " " + s->names[name].key] += n;
  EXPECT_EQ(sums, (std::map<std::string, std::uint64_t>{
                      {"time_ns ", 600},
                      {"self function=read", 500},
                      {"self function=loop", 100},
                      {"total function=read", 500},
                      {"total function=entry", 500},
                      {"total function=loop", 600},
                      {"total function=a:b", 600},
                      {"stack stack=sh", 600},
                      {"stack stack=sh;a:b", 600},
                      {"stack stack=sh;a:b;loop", 600},
                      {"stack stack=sh;a:b;loop;loop", 500},
                      {"stack stack=sh;a:b;loop;loop;entry", 500},
                      {"stack stack=sh;a:b;loop;loop;entry;read", 500}}));
  EXPECT_EQ(s->events[s->number({"self", "function=read"})], 30);
  EXPECT_FALSE(series_of_lines(R"({"type":"stack","tool":"t","comm":"x","count":1})"
                               "\n",
                               "f"))
      << "without reports there are no intervals";
}

}  // namespace

}  // namespace coretap::compare
