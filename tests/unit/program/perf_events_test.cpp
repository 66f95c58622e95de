#include "kernel/perf_events.hpp"

#include <linux/perf_event.h>

#include "coretap/tool.hpp"
#include "expect.hpp"
#include "program/load.hpp"
#include "program/section.hpp"

namespace coretap {
namespace {

/// The config of a cache event, as in perf_event_open(2).
constexpr std::uint64_t cache(std::uint64_t id, std::uint64_t operation, std::uint64_t result) {
  return id | operation << 8 | result << 16;
}

TEST(PerfEvents, Names) {
  const struct {
    const char* name;
    std::uint32_t type;
    std::uint64_t config;
  } cases[] = {
      {"cpu-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK},
      {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
      {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
      {"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN},
      {"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ},
      {"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
      {"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
      {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
      {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
      {"cache-references", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES},
      {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
      {"branch-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES},
      {"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES},
      {"ref-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES},
      {"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND},
      {"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND},
      {"LLC-loads", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_LL, 0, 0)},
      {"LLC-load-misses", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_LL, 0, 1)},
      {"LLC-stores", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_LL, 1, 0)},
      {"LLC-store-misses", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_LL, 1, 1)},
      {"L1-dcache-prefetches", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_L1D, 2, 0)},
      {"L1-icache-load-misses", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_L1I, 0, 1)},
      {"dTLB-store-misses", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_DTLB, 1, 1)},
      {"iTLB-loads", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_ITLB, 0, 0)},
      {"node-loads", PERF_TYPE_HW_CACHE, cache(PERF_COUNT_HW_CACHE_NODE, 0, 0)},
      {"r1a8", PERF_TYPE_RAW, 0x1a8},
      {"r01C2", PERF_TYPE_RAW, 0x1c2},
  };
  for (auto& c : cases) {
    auto event = perf_event(c.name);
    ASSERT_TRUE(event) << c.name;
    EXPECT_EQ(*event, (PerfEvent{c.type, c.config})) << c.name;
  }
}

TEST(PerfEvents, EachNameOnceAndEachFound) {
  std::set<std::string> names;
  for (auto& name : perf_event_names()) {
    EXPECT_TRUE(names.insert(name).second) << name << " twice";
    EXPECT_TRUE(perf_event(name)) << name;
  }
  EXPECT_GT(names.size(), 40u);
}

TEST(PerfEvents, WrongNames) {
  for (auto* bad : {"", "r", "rxyz", "r1g", "r10000000000000000", "R1a8", "LLC", "LLC-", "-loads",
                    "iTLB-stores", "L1-icache-stores", "Cycles", "cycles ", "raw"})
    EXPECT_FALSE(perf_event(bad)) << bad;
  EXPECT_EQ(perf_event("LLC-load").error().hint, "did you mean 'LLC-loads'?");
  EXPECT_EQ(perf_event("cycle").error().hint, "did you mean 'cycles'?");
  EXPECT_EQ(perf_event("cache-mises").error().hint, "did you mean 'cache-misses'?");
  EXPECT_EQ(perf_event("nothing-of-the-kind").error().hint, "");
  EXPECT_EQ(perf_event_refusal("cpu-clok"),
            "there is no perf event 'cpu-clok'; did you mean 'cpu-clock'?");
}

TEST(PerfEvents, ShortestPeriods) {
  for (auto [name, period] : {std::pair{"cpu-clock", 50'000u},
                              {"task-clock", 50'000u},
                              {"page-faults", 1u},
                              {"cycles", 100u},
                              {"LLC-loads", 100u},
                              {"r1a8", 100u}})
    EXPECT_EQ(least_period(*perf_event(name)), period) << name;
}

// Never replaced by another event: the kernel is asked for this event, and its error is reported.
TEST(PerfEvents, WhatTheKernelSays) {
  EXPECT_EQ(perf_event_refusal("page-faults"), "");
  for (auto& name : perf_event_names()) {
    int fd = open_perf_event(*perf_event(name), every(1'000'000'000), 0);
    int error = fd < 0 ? errno : 0;
    if (fd >= 0) close(fd);
    auto why = perf_event_refusal(name);
    if (error == EACCES || error == EPERM || !error)
      EXPECT_EQ(why, "") << name;
    else
      EXPECT_NE(why.find(name), std::string::npos) << why;
  }
}

// A hook without a rate would never be sampled, one with a wrong name or period be rejected.
TEST(PerfEvents, OfAllTools) {
  for (auto& entry : registry()) {
    auto tool = build(entry);
    auto parts = kernel_parts(tool);
    for (auto& hook : tool.hooks)
      for (auto& way : hook.candidates)
        for (auto program : way.programs) {
          auto section = parts.section(program);
          auto [kind, target] = split_section(section);
          if (kind != kPerfEvent) continue;
          SCOPED_TRACE(section);
          auto event = perf_event(target);
          ASSERT_TRUE(event) << event.error().what;
          EXPECT_NE(hook.sampling.hz != 0, hook.sampling.period != 0) << "one of both";
          if (hook.sampling.period) {
            EXPECT_GE(hook.sampling.period, least_period(*event));
          }
        }
  }
}

}  // namespace
}  // namespace coretap
