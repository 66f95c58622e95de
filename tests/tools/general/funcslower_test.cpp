// funcslower against a program whose calls take a known time.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

Observed slow_calls(const std::string& words) {
  return observe("funcslower --json -p {pid} " + words, "calls --calls 10 --sleep-us 2000");
}

TOOL_TEST(Funcslower, SlowCallsWithArgumentsAndResult) {
  auto seen = slow_calls("-a 2 -U " + calls("timed_call") + " " + calls("inner_call"));
  auto report = seen.report();
  const auto n = seen.truth["calls"].u64();
  EXPECT_EQ(report.body.size() + report.lost("filtered"), 2 * n);
  std::uint64_t number = 0;
  for (auto& event : report.body) {
    if (event["target"].str() == "inner_call") continue;  // slow only on a busy machine
    EXPECT_EQ(event["target"].str(), "timed_call");
    EXPECT_GE(event["latency_ns"].u64(), 2'000'000u);
    EXPECT_EQ(event["argument_values"].strings(), Strings(fmt::format("{:#x} 0x7d0", number)));
    EXPECT_EQ(std::stoull(event["return_value"].str(), nullptr, 16), 2 * number);
    EXPECT_TRUE(has_frame(event, "user_stack", "main"));
    number++;
  }
  EXPECT_EQ(number, n);
}

TOOL_TEST(Funcslower, SystemCalls) {
  auto seen = slow_calls("-u 1500 -a 1 -K sys_clock_nanosleep sys_getppid");
  auto report = seen.report();
  ASSERT_EQ(report.body.size(), 3 * seen.truth["calls"].u64());
  EXPECT_GE(report.lost("filtered"), seen.truth["calls"].u64()) << "getppid is fast";
  for (auto& event : report.body) {
    EXPECT_TRUE(event["target"].str().ends_with("sys_clock_nanosleep"));
    EXPECT_EQ(event["argument_values"].strings(), Strings("0x1")) << "CLOCK_MONOTONIC";
    EXPECT_EQ(event["return_value"].str(), "0000000000000000");
    expect_fields(event, {{"result", 0}, {"error", nullptr}});
    EXPECT_FALSE(event["kernel_stack"].strings().empty());
  }
  EXPECT_TRUE(slow_calls("-m 100 sys_clock_nanosleep").report().body.empty());
}

// Results and arguments of system calls in the form of strace; those of functions are numbers.
TOOL_TEST(Funcslower, SystemCallsInWords) {
  const std::vector<Strings> tools = {
      Strings("funcslower --json -u 0 -a 3 -p {pid} sys_unlinkat"),
      Strings("funcslower -u 0 -a 3 -p {pid} sys_unlinkat"),
      Strings("funcslower -m 10 -a 2 -p {pid} sys_clock_nanosleep")};
  auto seen = watch_all({{"syscalls --signals 0 --restarts 0", tools}}).at(0);
  ASSERT_EQ(seen.body().size(), seen.number("failed"));
  for (auto& event : seen.body()) {
    expect_fields(event, {{"result", -ENOENT}, {"error", "ENOENT"}});
    EXPECT_EQ(event["return_value"].str(), "fffffffffffffffe");
    EXPECT_EQ(event["argument_values"].strings().at(2), fmt::format("{:#x}", AT_REMOVEDIR));
  }
  expect_contains(seen.text(1), {" ENOENT ", "unlinkat", "dfd=AT_FDCWD", "flag=AT_REMOVEDIR"});
  expect_contains(seen.text(2), {" 0 ", "which_clock=CLOCK_MONOTONIC"});
}

TESTS_OF(funcslower, .events = {"-u 50 sys_clock_nanosleep", "calls --calls 5 --sleep-us 500"},
         .stress = event_row("probes --calls {n}", 100000, "calls", "-u 0 sys_getppid"),
         .long_run = {{.arguments = "-m 500"}});

}  // namespace
}  // namespace coretap::tooltest
