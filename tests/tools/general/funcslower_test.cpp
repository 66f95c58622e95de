// funcslower against a program whose calls take a known time.
#include <algorithm>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::string calls(const std::string& function) { return workload_path("calls") + ":" + function; }

struct Observed {
  Json truth;
  Report report;
};

Observed observe(const Strings& options) {
  require_tool("funcslower");
  Workload workload("calls", {"--calls", "10", "--sleep-us", "2000"}, kLinger);
  Strings words{"--json", "-p", workload.id()};
  words.insert(words.end(), options.begin(), options.end());
  Tracer tracer("funcslower", words);
  workload.release();
  auto truth = workload.truth();
  return {truth, tracer.stop()};
}

TOOL_TEST(Funcslower, SlowCallsWithArgumentsAndResult) {
  auto seen = observe({"-a", "2", "-U", calls("timed_call"), calls("inner_call")});
  const auto n = seen.truth["calls"].u64();
  EXPECT_EQ(seen.report.body.size() + seen.report.lost("filtered"), 2 * n);
  std::uint64_t number = 0;
  for (auto& event : seen.report.body) {
    if (event["target"].str() == "inner_call") continue;  // fast, but on a busy machine
    EXPECT_EQ(event["target"].str(), "timed_call");
    EXPECT_GE(event["latency_ns"].u64(), seen.truth["sleep_us"].u64() * 1000);
    EXPECT_EQ(event["argument_values"].strings(),
              (Strings{"0x" + std::string(1, "0123456789"[number]), "0x7d0"}));
    EXPECT_EQ(std::stoull(event["return_value"].str(), nullptr, 16), 2 * number);
    auto frames = event["user_stack"].strings();
    EXPECT_TRUE(std::any_of(frames.begin(), frames.end(),
                            [](auto& frame) { return contains(frame, "main"); }));
    number++;
  }
  EXPECT_EQ(number, n);
}

TOOL_TEST(Funcslower, SystemCalls) {
  auto seen = observe({"-u", "1500", "-a", "1", "-K", "sys_clock_nanosleep", "sys_getppid"});
  ASSERT_EQ(seen.report.body.size(), 3 * seen.truth["calls"].u64());
  EXPECT_GE(seen.report.lost("filtered"), seen.truth["calls"].u64()) << "getppid is fast";
  for (auto& event : seen.report.body) {
    EXPECT_TRUE(event["target"].str().ends_with("sys_clock_nanosleep"));
    EXPECT_EQ(event["argument_values"].strings(), Strings{"0x1"}) << "CLOCK_MONOTONIC";
    EXPECT_EQ(event["return_value"].str(), "0000000000000000");
    EXPECT_FALSE(event["kernel_stack"].strings().empty());
  }
  EXPECT_TRUE(observe({"-m", "100", "sys_clock_nanosleep"}).report.body.empty());
}

TOOL_TEST(Funcslower, Columns) {
  require_tool("funcslower");
  EXPECT_EQ(header_of("funcslower", {}), (Strings{"COMM", "PID", "LAT(ms)", "RVAL", "FUNC"}));
  EXPECT_EQ(header_of("funcslower", {"-T", "-u", "10", "-a", "2"}),
            (Strings{"TIME", "COMM", "PID", "LAT(us)", "RVAL", "FUNC", "ARGS"}));
}

const DeclareTests kFuncslower{{
    .name = "funcslower",
    .events = {"-u 50 sys_clock_nanosleep", "calls --calls 5 --sleep-us 500"},
    .stress = {.workload = "probes --calls {n}",
               .events = 100000,
               .options = "-u 0 sys_getppid",
               .truth = "calls",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "-m 500"}},
}};

}  // namespace
}  // namespace coretap::tooltest
