#include "tools/cpu/perfcount/counters.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace coretap::perfcount {
namespace {

std::string taken(std::string_view text) {
  Settings settings;
  auto result = take_events(settings, text);
  if (!result) return result.error().what;
  std::string all;
  for (auto& event : settings.events)
    all += event.name + "/" + std::to_string(event.group) + (event.event.not_kernel ? "u " : " ");
  return all;
}

TEST(Perfcount, Events) {
  EXPECT_EQ(taken("cs"), "cs/0 ");
  EXPECT_EQ(taken("cycles:u,{branches,branch-misses},cs,{faults,r1c2}"),
            "cycles:u/0u branches/1 branch-misses/1 cs/0 faults/2 r1c2/2 ");
  EXPECT_EQ(taken("cpu/event=1,umask=2/u,{msr/tsc/,a/b,name=misses/}"),
            "cpu/event=1,umask=2/u/0u msr/tsc//1 misses/1 ");
  EXPECT_EQ(taken("cs,cpu/event=1"), "--perf-events: 'cpu/event=1' is not an event of a PMU");
  EXPECT_EQ(taken("{cs"), "--perf-events: '{cs' has a brace without its other");
  EXPECT_EQ(taken("cs}"), "--perf-events: 'cs}' has a brace without its other");
  EXPECT_EQ(taken("{cs}faults"), "--perf-events: '{cs}faults' has a brace without its other");
  EXPECT_EQ(taken("cs,cs"), "--perf-events: cs is given twice");
  EXPECT_EQ(taken(""), "--perf-events: needs an event");
  EXPECT_EQ(taken("{}"), "--perf-events: there is no perf event ''");
  EXPECT_EQ(taken("cs,,faults"), "--perf-events: there is no perf event ''");
}

Line line(std::string event, std::uint64_t count, bool is_clock = false) {
  Line line{.event = std::move(event), .count = count, .seconds = 2, .ratio = {}};
  line.is_clock = is_clock;
  return line;
}

std::string ratios(std::vector<Line> lines) {
  add_ratios(lines, 0);
  std::string all;
  for (auto& l : lines)
    all += l.ratio ? std::to_string(*l.ratio) + " " + std::string(l.ratio_unit) + "; " : "-; ";
  return all;
}

TEST(Perfcount, Ratios) {
  EXPECT_EQ(ratios({line("task-clock", 1'000'000'000, true), line("cycles", 3'000'000'000),
                    line("instructions", 1'500'000'000), line("cs", 7)}),
            "0.500000 CPUs; 3.000000 GHz; 0.500000 per cycle; -; ");
  EXPECT_EQ(ratios({line("branches:u", 200), line("branch-misses:u", 1), line("branch-misses", 2)}),
            "-; 0.005000 of branches; -; ");
  EXPECT_EQ(ratios({line("branches", 0), line("branch-misses", 0)}), "-; -; ");
}

/// Events and counts in a recording.
TEST(Perfcount, Answers) {
  const std::vector<EventNames> events = {
      {.name = "cycles", .is_clock = false, .shared = true},
      {.name = "power/energy/", .unit = "Joules", .scale = 2.3e-10, .snapshot = true}};
  const auto names = names_from(packed(events));
  ASSERT_EQ(names.size(), 2u);
  EXPECT_EQ(names[0].name, "cycles");
  EXPECT_TRUE(names[0].shared && !names[0].is_clock && !names[0].snapshot);
  EXPECT_EQ(names[1].unit, "Joules");
  EXPECT_EQ(names[1].scale, 2.3e-10);
  EXPECT_TRUE(names[1].snapshot && !names[1].shared);
  EXPECT_EQ(names_from(packed({{.name = "x", .scale = NAN}}))[0].scale, 1);

  Counts counts;
  counts.values[{-1, 0}] = {1, 2, 3};
  counts.values[{7, 1}] = {UINT64_MAX, 0, 5};
  counts.times[40] = {8, 9};
  const auto bytes = packed(counts);
  const auto again = counts_from(bytes, 2);
  EXPECT_EQ(packed(again), bytes);
  ASSERT_EQ(again.values.size(), 2u);
  EXPECT_EQ(again.values.at({7, 1}).value, UINT64_MAX);
  EXPECT_EQ(again.values.at({-1, 0}).running_ns, 3u);
  ASSERT_EQ(again.times.size(), 1u);
  EXPECT_EQ(again.times.at(40).system, 9u);
  // Of events that are not there.
  EXPECT_EQ(counts_from(bytes, 1).values.size(), 1u);
  for (std::size_t size = 0; size < bytes.size(); size++)
    EXPECT_LE(counts_from(std::string_view(bytes).substr(0, size), 2).values.size(), 2u);
}

}  // namespace
}  // namespace coretap::perfcount
