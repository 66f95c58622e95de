// stackcount against a program that reaches functions in known stacks a known number of times.
#include <algorithm>

#include "../harness.hpp"
#include "instructions.hpp"

namespace coretap::tooltest {
namespace {

std::string calls(const std::string& function) { return workload_path("calls") + ":" + function; }

struct Observed {
  Json truth;
  Report report;
};

Observed observe(const Strings& options, const Strings& arguments = {"--calls", "20"}) {
  require_tool("stackcount");
  Workload workload("calls", arguments, kLinger);
  Strings words{"--json", "--strict", "-p", workload.id()};
  words.insert(words.end(), options.begin(), options.end());
  Tracer tracer("stackcount", words);
  workload.release();
  auto truth = workload.truth();
  return {truth, tracer.stop()};
}

bool is_called_by(const Json& line, const Strings& callers) {
  auto frames = line["user_stack"].strings();
  return std::search(frames.begin(), frames.end(), callers.begin(), callers.end(),
                     [](auto& frame, auto& name) { return contains(frame, name); }) != frames.end();
}

std::uint64_t count(const Report& report) { return report.sum("count"); }

TOOL_TEST(Stackcount, UserFunctionsByTheirCallers) {
  auto seen = observe({calls("recursive_call")});
  const auto n = seen.truth["calls"].u64();
  std::uint64_t whole = 0;
  for (auto& line : seen.report.body) {
    EXPECT_TRUE(line["kernel_stack"].strings().empty()) << "that of the trap";
    EXPECT_TRUE(is_called_by(line, {"recursive_call"}));
    if (is_called_by(line, {"recursive_call", "recursive_call", "main"})) whole++;
    EXPECT_EQ(line["count"].u64(), n);
  }
  EXPECT_EQ(seen.report.body.size(), seen.truth["recursive"].u64() / n) << "a stack per depth";
  EXPECT_EQ(whole, seen.report.body.size() - 1);
}

TOOL_TEST(Stackcount, PlacesWithinFunctions) {
  require_tool("stackcount");
  auto place = last_place_of(workload_path("probes"), "counted_each");
  Workload workload("probes", {"--calls", "20"}, kLinger);
  Tracer tracer("stackcount", {"--json", "--strict", "-p", workload.id(), place});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(count(report), 20U);
  for (auto& line : report.body) EXPECT_TRUE(is_called_by(line, {"main"}));
}

TOOL_TEST(Stackcount, SystemCallsWithBothStacks) {
  auto seen = observe({"sys_clock_nanosleep"});
  const auto n = seen.truth["calls"].u64();
  EXPECT_EQ(count(seen.report), 3 * n);
  std::uint64_t timed = 0;
  for (auto& line : seen.report.body) {
    EXPECT_FALSE(line["kernel_stack"].strings().empty());
    EXPECT_EQ(line["comm"].str(), "calls");
    if (is_called_by(line, {"timed_call", "main"})) timed += line["count"].u64();
  }
  auto kernel = observe({"-K", "sys_clock_nanosleep"}), user = observe({"-U", "sys_getppid"});
  EXPECT_EQ(count(kernel.report), 3 * n);
  EXPECT_EQ(kernel.report.body.size(), 1u) << "the kernel's stack is the same for each caller";
  EXPECT_EQ(count(user.report), n);
  for (auto& line : user.report.body)
    EXPECT_TRUE(is_called_by(line, {"main"}) && line["kernel_stack"].strings().empty());
}

// Each report has what was added since the one before.
TOOL_TEST(Stackcount, Intervals) {
  auto seen = observe({"-i", "0.1", calls("inner_call")}, {"--calls", "40", "--sleep-us", "3000"});
  EXPECT_GT(seen.report.body.size(), 2u) << "one line per interval";
  EXPECT_EQ(count(seen.report), seen.truth["calls"].u64());
}

TOOL_TEST(Stackcount, FoldedAndText) {
  require_tool("stackcount");
  Workload workload("calls", {"--calls", "7"}, kLinger);
  Tracer folded("stackcount", {"-f", "-U", "-p", workload.id(), "sys_getppid"}),
      text("stackcount", {"-U", "-p", workload.id(), "sys_getppid"});
  workload.release();
  workload.truth();
  auto line = folded.stop_text(), shown = text.stop_text();
  EXPECT_TRUE(line.starts_with("calls;")) << line;
  EXPECT_TRUE(contains(line, ";main;")) << line;
  EXPECT_TRUE(line.ends_with(" 7\n")) << line;
  EXPECT_TRUE(contains(shown, "    main\n")) << shown;
  EXPECT_TRUE(contains(shown, "calls (" + workload.id() + ")\n        7\n")) << shown;
}

const DeclareTests kStackcount{{
    .name = "stackcount",
    .reports = {{ReportKind::stacks}},
    .events = {"sys_getppid", "calls --calls 5 --sleep-us 100"},
    .stress = {.workload = "probes --calls {n}",
               .events = 100000,
               .options = "sys_getppid",
               .shown = "count",
               .truth = "calls",
               .tiny = "--stack-storage-size 1"},
    .long_run = {{.arguments = "t:sched:sched_process_fork", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
