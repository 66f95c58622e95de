// smpcalls against a workload that has another CPU run a function a known number of times, and the
// kernel's own trace of such calls.
#include <unistd.h>
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kFunction[] = "__perf_event_read";
Json of_function(const Report& report) {
  for (auto& line : report.body)
    if (line["function"].str() == kFunction) return line;
  throw std::runtime_error(std::string("no CPU ran ") + kFunction);
}

TOOL_TEST(Smpcalls, EveryCallAndItsTime) {
  require_tool("smpcalls");
  Workload workload("crosscall", {"--calls", "1000"}, kLinger);
  Tracer tracer("smpcalls", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto line = of_function(tracer.stop());
  EXPECT_EQ(line["count"].u64(), truth["calls"].u64());
  // The caller measures the system call around it.
  EXPECT_GT(line["total_ns"].u64(), truth["took_ns"].u64() / 20);
  EXPECT_LE(line["total_ns"].u64(), truth["took_ns"].u64());
  EXPECT_LE(line["max_ns"].u64(), truth["longest_ns"].u64());
  EXPECT_EQ(line["average_ns"].u64(), line["total_ns"].u64() / line["count"].u64());
  EXPECT_LE(line["average_ns"].u64(), line["max_ns"].u64());
  if (line["run_ns"].is_null()) return;
  EXPECT_GT(line["run_ns"].u64(), 0u);
  EXPECT_LT(line["run_ns"].u64(), line["total_ns"].u64());
}

// All functions, of all callers: what is queued when both trace.
TOOL_TEST(Smpcalls, EachFunctionAsInTheTrace) {
  require_tool("smpcalls");
  Workload workload("crosscall", {"--calls", "300"}, kLinger);
  Trace outside(Strings{"csd/csd_queue_cpu", "csd/csd_function_exit"});
  Tracer tracer("smpcalls", {"--json"});
  Trace inside(Strings{"csd/csd_queue_cpu", "csd/csd_function_exit"});
  workload.release();
  workload.truth();
  inside.stop();
  auto report = tracer.stop();
  outside.stop();
  auto functions = [](const Trace& trace, bool queued_too) {
    std::map<std::string, std::uint64_t> queued, all;
    for (auto& e : trace.events()) {
      auto csd = e.value("csd");
      if (e.name == "csd_queue_cpu")
        queued[csd] = 1;
      else if (queued.erase(csd) || !queued_too)
        all[e.value("func")]++;
    }
    // Wake-ups of tasks elsewhere, which go the same way.
    all.erase("sched_ttwu_pending");
    return all;
  };
  // At one instant on two CPUs the trace may have the end of a call before its queueing.
  auto least = functions(inside, true), most = functions(outside, false);
  if (most.empty()) throw Skip("this kernel has no trace of calls (before 6.4)");
  std::map<std::string, std::uint64_t> counts;
  for (auto& line : report.body) counts[line["function"].str()] = line["count"].u64();
  EXPECT_GE(counts[kFunction], 300u);
  for (auto& [function, n] : least) EXPECT_GE(counts[function], n) << function;
  for (auto& [function, n] : counts) EXPECT_LE(n, most[function]) << function;
}

TOOL_TEST(Smpcalls, CallersByStackAndProcess) {
  require_tool("smpcalls");
  Workload workload("crosscall", {"--calls", "50"}, kLinger);
  Tracer tracer("smpcalls", {"--json", "-K", "-P", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto line = of_function(tracer.stop());
  EXPECT_EQ(line["count"].u64(), 50u);
  EXPECT_EQ(line["pid"].i64(), workload.pid());
  EXPECT_EQ(line["comm"].str(), "crosscall");
  bool reads = false;
  for (auto& frame : line["kernel_stack"].items()) reads |= contains(frame.str(), "perf_read");
  EXPECT_TRUE(reads) << line["kernel_stack"].str();
}

TOOL_TEST(Smpcalls, Histograms) {
  require_tool("smpcalls");
  Workload workload("crosscall", {"--calls", "200"}, kLinger);
  Tracer tracer("smpcalls", {"--json", "-d", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto line = of_function(tracer.stop());
  EXPECT_EQ(line["count"].u64(), 200u);
  EXPECT_LE(line["total_ns"].u64(), truth["took_ns"].u64());
  check_histogram(line, 1000);
}

TOOL_TEST(Smpcalls, TextIsATable) {
  require_tool("smpcalls");
  Workload workload("crosscall", {"--calls", "20"}, kLinger);
  Tracer tracer("smpcalls", {"-N", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(
      text.find("FUNC                                   CALLS TOTAL_nsecs AVG_nsecs MAX_nsecs\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(kFunction), std::string::npos) << text;
}

const DeclareTests kSmpcalls{{
    .name = "smpcalls",
    .reports = {{ReportKind::aggregate}},
    .events = {"-P", "crosscall --calls 100"},
    .nothing_when_idle = true,
    .stress = {.workload = "crosscall --calls {n}",
               .events = 500,
               .options = "-P",
               .shown = "count",
               .truth = "calls",
               .tiny = "--max-keys 1",
               .slack = 10},
    .long_run = {{.arguments = "-P 10"}, {.arguments = "-K 10", .of = "stacks"}},
}};

}  // namespace
}  // namespace coretap::tooltest
