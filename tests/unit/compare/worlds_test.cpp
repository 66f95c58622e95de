// False alarms and changes that are found, of simulated recordings. CORETAP_PAIRS: pairs in each
// world; the full run has 2000, 20,000 in all.
#include "compare/worlds.hpp"
#include "compare/comparison.hpp"
#include "expect.hpp"

namespace coretap::compare {

namespace {

using Verdict = Line::Verdict;

int pairs() {
  auto* text = std::getenv("CORETAP_PAIRS");
  return text ? std::max(std::atoi(text), 1) : 120;
}

/// Of all pairs of a world, by line: p50, p90, p99, events/s.
struct Found {
  std::map<std::string, int> lines;
  std::map<std::string, double> change;
  int reports = 0, all = 0;

  void add(const Comparison& one) {
    bool any = false;
    for (auto& line : one.lines) {
      if (!line.low) continue;
      lines[line.what] += *line.low > 0 || *line.high < 0;
      change[line.what] += *line.change / all;
      any |= line.verdict == Verdict::more || line.verdict == Verdict::less;
    }
    reports += any;
  }
  double share(const std::string& line) { return static_cast<double>(lines[line]) / all; }
};

/// `single`: each line alone; otherwise the verdicts of whole reports.
Found found(const World& world, int count) {
  Found f{.all = count};
  const Choices choices{.at_least = 0};
  for (int i = 0; i < count; i++) {
    Random random(static_cast<std::uint64_t>(i) * 1'000'003 + 17);
    const auto median = 2e5 * std::exp2(random.uniform());  // so bounds have any position
    std::vector<Series> a{simulated(world, median, 0, random)};
    std::vector<Series> b{simulated(world, median, world.shift, random)};
    auto c = compare(a, b, choices);
    f.add(*c);
  }
  return f;
}

/// The number that may be exceeded by chance in a run of this size.
double at_most(double share, int count) {
  return share + 2.5 * std::sqrt(share * (1 - share) / count);
}

void report(const char* name, Found& f) {
  if (!std::getenv("CORETAP_PAIRS")) return;
  fmt::print("{:<28}", name);
  for (auto* line : {"p50", "p90", "p99", "events/s"})
    fmt::print(" {} {:5.2f} % ({:+.2f})", line, 100 * f.share(line), 100 * f.change[line]);
  fmt::print("  reports {:.2f} %\n", 100.0 * f.reports / f.all);
}

TEST(CompareWorlds, EqualRecordingsRaiseFewAlarms) {
  const std::pair<const char*, World> worlds[] = {
      {"equal", {}},
      {"5 %, rho 0.5", {.jitter = 0.05, .correlation = 0.5}},
      {"5 %, rho 0.8", {.jitter = 0.05, .correlation = 0.8, .rate_jitter = 0.1}},
      {"15 %, rho 0.5", {.jitter = 0.15, .correlation = 0.5}},
      {"15 %, rho 0.8", {.jitter = 0.15, .correlation = 0.8, .rate_jitter = 0.15}},
      {"15 %, 1 M", {.values = 1e6, .jitter = 0.15, .correlation = 0.8}},
      {"15 %, 16 intervals", {.intervals = 16, .jitter = 0.15, .correlation = 0.5}},
  };
  for (auto& [name, world] : worlds) {
    const auto count = pairs();
    auto f = found(world, count);
    report(name, f);
    for (auto& [line, n] : f.lines)
      EXPECT_LE(static_cast<double>(n) / count, at_most(0.015, count)) << name << ' ' << line;
    EXPECT_LE(static_cast<double>(f.reports) / count, at_most(0.01, count)) << name;
  }
}

TEST(CompareWorlds, ShiftsAreFound) {
  const auto count = pairs();
  auto many = found({.values = 1e6, .shift = 0.05}, count);
  report("+5 %, 1 M", many);
  for (auto* line : {"p50", "p90", "p99"}) {
    EXPECT_GE(many.share(line), 0.95) << line;
    EXPECT_NEAR(many.change[line], 0.05, 0.0025) << line;
  }
  auto few = found({.shift = 0.05}, count);
  report("+5 %, 100,000", few);
  EXPECT_GE(few.share("p50"), 0.97);
  EXPECT_GE(few.share("p90"), 0.95);
  auto jitter = found({.jitter = 0.05, .shift = 0.05}, count);
  report("+5 %, jitter 5 %", jitter);
  EXPECT_GE(jitter.share("p50"), 0.6);
}

/// A B B A ... of one run, each of 10 intervals.
TEST(CompareWorlds, PairsRaiseFewAlarms) {
  constexpr std::size_t kEach = 10, kPairs = 12;
  for (auto [name, jitter, correlation] :
       {std::tuple{"pairs, 5 %, rho 0.5", 0.05, 0.5}, {"pairs, 15 %, rho 0.8", 0.15, 0.8}}) {
    const auto count = std::max(pairs() / 4, 1);
    Found f{.all = count};
    for (int i = 0; i < count; i++) {
      Random random(static_cast<std::uint64_t>(i) * 7919 + 3);
      const World world{.values = 4e5,
                        .intervals = 2 * kPairs * kEach,
                        .jitter = jitter,
                        .correlation = correlation};
      const auto all = simulated(world, 2e5 * std::exp2(random.uniform()), 0, random);
      std::vector<Series> a, b;
      for (std::size_t part = 0; part < 2 * kPairs; part++) {
        auto phase = all;
        auto from = all.intervals.begin() + static_cast<std::ptrdiff_t>(part * kEach);
        phase.intervals.assign(from, from + kEach);
        ((part + 1) / 2 % 2 ? b : a).push_back(std::move(phase));
      }
      auto c = compare(a, b, {.at_least = 0, .paired = true});
      ASSERT_TRUE(c);
      f.add(*c);
    }
    report(name, f);
    for (auto& [line, n] : f.lines)
      EXPECT_LE(static_cast<double>(n) / count, at_most(0.015, count)) << name << ' ' << line;
  }
}

/// The smallest change of a report is found in 8 of 10 runs.
TEST(CompareWorlds, TheSmallestChangeIsFound) {
  const World world{.values = 300'000, .jitter = 0.05};
  const auto count = pairs();
  Random first(5);
  std::vector<Series> a{simulated(world, 2e5, 0, first)}, b{simulated(world, 2e5, 0, first)};
  double smallest = 0;
  for (int i = 0; i < 20; i++) {
    a[0] = simulated(world, 2e5, 0, first);
    b[0] = simulated(world, 2e5, 0, first);
    smallest += *compare(a, b, {})->lines[0].smallest / 20;
  }
  auto shifted = world;
  shifted.shift = smallest;
  auto f = found(shifted, count);
  EXPECT_GE(f.share("p50"), 0.7) << smallest;
  EXPECT_LE(f.share("p50"), 0.97) << smallest;
}

}  // namespace

}  // namespace coretap::compare
