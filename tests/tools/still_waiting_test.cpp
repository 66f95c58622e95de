// Waits in progress when tracing ends, in all tools that show waits.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// How often it has left its CPU to wait, including the current wait.
std::string voluntary_switches(const Workload& workload) {
  auto status = slurp("/proc/" + workload.id() + "/status");
  return status.substr(status.find("\nvoluntary_ctxt_switches:"));
}

std::vector<Json> waiting(const Report& report) {
  return lines_with(report.body, {{"still_waiting", true}, {"comm", "sleeper"}});
}

TOOL_SUITE(StillWaiting, ("offcputime offwaketime wakeuptime chaintrace"));

/// wakeuptime knows only the name of the waiting task.
bool has_stacks(const std::string& tool) { return tool != "wakeuptime"; }

TOOL_TEST_P(StillWaiting, SinceItBlocked, tool) {
  require_tool(tool);
  Workload workload("sleeper", "--sleeps 1 --ms 60000", kLinger);
  ASSERT_TRUE(await_sleep(workload.pid()));
  Tracer tracer(tool, {"--json", "--strict", "-p", workload.id()});
  auto before = std::chrono::steady_clock::now();
  auto waited = voluntary_switches(workload);
  workload.release();
  ASSERT_TRUE(until([&] { return voluntary_switches(workload) != waited; })) << "it does not sleep";
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  auto report = tracer.stop();
  auto after = std::chrono::steady_clock::now();
  auto line = only(waiting(report));
  expect_fields(line, {{"count", 1}});
  // The kernel counts the switch just before it is traced, and a hypervisor may stop it in between.
  EXPECT_GE(line["total_ns"].u64(), 195'000'000u);
  EXPECT_LE(std::chrono::nanoseconds(line["total_ns"].u64()), after - before);
  if (!has_stacks(tool)) return;
  expect_fields(line, {{"pid", workload.pid()}, {"runnable", false}});
  EXPECT_TRUE(has_frame(line, "kernel_stack", "nanosleep"));
  EXPECT_EQ(line["user_stack"].strings().at(0), "workload_sleep");
}

// It waits for its release from before tracing until after it.
TOOL_TEST_P(StillWaiting, SinceBeforeTracing, tool) {
  require_tool(tool);
  Workload workload("sleeper", {});
  ASSERT_TRUE(await_sleep(workload.pid()));
  Tracer named(tool, {"--json", "--strict", "-p", workload.id()});
  Tracer all(tool, "--json");
  Tracer folded(tool, {"-f", "-p", workload.id()});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  auto line = only(waiting(named.stop()));
  EXPECT_GE(line["total_ns"].u64(), 100'000'000u);
  if (has_stacks(tool)) {
    EXPECT_EQ(line["tid"].i64(), workload.pid());
    EXPECT_FALSE(line["kernel_stack"].items().empty());
  }
  EXPECT_TRUE(contains(folded.stop_text(), "[still waiting] "));
  EXPECT_TRUE(waiting(all.stop()).empty()) << "that it sleeps is of no interest unless asked for";
  workload.release();
  workload.truth();
}

// Ended waits are not shown as waiting, and a shown wait is not counted twice.
TOOL_TEST(StillWaitingOffcputime, EachWaitOnce) {
  Workload ended("sleeper", "--sleeps 5 --ms 20", kLinger);
  Tracer tracer("offcputime", {"--json", "--strict", "-p", ended.id()});
  ended.release();
  auto truth = ended.truth();
  ASSERT_TRUE(await_sleep(ended.pid()));
  auto report = tracer.stop();
  EXPECT_EQ(waiting(report).size(), 1u) << "for the end of the test";
  auto sleeps = lines_with(report.body, {{"still_waiting", false}, {"runnable", false}});
  EXPECT_EQ(sum_with_frame(sleeps, "user_stack", "workload_sleep"), truth["voluntary"].u64());
}

}  // namespace
}  // namespace coretap::tooltest
