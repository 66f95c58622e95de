// futexctn against a process that waits for futexes in known ways a known number of times.
#include <csignal>
#include <map>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

using Way = std::pair<std::string, std::string>;

struct Truth {
  std::uint64_t lock = 0, count = 0, waited_ns = 0;
};

std::map<Way, Truth> ways_of(const Json& truth) {
  std::map<Way, Truth> all;
  for (auto& w : truth["ways"].items())
    all[{w["op"].str(), w["result"].str()}] = {w["lock"].u64(), w["count"].u64(),
                                               w["waited_ns"].u64()};
  return all;
}

bool has_frame(const Json& stack, const std::string& name) {
  for (auto& frame : stack.strings())
    if (contains(frame, name)) return true;
  return false;
}

TOOL_TEST(Futexctn, EveryWayToWaitWithItsStack) {
  require_tool("futexctn");
  Workload workload("waiter", {"--count", "30"}, kLinger);
  Tracer tracer("futexctn", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto ways = ways_of(workload.truth());
  auto report = tracer.stop();
  std::map<Way, Truth> seen;
  for (auto& line : report.body) {
    EXPECT_EQ(line["comm"].str(), "waiter");
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_TRUE(has_frame(line["user_stack"], "waiter_wait"));
    EXPECT_TRUE(has_frame(line["user_stack"], "waiter_outer"));
    EXPECT_TRUE(has_frame(line["user_stack"], "main"));
    auto& s = seen[{line["op"].str(), line["outcome"].str()}];
    s.lock = line["lock"].u64();
    s.count += line["count"].u64();
    s.waited_ns += line["total_ns"].u64();
  }
  ASSERT_EQ(seen.size(), ways.size());
  for (auto& [way, truth] : ways) {
    SCOPED_TRACE(way.first + " " + way.second);
    ASSERT_TRUE(seen.contains(way));
    EXPECT_EQ(seen[way].lock, truth.lock);
    EXPECT_EQ(seen[way].count, truth.count);
    EXPECT_LE(seen[way].waited_ns, truth.waited_ns);
    if (way.second == "timeout") {
      EXPECT_GE(seen[way].waited_ns, truth.count * 1'900'000);
    }
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
}

TOOL_TEST(Futexctn, SummaryCountsResults) {
  require_tool("futexctn");
  Workload workload("waiter", {"--count", "30"}, kLinger);
  Tracer tracer("futexctn", {"--json", "--strict", "-s", "-p", workload.id()});
  workload.release();
  auto ways = ways_of(workload.truth());
  auto report = tracer.stop();
  std::map<Way, std::uint64_t> seen;
  for (auto& line : report.body) {
    auto op = line["op"].str();
    auto woken = line["count"].u64();
    for (auto& [key, result] :
         {Way{"timeouts", "timeout"}, {"interrupted", "interrupted"}, {"changed", "changed"}}) {
      auto n = line[key.c_str()].u64();
      woken -= n;
      if (n) seen[{op, result}] += n;
    }
    EXPECT_EQ(line["failed"].u64(), 0u);
    if (woken) seen[{op, "woken"}] += woken;
    EXPECT_LE(line["max_ns"].u64(), line["total_ns"].u64());
    EXPECT_GE(line["max_ns"].u64(), line["average_ns"].u64());
    EXPECT_FALSE(line.has("user_stack"));
  }
  ASSERT_EQ(seen.size(), ways.size());
  for (auto& [way, truth] : ways) EXPECT_EQ(seen[way], truth.count) << way.first << way.second;
}

TOOL_TEST(Futexctn, OneLockByThread) {
  require_tool("futexctn");
  Workload workload("waiter", {"--count", "5", "--only", "timeout"}, kLinger);
  auto lock = workload.ready()["words"].u64() + 4;
  std::ostringstream address;
  address << std::hex << std::showbase << lock;
  Tracer tracer("futexctn",
                {"--json", "-s", "--per-thread", "-p", workload.id(), "-l", address.str()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["op"].str(), "wait_bitset");
  EXPECT_EQ(report.body[0]["lock"].u64(), lock);
  EXPECT_EQ(report.body[0]["tid"].u64(), static_cast<std::uint64_t>(workload.pid()));
  EXPECT_EQ(report.body[0]["timeouts"].u64(), 5u);
  EXPECT_GE(report.lost("filtered"), 5u) << "the other lock, and other processes";
}

/// Stopped and continued, a wait with a timeout goes on by restart_syscall().
TOOL_TEST(Futexctn, WaitsGoOnAfterASignal) {
  require_tool("futexctn");
  Workload workload("waiter", {"--count", "1", "--only", "timeout", "--ms", "3000"}, kLinger);
  Tracer tracer("futexctn", {"--json", "--strict", "-s", "-p", workload.id()});
  workload.release();
  ASSERT_TRUE(await_sleep(workload.pid()));
  kill(workload.pid(), SIGSTOP);
  ASSERT_TRUE(until([&] { return state_of(workload.pid()) == 'T'; }));
  kill(workload.pid(), SIGCONT);
  auto ways = ways_of(workload.truth());
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("timeouts"), 2u);
  EXPECT_EQ(report.sum("interrupted"), 1u);
  EXPECT_EQ(report.sum("count"), 3u);
  for (auto& line : report.body) EXPECT_GE(line["total_ns"].u64(), 2'500'000'000u);
}

const DeclareTests kFutexctn{{
    .name = "futexctn",
    .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"--summary"}}},
    .events = {{}, "waiter --count 3"},
    .nothing_when_idle = true,
    .stress = {.workload = "waiter --only woken --count {n/5}",
               .events = 20000,
               .shown = "count",
               .truth = "waits",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "60"}, {.arguments = "-s 60", .of = "summary"}},
}};

}  // namespace
}  // namespace coretap::tooltest
