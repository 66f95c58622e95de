// wqlat against a workload that makes a known number of work items, and the kernel's own trace of
// work queues.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kFunction[] = "flush_to_ldisc";

Json of_function(const Report& report) {
  for (auto& line : report.body)
    if (line["function"].str() == kFunction) return line;
  throw std::runtime_error(std::string("no work item ran ") + kFunction);
}

/// Times from one event of an item to the next, in all; of those that run the function.
struct Times {
  std::uint64_t items = 0, ns = 0;
};
Times traced(const Trace& trace, const std::string& from, const std::string& to) {
  std::map<std::string, std::uint64_t> open;
  Times all;
  for (auto& e : trace.events()) {
    // "work struct=00000000abcd function=...", "work struct 00000000abcd: function ..."
    auto item = e.words.substr(12, e.words.find_first_of(" :", 12) - 12);
    bool ours = e.words.find(kFunction) != std::string::npos;
    if (e.name == from && ours) open[item] = e.ns;
    if (e.name != to || !open.contains(item)) continue;
    all.items++;
    all.ns += e.ns - open[item];
    open.erase(item);
  }
  return all;
}

TOOL_TEST(Wqlat, WaitsAsInTheTrace) {
  require_tool("wqlat");
  Workload workload("terminal", {"--writes", "300"}, kLinger);
  Tracer tracer("wqlat", {"--json", "--strict", "-FW", "-p", workload.id()});
  Trace trace(Strings{"workqueue/workqueue_queue_work", "workqueue/workqueue_execute_start"});
  workload.release();
  auto truth = workload.truth();
  trace.stop();
  auto line = of_function(tracer.stop());
  auto waits = traced(trace, "workqueue_queue_work", "workqueue_execute_start");
  EXPECT_GE(line["count"].u64(), truth["writes"].u64());
  EXPECT_LE(line["count"].u64(), truth["writes"].u64() + 2) << "when it is opened and closed";
  EXPECT_GE(waits.items, truth["writes"].u64());
  EXPECT_FALSE(line["wqname"].str().empty());
  check_histogram(line, 1000);
  // The tool's programs are in the trace's times, and the other way round.
  auto slack = 0.3 * static_cast<double>(waits.ns) + 3e3 * static_cast<double>(waits.items);
  EXPECT_NEAR(static_cast<double>(line["total_ns"].u64()), static_cast<double>(waits.ns),
              slack * slowness());
  EXPECT_LE(line["total_ns"].u64(), truth["took_ns"].u64());
}

TOOL_TEST(Wqlat, ExecutionsAsInTheTrace) {
  require_tool("wqlat");
  Workload workload("terminal", {"--writes", "300"}, kLinger);
  Tracer tracer("wqlat", {"--json", "--strict", "-eF", "-p", workload.id()});
  Trace trace(Strings{"workqueue/workqueue_execute_start", "workqueue/workqueue_execute_end"});
  workload.release();
  auto truth = workload.truth();
  trace.stop();
  auto line = of_function(tracer.stop());
  auto runs = traced(trace, "workqueue_execute_start", "workqueue_execute_end");
  EXPECT_GE(line["count"].u64(), truth["writes"].u64() - 1) << "the last may be under way";
  EXPECT_LE(line["count"].u64(), truth["writes"].u64() + 2);
  EXPECT_GT(line["total_ns"].u64(), 0u);
  auto slack = 0.3 * static_cast<double>(runs.ns) + 3e3 * static_cast<double>(runs.items);
  EXPECT_NEAR(static_cast<double>(line["total_ns"].u64()), static_cast<double>(runs.ns),
              slack * slowness());
}

TOOL_TEST(Wqlat, OfOneWorkQueue) {
  require_tool("wqlat");
  Workload first("terminal", {"--writes", "20"}, kLinger);
  Tracer names("wqlat", {"--json", "-W", "-p", first.id()});
  first.release();
  first.truth();
  auto seen = names.stop();
  ASSERT_FALSE(seen.body.empty());
  auto queue = seen.body[0]["wqname"].str();

  Workload second("terminal", {"--writes", "20"}, kLinger);
  Tracer one("wqlat", {"--json", "-W", "-w", queue}), none("wqlat", {"--json", "-w", queue + "x"});
  second.release();
  second.truth();
  auto of_one = one.stop(), of_none = none.stop();
  ASSERT_EQ(of_one.body.size(), 1u);
  EXPECT_EQ(of_one.body[0]["wqname"].str(), queue);
  EXPECT_GE(of_one.body[0]["count"].u64(), 20u);
  EXPECT_EQ(of_none.sum("count"), 0u);
  EXPECT_GE(of_none.lost("filtered"), 20u);
  auto bad = run({tool_path("wqlat"), "-w", std::string(32, 'x')});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("it has 1 to 31 characters"), std::string::npos) << bad.err;
}

TOOL_TEST(Wqlat, TextIsTheKnownHistogram) {
  require_tool("wqlat");
  Workload workload("terminal", {"--writes", "20"}, kLinger);
  Tracer tracer("wqlat", {"-W", "-N", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find("wqname = "), std::string::npos) << text;
  EXPECT_NE(text.find("     nsecs               : count    distribution\n"), std::string::npos)
      << text;
}

const DeclareTests kWqlat{{
    .name = "wqlat",
    .reports = {{ReportKind::aggregate}},
    .events = {"-FW", "terminal --writes 50"},
    .stress = {.workload = "terminal --writes {n}",
               .events = 2000,
               .options = "-F",
               .shown = "count",
               .truth = "writes",
               .tiny = "--max-keys 1",
               .slack = 2},
    .long_run = {{.arguments = "-W 10"}, {.arguments = "-eF 10", .of = "execution"}},
}};

}  // namespace
}  // namespace coretap::tooltest
