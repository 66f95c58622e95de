// vmscan against /proc/vmstat, a memory cgroup's own counters, and the kernel's trace.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void check_runs(const Report& report) {
  for (auto& line : report.body)
    for (std::string kind : {"direct", "memcg", "slab"})
      EXPECT_GE(line[(kind + "_ns").c_str()].u64(), line[(kind + "_runs").c_str()].u64())
          << "none takes no time";
}

// The kernel's repeated counts after a failed try, and pages of slab caches: see drsnoop's test.
TOOL_TEST(Vmscan, TheMachine) {
  Workload workload("reclaim", "--events 20");
  Counters around;
  Tracer tracer("vmscan", "--json 0.5");
  Counters within;
  workload.release();
  auto vmstat = workload.truth()["vmstat"];
  auto kswapd = within.growth("pageoutrun");
  auto report = tracer.stop();
  check_runs(report);
  auto stalls = vmstat["allocstall"].u64(), runs = report.sum("direct_runs");
  // Tracepoint and counter are adjacent: at both ends a run may be between them.
  expect_within(report, {between("direct_runs", 1, around.growth("allocstall*")),
                         at_most("direct_reclaimed_pages",
                                 around.growth("pgsteal_direct") + around.growth("pginodesteal") +
                                     around.growth("slabs_scanned") + runs),
                         at_most("kswapd_runs", around.growth("pageoutrun") + 8),
                         at_least("kswapd_wakeups", 1),
                         at_most("written_pages", around.growth("nr_vmscan_write"))});
  if (report.ledger["data_lost"].boolean()) return;
  EXPECT_GE(runs + stalls / 10, stalls);
  EXPECT_GE(report.sum("direct_reclaimed_pages"), vmstat["pgsteal_direct"].u64());
  EXPECT_GE(report.sum("kswapd_runs") + 8, kswapd);
}

TOOL_TEST(Vmscan, AMemoryCgroup) {
  auto seen = observe_all(
      {"vmscan --json --strict -p {worker_pid} 0.2",
       "vmscan --json --strict -d -p {worker_pid} 1000", "vmscan --json --strict -u 54321"},
      "reclaim --memcg", {});
  auto report = seen.report(0);
  auto runs = report.sum("memcg_runs"), took = seen.truth["took_ns"].u64();
  check_runs(report);
  expect_memcg(seen.truth, runs, report.sum("memcg_reclaimed_pages"));
  expect_within(report, {{"memcg_ns", 0, took},    // one thread reclaims
                         {"direct_runs", 0, 0},    // there is enough memory
                         {"kswapd_runs", 0, 0}});  // kswapd is another task
  expect_within(seen.report(2), {{"direct_runs", 0, 0}, {"memcg_runs", 0, 0}, {"slab_runs", 0, 0}});

  auto histograms = seen.report(1).body;
  for (auto& line : histograms) check_histogram(line, 1000);
  auto line = line_with(histograms, {{"kind", "memcg"}});
  expect_fields(line, {{"count", runs}});
  EXPECT_LE(line["total_ns"].u64(), took);
}

// Against the kernel's trace from before until after the tool, and only while it certainly traces.
TOOL_TEST(Vmscan, SlabShrinkers) {
  if (!in_guest()) throw Skip("drops the machine's caches: a guest's only");
  Trace around("vmscan/mm_shrink_slab_end");
  Tracer tracer("vmscan", "--json --strict 1000");
  Trace within("vmscan/mm_shrink_slab_end");
  auto started = std::chrono::steady_clock::now();
  auto dropped = run({"sh", "-c", "for i in 1 2 3; do echo 2 >/proc/sys/vm/drop_caches; done"});
  std::chrono::nanoseconds took = std::chrono::steady_clock::now() - started;
  within.stop();
  auto least = within.lines().size();
  auto report = tracer.stop();
  around.stop();
  ASSERT_EQ(dropped.status, 0) << dropped.err;
  check_runs(report);
  EXPECT_GT(least, 0u);
  expect_within(report, {{"slab_runs", least, around.lines().size()}});
  if (report.sum("kswapd_runs") == 0) {
    EXPECT_LE(report.sum("slab_ns"), static_cast<std::uint64_t>(took.count()) * 2);
  }
}

TOOL_TEST(Vmscan, TextAndCsv) {
  EXPECT_EQ(
      2u, expect_table(output_of("vmscan 0.1 2"),
                       "TIME S-SLABms D-RECLAIMms M-RECLAIMms KSWAPD WRITEPAGE K-CPUms",
                       R"(\d\d:\d\d:\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+ +\d+ +\d+\.\d\d)"));
}

TESTS_OF(vmscan, .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"-d"}}},
         .events = {{}, "reclaim --memcg --events 3 --seconds 8", true},
         .stress = total_row("reclaim --memcg --events {n}", 50, "memcg_runs", memcg_stalls, {},
                             "worker_pid"));

}  // namespace
}  // namespace coretap::tooltest
