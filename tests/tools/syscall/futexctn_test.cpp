// futexctn against a process that waits for futexes in known ways a known number of times.
#include "calls.hpp"

namespace coretap::tooltest {
namespace {

/// By "OP RESULT".
std::map<std::string, Json> ways_of(const Json& truth) {
  std::map<std::string, Json> all;
  for (auto& w : truth["ways"].items()) all.emplace(w["op"].str() + " " + w["result"].str(), w);
  return all;
}

TOOL_TEST(Futexctn, EveryWayToWaitWithItsStack) {
  auto seen = observe("futexctn --json --strict -p {pid}", "waiter --count 30");
  auto ways = ways_of(seen.truth);
  auto report = seen.report();
  std::map<std::string, std::vector<Json>> shown;
  for (auto& line : report.body) {
    expect_fields(line, {{"comm", "waiter"}, {"pid", seen.pid}});
    for (auto* frame : {"waiter_wait", "waiter_outer", "main"})
      EXPECT_TRUE(has_frame(line, "user_stack", frame)) << frame;
    shown[line["op"].str() + " " + line["outcome"].str()].push_back(line);
  }
  ASSERT_EQ(shown.size(), ways.size());
  for (auto& [way, truth] : ways) {
    SCOPED_TRACE(way);
    ASSERT_TRUE(shown.contains(way));
    for (auto& line : shown[way]) expect_same(line, truth, {"lock"});
    expect_sums(shown[way], truth, {"count"});
    auto waited = sum(shown[way], "total_ns");
    EXPECT_LE(waited, truth["waited_ns"].u64());
    if (way.ends_with(" timeout")) {
      EXPECT_GE(waited, truth["count"].u64() * 1'900'000);
    }
  }
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
}

TOOL_TEST(Futexctn, SummaryCountsResults) {
  auto seen = observe("futexctn --json --strict -s -p {pid}", "waiter --count 30");
  std::map<std::string, std::uint64_t> shown, known;
  for (auto& [way, truth] : ways_of(seen.truth)) known[way] = truth["count"].u64();
  for (auto& line : seen.report().body) {
    auto op = line["op"].str() + " ";
    auto timeouts = line["timeouts"].u64(), interrupted = line["interrupted"].u64(),
         changed = line["changed"].u64();
    shown[op + "timeout"] += timeouts;
    shown[op + "interrupted"] += interrupted;
    shown[op + "changed"] += changed;
    shown[op + "woken"] += line["count"].u64() - timeouts - interrupted - changed;
    EXPECT_EQ(line["failed"].u64(), 0u);
    EXPECT_LE(line["max_ns"].u64(), line["total_ns"].u64());
    EXPECT_GE(line["max_ns"].u64(), line["average_ns"].u64());
    EXPECT_FALSE(line.has("user_stack"));
  }
  std::erase_if(shown, [](auto& way) { return way.second == 0; });
  EXPECT_EQ(shown, known);
}

TOOL_TEST(Futexctn, OneLockByThread) {
  Scene scene("waiter --count 5 --only timeout");
  auto lock = scene.ready()["words"].u64() + 4;
  std::ostringstream address;
  address << std::hex << std::showbase << lock;
  scene.trace("futexctn --json -s --per-thread -p {pid} -l " + address.str());
  auto seen = scene.finish();
  auto report = seen.report();
  expect_fields(only(report.body),
                {{"op", "wait_bitset"}, {"lock", lock}, {"tid", seen.pid}, {"timeouts", 5}});
  EXPECT_GE(report.lost("filtered"), 5u) << "the other lock, and other processes";
}

/// After a stop and continue, a wait with a timeout is resumed by restart_syscall().
TOOL_TEST(Futexctn, WaitsGoOnAfterASignal) {
  Scene scene("waiter --count 1 --only timeout --ms 3000");
  auto& tracer = scene.trace("futexctn --json --strict -s -p {pid}");
  auto& workload = scene.workload();
  workload.release();
  ASSERT_TRUE(await_sleep(workload.pid()));
  kill(workload.pid(), SIGSTOP);
  ASSERT_TRUE(until([&] { return state_of(workload.pid()) == 'T'; }));
  kill(workload.pid(), SIGCONT);
  workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("timeouts"), 2u);
  EXPECT_EQ(report.sum("interrupted"), 1u);
  EXPECT_EQ(report.sum("count"), 3u);
  for (auto& line : report.body) EXPECT_GE(line["total_ns"].u64(), 2'500'000'000u);
}

TESTS_OF(futexctn, .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"--summary"}}},
         .events = {{}, "waiter --count 3"}, .nothing_when_idle = true,
         .stress = count_row("waiter --only woken --count {n/5}", 20000, "count", "waits"),
         .long_run = {{.arguments = "60"}, {.arguments = "-s 60", .of = "summary"}});

}  // namespace
}  // namespace coretap::tooltest
