// funclatency against a program whose calls take a known time.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

/// 20 rounds, with sleeps of 2 ms.
Observed time_calls(const Strings& words) {
  return observe("funclatency --json -p {pid}" + words, "calls --calls 20 --sleep-us 2000");
}

constexpr std::uint64_t kRounds = 20, kLastsNs = 2'000'000;

TOOL_TEST(Funclatency, CallsTakeAsLongAsTheyMeasureThemselves) {
  auto seen = time_calls({"-F", calls("timed_call"), calls("inner_call")});
  auto by = by_target(seen.report());
  ASSERT_EQ(by.size(), 2u);
  expect_same(by.at("timed_call"), seen.truth, {{"count", "calls"}});
  expect_same(by.at("inner_call"), seen.truth, {{"count", "calls"}});
  EXPECT_GE(by.at("timed_call")["total_ns"].u64(), seen.truth["slept_ns"].u64());
  EXPECT_EQ(seen.report().lost("unmatched"), 0u);
}

// Each level of a recursion lasts as long as the sleep in the innermost one; a call left by longjmp
// never ends, and is detected at the next one.
TOOL_TEST(Funclatency, RecursionAndLongjmp) {
  auto seen = time_calls({"-F", calls("*_call")});
  auto by = by_target(seen.report());
  ASSERT_EQ(by.size(), 4u) << "left_call never returns";
  auto& recursive = by.at("recursive_call");
  expect_same(recursive, seen.truth, {{"count", "recursive"}});
  for (auto& slot : recursive["histogram"].items())
    EXPECT_GT(slot["below_ns"].u64(), kLastsNs) << "a call took less than the sleep in it";
  for (auto* name : {"outer_call", "inner_call", "timed_call"})
    EXPECT_EQ(by.at(name)["count"].u64(), kRounds) << name;
  EXPECT_EQ(seen.report().lost("unmatched"), kRounds - 1) << "the last one is under way at the end";
}

TOOL_TEST(Funclatency, CallsBeyondTheLevel) {
  auto seen = time_calls({"-l", "2", calls("recursive_call")});
  auto report = seen.report();
  check_histogram(only(report.body), 1);
  EXPECT_EQ(report.sum("count"), 2 * kRounds);
  EXPECT_EQ(report.lost("untracked"), seen.truth["recursive"].u64() - 2 * kRounds);
}

TOOL_TEST(Funclatency, SystemCallsAndKernelFunctions) {
  auto report = time_calls("-F sys_clock_nanosleep sys_getppid").report();
  auto by = by_target(report);
  ASSERT_EQ(by.size(), 2u);
  for (auto& [name, histogram] : by) {
    bool sleeps = name.ends_with("sys_clock_nanosleep");
    EXPECT_TRUE(sleeps || name.ends_with("sys_getppid")) << name;
    EXPECT_EQ(histogram["count"].u64(), (sleeps ? 3 : 1) * kRounds) << name;
    EXPECT_GE(histogram["total_ns"].u64(), sleeps ? 3 * kRounds * kLastsNs : 0) << name;
  }
  EXPECT_EQ(report.lost("unmatched"), 0u);
  if (!has_kprobes()) return expect_refusals("funclatency", {{"vfs_read", "CONFIG_KPROBES", 3}});
  auto inner = by_target(time_calls("-F hrtimer_nanosleep do_nanosleep").report());
  ASSERT_EQ(inner.size(), 2u);
  for (auto& [name, histogram] : inner) {
    EXPECT_EQ(histogram["count"].u64(), 3 * kRounds) << name;
    EXPECT_GE(histogram["total_ns"].u64(), 3 * kRounds * kLastsNs);
  }
}

TOOL_TEST(Funclatency, TextIsAsBccHasIt) {
  auto seen = observe("funclatency -u -F -P -p {pid} " + calls("timed_call"), "calls --calls 3");
  expect_contains(seen.text(),
                  {"Function = timed_call", "pid = " + std::to_string(seen.pid),
                   "     usecs               : count    distribution\n", ", count: 3\n"});
}

TOOL_TEST(Funclatency, SaysWhatIsNoCall) {
  require_tool("funclatency");
  expect_refusals("funclatency", {{"t:sched:sched_switch", "without a return"},
                                  {"t:syscalls:sys_enter_read", "sys_NAME"},
                                  {"u:c:setjmp", "without a return"},
                                  {"r:" + calls("timed_call"), "leave out the r"}});
}

TESTS_OF(funclatency, .events = {"sys_getppid", "calls --calls 5 --sleep-us 100"},
         .stress = total_row("probes --calls {n}", 300000, "count", "calls", "sys_getppid"),
         .long_run = {{.arguments = "-i 10 sys_*"}});

}  // namespace
}  // namespace coretap::tooltest
