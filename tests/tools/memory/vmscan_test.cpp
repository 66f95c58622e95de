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

/// The sum of a key over the rows with this cause and type of pages; empty: all.
std::uint64_t pages_of(const Report& report, const char* key, const std::string& cause,
                       const std::string& pages) {
  std::uint64_t total = 0;
  for (auto& row : report.body)
    if ((cause.empty() || row["cause"].str() == cause) &&
        (pages.empty() || row["pages"].str() == pages))
      total += row[key].u64();
  return total;
}

// Against the kernel's counters, from before until after the tool, and while it certainly traces.
TOOL_TEST(Vmscan, PagesOfTheMachine) {
  Workload workload("reclaim", "--events 20");
  Counters around;
  Tracer tracer("vmscan", "--pages --json 0.5");
  Counters within;
  workload.release();
  workload.truth();
  struct {
    const char *key, *counter, *cause, *pages;
    std::uint64_t least;
  } all[] = {{"scanned_pages", "pgscan_kswapd", "kswapd", "", 0},
             {"scanned_pages", "pgscan_direct", "direct", "", 0},
             {"scanned_pages", "pgscan_anon", "", "anon", 0},
             {"scanned_pages", "pgscan_file", "", "file", 0},
             {"reclaimed_pages", "pgsteal_kswapd", "kswapd", "", 0},
             {"reclaimed_pages", "pgsteal_direct", "direct", "", 0},
             {"reclaimed_pages", "pgsteal_anon", "", "anon", 0},
             {"reclaimed_pages", "pgsteal_file", "", "file", 0}};
  for (auto& row : all) row.least = within.growth(row.counter);
  auto report = tracer.stop();
  for (auto& row : report.body) {
    EXPECT_LE(row["reclaimed_pages"].u64(), row["scanned_pages"].u64() + 4096) << row.text();
    if (!row["reclaimed_ratio"].is_null()) {
      EXPECT_NEAR(row["reclaimed_ratio"].real() * static_cast<double>(row["scanned_pages"].u64()),
                  static_cast<double>(row["reclaimed_pages"].u64()), 1);
    }
  }
  EXPECT_GT(pages_of(report, "scanned_pages", "direct", "file"), 0u);
  for (auto& row : all) {
    SCOPED_TRACE(std::string(row.counter) + " " + row.cause);
    auto ours = pages_of(report, row.key, row.cause, row.pages);
    // Counter and tracepoint are adjacent: up to a batch of a CPU may be between them. The counter
    // of direct reclaim has other reclaim too.
    constexpr std::uint64_t kBatch = 64 * 4;
    EXPECT_LE(ours, around.growth(row.counter) + kBatch);
    if (!report.ledger["data_lost"].boolean()) {
      auto other = *row.cause ? pages_of(report, row.key, "other", row.pages) : 0;
      EXPECT_GE(ours + other + kBatch, row.least);
    }
  }
}

TOOL_TEST(Vmscan, PagesOfAMemoryCgroup) {
  auto seen = observe("vmscan --pages --json --strict -p {worker_pid} 1000", "reclaim --memcg", {});
  auto report = seen.report();
  EXPECT_GT(pages_of(report, "reclaimed_pages", "memcg", "file"), 0u);
  EXPECT_EQ(pages_of(report, "scanned_pages", "", ""),
            pages_of(report, "scanned_pages", "memcg", ""));
  if (seen.truth["memcg"]["version"].u64() == 2) {
    EXPECT_GE(pages_of(report, "reclaimed_pages", "memcg", ""),
              seen.truth["memcg"]["pgsteal"].u64());
  }
}

TOOL_TEST(Vmscan, EachShrinker) {
  if (!in_guest()) throw Skip("drops the machine's caches: a guest's only");
  Trace around("vmscan/mm_shrink_slab_end");
  Tracer tracer("vmscan", "--shrinkers --json --strict 1000");
  Trace within("vmscan/mm_shrink_slab_end");
  auto dropped = run({"sh", "-c", "for i in 1 2 3; do echo 2 >/proc/sys/vm/drop_caches; done"});
  within.stop();
  auto report = tracer.stop();
  around.stop();
  ASSERT_EQ(dropped.status, 0) << dropped.err;
  // The event's first word is the function: "super_cache_scan+0x0/0x1a0 00000000...: nid: 0 ...".
  auto by_function = [](const Trace& trace) {
    static const std::regex function(R"(mm_shrink_slab_end: ([\w.]+)\+0x)");
    std::map<std::string, std::uint64_t> counts;
    for (auto& line : trace.lines()) {
      std::smatch found;
      if (std::regex_search(line, found, function)) counts[found[1]]++;
    }
    return counts;
  };
  auto least = by_function(within), most = by_function(around);
  std::map<std::string, std::uint64_t> ours;
  for (auto& row : report.body) {
    ours[row["shrinker"].str()] += row["runs"].u64();
    EXPECT_GE(row["time_ns"].u64(), row["runs"].u64()) << "none takes no time";
  }
  EXPECT_FALSE(least.empty());
  for (auto& [function, count] : most) {
    SCOPED_TRACE(function);
    EXPECT_GE(ours[function], least[function]);
    EXPECT_LE(ours[function], count);
  }
  for (auto& [function, count] : ours) EXPECT_TRUE(most.contains(function)) << function;
}

// Against the same file, read by the test before, while and after the tool counts.
TOOL_TEST(Vmscan, CountersOfTheKernel) {
  Workload workload("reclaim", "--events 10");
  Counters around;
  Tracer tracer("vmscan", "--counters --json 0.3");
  Counters within;
  workload.release();
  workload.truth();
  if (in_guest()) {
    EXPECT_EQ(run({"sh", "-c", "echo 1 >/proc/sys/vm/compact_memory"}).status, 0);
  }
  const std::string_view names[] = {
      "pgscan_direct",           "pgsteal_kswapd", "pageoutrun",      "slabs_scanned",
      "compact_migrate_scanned", "compact_fail",   "thp_fault_alloc", "compact_stall"};
  std::map<std::string_view, std::uint64_t> least, ours;
  for (auto name : names) least[name] = within.growth(name);
  usleep(500'000);
  auto report = tracer.stop();
  for (auto& row : report.body) {
    EXPECT_GT(row["count"].u64(), 0u) << row.text();
    for (auto name : names)
      if (row["counter"].str() == name) {
        ours[name] += row["count"].u64();
        EXPECT_TRUE(row["meaning"].is_string() || name == "slabs_scanned") << row.text();
      }
  }
  EXPECT_GT(ours["pgscan_direct"] + ours["pgsteal_kswapd"], 0u);
  if (in_guest()) {
    EXPECT_GT(ours["compact_migrate_scanned"], 0u);
  }
  for (auto name : names) {
    SCOPED_TRACE(name);
    EXPECT_GE(ours[name], least[name]);
    EXPECT_LE(ours[name], around.growth(name));
  }
  expect_refused("vmscan --counters -p 1 1 1", {"--counters"});
}

TOOL_TEST(Vmscan, TextAndCsv) {
  EXPECT_EQ(
      2u, expect_table(output_of("vmscan 0.1 2"),
                       "TIME S-SLABms D-RECLAIMms M-RECLAIMms KSWAPD WRITEPAGE K-CPUms",
                       R"(\d\d:\d\d:\d\d +\d+\.\d\d +\d+\.\d\d +\d+\.\d\d +\d+ +\d+ +\d+\.\d\d)"));
}

TESTS_OF(vmscan,
         .reports = {{ReportKind::aggregate},
                     {ReportKind::aggregate, {"-d"}},
                     {ReportKind::aggregate, {"--pages"}},
                     {ReportKind::aggregate, {"--shrinkers"}},
                     {ReportKind::snapshot, {"--counters"}}},
         .events = {{}, "reclaim --memcg --events 3 --seconds 8", true},
         .stress = total_row("reclaim --memcg --events {n}", 50, "memcg_runs", memcg_stalls, {},
                             "worker_pid"));

}  // namespace
}  // namespace coretap::tooltest
