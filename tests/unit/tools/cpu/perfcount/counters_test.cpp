#include "tools/cpu/perfcount/counters.hpp"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace coretap::perfcount
