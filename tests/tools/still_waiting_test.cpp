// Waits that are under way when tracing ends, in all tools that show waits.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

/// How often it has left its CPU to wait, the wait under way included.
std::string voluntary_switches(const Workload& workload) {
  auto status = slurp("/proc/" + workload.id() + "/status");
  return status.substr(status.find("\nvoluntary_ctxt_switches:"));
}

bool is_named(const Json& line) { return line["comm"].str() == "sleeper"; }

std::vector<Json> waiting(const Report& report) {
  std::vector<Json> all;
  for (auto& line : report.body)
    if (line["still_waiting"].boolean() && is_named(line)) all.push_back(line);
  return all;
}

bool has_frame(const Json& frames, std::string_view part) {
  auto all = frames.strings();
  return std::any_of(all.begin(), all.end(), [&](auto& f) { return contains(f, part); });
}

class StillWaiting : public testing::TestWithParam<const char*> {};

/// wakeuptime knows only the name of the task that waits.
bool has_stacks(const std::string& tool) { return tool != "wakeuptime"; }

void since_it_blocked(const std::string& tool) {
  require_tool(tool);
  Workload workload("sleeper", {"--sleeps", "1", "--ms", "60000"}, kLinger);
  ASSERT_TRUE(await_sleep(workload.pid()));
  Tracer tracer(tool, {"--json", "--strict", "-p", workload.id()});
  auto before = std::chrono::steady_clock::now();
  auto waited = voluntary_switches(workload);
  workload.release();
  ASSERT_TRUE(until([&] { return voluntary_switches(workload) != waited; })) << "it does not sleep";
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  auto report = tracer.stop();
  auto after = std::chrono::steady_clock::now();
  auto lines = waiting(report);
  ASSERT_EQ(lines.size(), 1u);
  auto& line = lines[0];
  EXPECT_EQ(line["count"].u64(), 1u);
  EXPECT_GE(line["total_ns"].u64(), 200'000'000u);
  EXPECT_LE(std::chrono::nanoseconds(line["total_ns"].u64()), after - before);
  if (!has_stacks(tool)) return;
  EXPECT_EQ(line["pid"].i64(), workload.pid());
  EXPECT_FALSE(line["runnable"].boolean());
  EXPECT_TRUE(has_frame(line["kernel_stack"], "nanosleep"));
  EXPECT_EQ(line["user_stack"].strings().at(0), "workload_sleep");
}

TEST_P(StillWaiting, SinceItBlocked) { TOOL_TEST_BODY(since_it_blocked(GetParam())) }

// It waits for its release from before tracing until after it.
void since_before_tracing(const std::string& tool) {
  require_tool(tool);
  Workload workload("sleeper", {});
  ASSERT_TRUE(await_sleep(workload.pid()));
  Tracer named(tool, {"--json", "--strict", "-p", workload.id()});
  Tracer all(tool, {"--json"});
  Tracer folded(tool, {"-f", "-p", workload.id()});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  auto report = named.stop();
  auto lines = waiting(report);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_GE(lines[0]["total_ns"].u64(), 100'000'000u);
  if (has_stacks(tool)) {
    EXPECT_EQ(lines[0]["tid"].i64(), workload.pid());
    EXPECT_FALSE(lines[0]["kernel_stack"].items().empty());
  }
  EXPECT_TRUE(contains(folded.stop_text(), "[still waiting] "));
  EXPECT_TRUE(waiting(all.stop()).empty()) << "that it sleeps is of no interest unless asked for";
  workload.release();
  workload.truth();
}

TEST_P(StillWaiting, SinceBeforeTracing){TOOL_TEST_BODY(since_before_tracing(GetParam()))}

INSTANTIATE_TEST_SUITE_P(Tools, StillWaiting,
                         testing::Values("offcputime", "offwaketime", "wakeuptime", "chaintrace"),
                         [](auto& info) { return std::string(info.param); });

// What has ended is not shown as waiting, and a wait that is shown is not counted twice.
TOOL_TEST(StillWaitingOffcputime, EachWaitOnce) {
  Workload ended("sleeper", {"--sleeps", "5", "--ms", "20"}, kLinger);
  Tracer tracer("offcputime", {"--json", "--strict", "-p", ended.id()});
  ended.release();
  auto truth = ended.truth();
  ASSERT_TRUE(await_sleep(ended.pid()));
  auto report = tracer.stop();
  EXPECT_EQ(waiting(report).size(), 1u) << "for the end of the test";
  std::uint64_t sleeps = 0;
  for (auto& line : report.body)
    if (!line["still_waiting"].boolean() && !line["runnable"].boolean() &&
        has_frame(line["user_stack"], "workload_sleep"))
      sleeps += line["count"].u64();
  EXPECT_EQ(sleeps, truth["voluntary"].u64());
}

}  // namespace
}  // namespace coretap::tooltest
