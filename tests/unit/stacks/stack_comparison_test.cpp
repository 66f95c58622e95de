#include "stacks/stack_comparison.hpp"

#include "expect.hpp"

namespace coretap {
namespace compared {
namespace {

constexpr double kMs = 1e6;

StackComparison::Stack stack(const std::string& function, const std::string& state = "cpu.user") {
  return {{"task", "main", function, '[' + state + ']'}, state, function};
}

/// `jitter`: of the parts, in turns.
void add(StackComparison& to, const StackComparison::Stack& s, double before, double now,
         double jitter) {
  if (before > 0) to.add_old(s, before, jitter * jitter / 12);
  if (now <= 0) return;
  to.add_new(s, now);
  for (std::size_t i = 0; i < 12; i++) to.add_slice(s, i, now + (i % 2 ? jitter : -jitter));
}

StackComparison comparison() { return {std::vector<double>(12, 1.0), 12.0}; }

std::string style_of(const std::string& svg, const std::string& name) {
  auto at = svg.find("<title>" + name + "\n");
  if (at == svg.npos) return "(none)";
  at = svg.find("<rect class=\"", at) + 13;
  return svg.substr(at, svg.find('"', at) - at);
}

TEST(StackComparison, PlantedChangesAreTheLargest) {
  auto c = comparison();
  add(c, stack("f"), 300 * kMs, 320 * kMs, kMs);
  add(c, stack("g"), 400 * kMs, 380 * kMs, kMs);
  add(c, stack("h"), 299 * kMs, 300 * kMs, kMs);
  auto changes = c.changes();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].function, "f");
  EXPECT_NEAR(changes[0].change(), 20 * kMs, 1);
  EXPECT_EQ(changes[0].path, "task;main;f;[cpu.user]");
  EXPECT_EQ(changes[1].function, "g");
  auto svg = c.svg({"title", "", {}});
  EXPECT_EQ(style_of(svg, "f"), "more6");
  EXPECT_EQ(style_of(svg, "g"), "less6");
  EXPECT_EQ(style_of(svg, "h"), "same");
  EXPECT_TRUE(says(svg, "now 320.0 ms/s, recorded 300.0 ms/s: +20.0 ms/s", "title"));
}

TEST(StackComparison, SpreadOfThirdsIsNoise) {
  auto c = comparison();
  auto s = stack("f");
  c.add_old(s, 300 * kMs, 0);
  c.add_new(s, 330 * kMs);
  // The thirds are 320, 330 and 340: their standard deviation is 10.
  for (std::size_t i = 0; i < 12; i++)
    c.add_slice(s, i, (320 + 10 * static_cast<double>(i / 4)) * kMs);
  EXPECT_TRUE(c.changes().empty());
  c.add_new(s, 1 * kMs);
  auto changes = c.changes();
  ASSERT_EQ(changes.size(), 1u);
  EXPECT_NEAR(changes[0].noise, 30 * kMs, kMs);
}

TEST(StackComparison, EqualRunsDoNotDiffer) {
  std::mt19937 random(1);
  auto samples = [&](double hits) {
    return static_cast<double>(std::poisson_distribution<>(hits)(random));
  };
  int alarms = 0;
  for (int run = 0; run < 200; run++) {
    auto c = comparison();
    for (int f = 0; f < 20; f++) {
      auto s = stack("f" + std::to_string(f));
      const auto mean = 5.0 * (f + 1);  // samples in a part, of 1 ms each
      auto before = samples(12 * mean) / 12;
      c.add_old(s, before * kMs, before / 12 * kMs * kMs);
      double now = 0;
      for (std::size_t i = 0; i < 12; i++) {
        auto part = samples(mean);
        now += part / 12;
        c.add_slice(s, i, part * kMs);
      }
      c.add_new(s, now * kMs);
    }
    alarms += !c.changes().empty();
  }
  EXPECT_LE(alarms, 4) << "of 4,000 frames";
}

TEST(StackComparison, NothingVanishes) {
  auto c = comparison();
  add(c, stack("f"), 300 * kMs, 300 * kMs, kMs);
  add(c, stack("gone"), 100 * kMs, 0, kMs);
  add(c, stack("rare"), kMs / 10, 0, kMs);
  add(c, stack("fresh"), 0, 50 * kMs, kMs);
  auto changes = c.changes();
  ASSERT_EQ(changes.size(), 2u);
  EXPECT_EQ(changes[0].function, "gone");
  EXPECT_EQ(changes[1].function, "fresh");
  auto svg = c.svg({"title", "", {}});
  EXPECT_EQ(style_of(svg, "gone"), "gone6");
  EXPECT_EQ(style_of(svg, "rare"), "gone");
  EXPECT_EQ(style_of(svg, "fresh"), "more3");
  EXPECT_TRUE(says(svg, "total: 450,100,000 nanoseconds", "dashed edge",
                   "100.1 ms/s of the width: frames that only the recorded run has"));
}

TEST(StackComparison, ShortRunsShowNoChange) {
  StackComparison c({1.0, 1.0}, 2.0);
  c.add_old(stack("f"), 100 * kMs, 0);
  c.add_new(stack("f"), 900 * kMs);
  EXPECT_TRUE(c.changes().empty());
  EXPECT_TRUE(says(c.svg({"title", "", {}}), "too short to know the noise"));
}

TEST(StackComparison, EmptyRuns) {
  StackComparison c({}, 0);
  EXPECT_TRUE(c.changes().empty());
  EXPECT_TRUE(says(c.svg({"title", "", {}}), "</svg>"));
}

}  // namespace
}  // namespace compared
}  // namespace coretap
