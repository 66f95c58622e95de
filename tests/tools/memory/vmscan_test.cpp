// vmscan against /proc/vmstat, a memory cgroup's own counters, and the kernel's trace.
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr const char* kKinds[] = {"direct", "memcg", "slab"};

void check_lines(const Report& report) {
  for (auto& line : report.body)
    for (std::string kind : kKinds) {
      auto ns = line[(kind + "_ns").c_str()].u64(), runs = line[(kind + "_runs").c_str()].u64();
      EXPECT_GE(ns, runs) << "none takes no time";
    }
}

// What the kernel counts again when a try freed nothing, and what slab caches gave back: see
// drsnoop's test.
TOOL_TEST(Vmscan, TheMachine) {
  require_tool("vmscan");
  Workload workload("reclaim", {"--events", "20"});
  Counters around;
  Tracer tracer("vmscan", {"--json", "0.5"});
  Counters within;
  workload.release();
  auto truth = workload.truth();
  auto kswapd = within.growth("pageoutrun");
  auto report = tracer.stop();
  check_lines(report);
  auto stalls = truth["vmstat"]["allocstall"].u64();
  EXPECT_GT(report.sum("direct_runs"), 0u);
  EXPECT_LE(report.sum("direct_runs"), around.growth("allocstall*"));
  EXPECT_LE(report.sum("direct_reclaimed_pages"),
            around.growth("pgsteal_direct") + around.growth("pginodesteal") +
                around.growth("slabs_scanned") + report.sum("direct_runs"));
  // Tracepoint and counter stand next to each other: a run may be between them at either end.
  EXPECT_LE(report.sum("kswapd_runs"), around.growth("pageoutrun") + 8);
  EXPECT_GT(report.sum("kswapd_wakeups"), 0u);
  EXPECT_LE(report.sum("written_pages"), around.growth("nr_vmscan_write"));
  if (report.ledger["data_lost"].boolean()) return;
  EXPECT_GE(report.sum("direct_runs") + stalls / 10, stalls);
  EXPECT_GE(report.sum("direct_reclaimed_pages"), truth["vmstat"]["pgsteal_direct"].u64());
  EXPECT_GE(report.sum("kswapd_runs") + 8, kswapd);
}

TOOL_TEST(Vmscan, AMemoryCgroup) {
  require_tool("vmscan");
  Workload workload("reclaim", {"--memcg"});
  auto worker = std::to_string(workload.ready()["worker_pid"].u64());
  Tracer sums("vmscan", {"--json", "--strict", "-p", worker, "0.2"});
  Tracer times("vmscan", {"--json", "--strict", "-d", "-p", worker, "1000"});
  Tracer nobody("vmscan", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  auto memcg = truth["memcg"];
  auto report = sums.stop(), histograms = times.stop(), none = nobody.stop();
  check_lines(report);
  auto runs = report.sum("memcg_runs"), pages = report.sum("memcg_reclaimed_pages");
  EXPECT_GT(runs, 0u);
  if (memcg["version"].u64() == 1) {
    EXPECT_LE(runs, memcg["failcnt"].u64());
    EXPECT_GT(pages, 0u);
  } else {
    EXPECT_EQ(runs, memcg["max_events"].u64());
    EXPECT_GE(pages, memcg["pgsteal"].u64());
  }
  EXPECT_LE(report.sum("memcg_ns"), truth["took_ns"].u64()) << "one thread reclaims";
  EXPECT_EQ(report.sum("direct_runs"), 0u) << "there is memory enough";
  EXPECT_EQ(report.sum("kswapd_runs"), 0u) << "kswapd is another task";
  for (std::string kind : kKinds) EXPECT_EQ(none.sum((kind + "_runs").c_str()), 0u);

  bool found = false;
  for (auto& line : histograms.body) {
    check_histogram(line, 1000);
    if (line["kind"].str() != "memcg") continue;
    found = true;
    EXPECT_EQ(line["count"].u64(), runs);
    EXPECT_LE(line["total_ns"].u64(), truth["took_ns"].u64());
  }
  EXPECT_TRUE(found);
}

// The kernel's own trace, on from before until after the tool, and only while it certainly traces.
TOOL_TEST(Vmscan, SlabShrinkers) {
  require_tool("vmscan");
  if (!in_guest()) throw Skip("drops the machine's caches: a guest's only");
  Trace around("vmscan/mm_shrink_slab_end");
  Tracer tracer("vmscan", {"--json", "--strict", "1000"});
  Trace within("vmscan/mm_shrink_slab_end");
  auto started = std::chrono::steady_clock::now();
  auto dropped = run({"sh", "-c", "for i in 1 2 3; do echo 2 >/proc/sys/vm/drop_caches; done"});
  auto took = std::chrono::steady_clock::now() - started;
  within.stop();
  auto least = within.lines().size();
  auto report = tracer.stop();
  around.stop();
  ASSERT_EQ(dropped.status, 0) << dropped.err;
  check_lines(report);
  EXPECT_GT(least, 0u);
  EXPECT_GE(report.sum("slab_runs"), least);
  EXPECT_LE(report.sum("slab_runs"), around.lines().size());
  if (report.sum("kswapd_runs") == 0) {
    EXPECT_LE(report.sum("slab_ns"),
              static_cast<std::uint64_t>(std::chrono::nanoseconds(took).count()) * 2);
  }
}

TOOL_TEST(Vmscan, TextAndCsv) {
  require_tool("vmscan");
  auto text = run({tool_path("vmscan"), "0.1", "2"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(safe_for_terminals(text.out));
  std::istringstream lines(text.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME", "S-SLABms", "D-RECLAIMms", "M-RECLAIMms", "KSWAPD",
                                  "WRITEPAGE", "K-CPUms"}));
  static const std::regex row(
      R"(\d\d:\d\d:\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+ +\d+ +\d+\.\d\d)");
  int rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, 2);
  auto csv = run({tool_path("vmscan"), "--csv", "0.1", "1"});
  ASSERT_EQ(csv.status, 0) << csv.err;
  EXPECT_TRUE(csv.out.starts_with("time,slab_ns,direct_ns,memcg_ns,kswapd_wakeups,")) << csv.out;
  EXPECT_EQ(run({tool_path("vmscan"), "-d", "-e"}).status, 2);
}

const DeclareTests kVmscan{{
    .name = "vmscan",
    .reports = {{ReportKind::aggregate}, {ReportKind::aggregate, {"-d"}}},
    .events = {{}, "reclaim --memcg --events 3 --seconds 8", true},
    .stress = {.workload = "reclaim --memcg --events {n}",
               .events = 50,
               .shown = "memcg_runs",
               .truth =
                   [](stress::Load& load) {
                     auto memcg = load.workload().truth()["memcg"];
                     if (memcg["version"].u64() != 2) throw Skip("cgroup-1");
                     return memcg["max_events"].u64();
                   },
               .pids = "worker_pid"},
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
