// allocslower against drsnoop and compactsnoop beside it, and the kernel's counters.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Steps of this kind.
std::uint64_t steps_of(const Json& event, const std::string& kind) {
  std::uint64_t count = 0;
  for (auto& step : event["steps"].items()) count += step.str().starts_with(kind);
  return count;
}

void check_allocations(const Report& report) {
  for (auto& event : report.body) {
    SCOPED_TRACE(event.text());
    auto of = [&](const char* key) { return event[key].u64(); };
    EXPECT_GE(of("latency_ns"),
              of("reclaim_ns") + of("async_compaction_ns") + of("sync_compaction_ns"));
    EXPECT_GE(of("reclaim_ns"), of("reclaims")) << "none takes no time";
    EXPECT_EQ(of("retries"), of("reclaims") ? of("reclaims") - 1 : 0);
    EXPECT_TRUE(contains(event["gfp_flags"].str(), "GFP_"));
    if (event["steps"].items().size() == 32) continue;  // there may be more
    EXPECT_EQ(steps_of(event, "reclaim"), of("reclaims"));
    EXPECT_EQ(steps_of(event, "compact-async"), of("async_compactions"));
    EXPECT_EQ(steps_of(event, "compact-sync"), of("sync_compactions"));
    EXPECT_EQ(steps_of(event, "kswapd") > 0, of("kswapd_wakeups") > 0);
  }
}

/// Two tools that read the clock one after the other.
void expect_near(std::uint64_t ours, std::uint64_t theirs, std::size_t runs) {
  const auto slack = static_cast<double>(theirs) / 5 + static_cast<double>(runs) * 500'000;
  EXPECT_NEAR(static_cast<double>(ours), static_cast<double>(theirs), slack);
}

// As in the tests of drsnoop, one workload for all, as it takes seconds to fill a machine's memory.
TOOL_TEST(Allocslower, ReclaimLikeDrsnoop) {
  require_tool("allocslower");
  Workload workload("reclaim", "--events 20");
  auto id = std::to_string(workload.ready()["worker_pid"].u64());
  Counters around;
  Tracer all("allocslower", "0 --json -K --include-self --ring-size 8M"),
      drsnoop("drsnoop", "--json -p " + id + " --ring-size 4M"),
      ours("allocslower", "0 --json -p " + id + " --ring-size 8M"),
      slow("allocslower", "5 --json -p " + id + " --ring-size 8M"),
      text("allocslower", "0 -T -e -n reclaim --ring-size 8M");
  workload.release();
  auto truth = workload.truth();
  auto machine = all.stop(), mine = ours.stop(), theirs = drsnoop.stop(), slowest = slow.stop();
  auto shown = text.stop_text();
  check_allocations(machine);
  check_allocations(mine);
  EXPECT_LE(machine.sum("reclaims"), around.growth("allocstall*"));
  EXPECT_GT(mine.sum("reclaims"), 0u);
  for (auto& event : machine.body)
    EXPECT_TRUE(has_frame(event, "kernel_stack", "alloc") || event["kernel_stack"].items().empty())
        << event.text();
  if (machine.ledger["data_lost"].boolean() || mine.ledger["data_lost"].boolean() ||
      theirs.ledger["data_lost"].boolean())
    return;
  EXPECT_GE(machine.sum("reclaims") + truth["vmstat"]["allocstall"].u64() / 10,
            truth["vmstat"]["allocstall"].u64());
  auto runs = theirs.body.size();
  EXPECT_EQ(mine.sum("reclaims"), runs);
  EXPECT_EQ(mine.sum("reclaimed_pages"), theirs.sum("reclaimed_pages"));
  expect_near(mine.sum("reclaim_ns"), theirs.sum("latency_ns"), runs);
  EXPECT_EQ(mine.lost("unmatched"), 0u);
  // The same allocations, without the quick ones.
  std::size_t long_ones = 0;
  for (auto& event : mine.body) long_ones += event["latency_ns"].u64() >= 6'000'000;
  EXPECT_LE(slowest.body.size(), mine.body.size());
  EXPECT_GE(slowest.body.size() + long_ones / 4 + 2, long_ones);
  for (auto& event : slowest.body) EXPECT_GE(event["latency_ns"].u64(), 5'000'000u);
  EXPECT_GT(
      expect_table(
          shown,
          "TIME(s) COMM PID ORDER LAT(ms) RECLAIM(ms) PAGES ASYNC(ms) SYNC(ms) RETRIES RECLAIMS "
          "ASYNCS SYNCS KSWAPD VICTIMS FAILED GFP STEPS",
          R"(\d+\.\d{6} +reclaim +\d+ +\d+ +\d+\.\d\d +\d+\.\d\d +\d+ +\d+\.\d\d +\d+\.\d\d( +\d+){6} +(yes|no) +\S*GFP_\S+.*)"),
      0u);
}

TOOL_TEST(Allocslower, CompactionLikeCompactsnoop) {
  auto seen =
      observe_all({"allocslower 0 --json -K -p {pid} --ring-size 8M",
                   "compactsnoop --json -p {pid} --ring-size 4M", "allocslower 0 --json -u 54321"},
                  "compaction --events 4", {});
  auto report = seen.report(0);
  check_allocations(report);
  auto direct = lines_with(seen.report(1).body, {{"kind", "direct"}});
  auto async = lines_with(direct, {{"mode", "ASYNC"}}),
       sync = lines_with(direct, {{"mode", "SYNC"}});
  EXPECT_GT(direct.size(), 0u);
  EXPECT_EQ(report.sum("async_compactions"), async.size());
  EXPECT_EQ(report.sum("sync_compactions"), sync.size());
  expect_near(report.sum("async_compaction_ns"), sum(async, "latency_ns"), async.size());
  expect_near(report.sum("sync_compaction_ns"), sum(sync, "latency_ns"), sync.size());
  for (auto* status : {"success", "complete", "contended", "partial_skipped"}) {
    std::uint64_t steps = 0;
    for (auto& event : report.body)
      for (auto& step : event["steps"].items())
        steps +=
            step.str().starts_with("compact-") && step.str().ends_with(std::string("ms ") + status);
    EXPECT_EQ(steps, lines_with(direct, {{"status", status}}).size()) << status;
  }
  for (auto& event : report.body) expect_fields(event, {{"comm", "compaction"}, {"pid", seen.pid}});
  EXPECT_FALSE(lines_with(report.body, {{"order", 9}}).empty());
  EXPECT_TRUE(seen.body(2).empty());
}

// The machine's memory is used up: in turns.
TESTS_OF(allocslower, .events = {"0 -e -K -U", "reclaim --events 3 --seconds 8", true},
         // Emulation takes more than the usual 20 s to fill the memory.
         .stress = event_row("reclaim --events {n} --seconds 90", 20, {}, "0", "worker_pid")
                       .of_one_workload()
                       .not_known(),
         .long_run = {{.arguments = "0 -e"}});

}  // namespace
}  // namespace coretap::tooltest
