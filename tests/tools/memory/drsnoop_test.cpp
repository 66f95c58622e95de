// drsnoop against the kernel's counters of reclaim, of the machine and of a memory cgroup.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Properties of every event.
void check_reclaims(const std::vector<Json>& events) {
  for (auto& event : events) {
    SCOPED_TRACE(event.text());
    auto node = event["node"].u64();
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    EXPECT_LT(event["latency_ns"].u64(), std::uint64_t(1e9) * kPatience.count());
    EXPECT_GE(event["order"].i64(), 0);
    EXPECT_TRUE(contains(event["gfp_flags"].str(), "GFP_"));
    EXPECT_GT(event["free_kb"].u64(), 0u);
    EXPECT_TRUE(!node ||
                std::filesystem::exists("/sys/devices/system/node/node" + std::to_string(node)));
  }
}

void expect_all_from(const Report& report, std::uint64_t pid) {
  for (auto& event : report.body) {
    expect_fields(event, {{"pid", pid}, {"comm", "reclaim"}, {"uid", 0}});
    EXPECT_NE(event["tid"].u64(), pid) << "its threads are what needs memory";
  }
}

// ---- the whole machine ----

/// Skipped runs of its programs: a program is skipped if it is already running on that CPU, in
/// kernels that can be preempted in tracepoints, when another task hits the same one.
std::uint64_t skipped_calls(Tracer& tracer) {
  std::uint64_t calls = 0;
  auto directory = "/proc/" + std::to_string(tracer.process().pid()) + "/fdinfo";
  for (auto& entry : std::filesystem::directory_iterator(directory)) {
    std::istringstream lines(slurp(entry.path().string()));
    for (std::string key, value; lines >> key >> value;)
      if (key == "recursion_misses:") calls += std::stoull(value);
  }
  return calls;
}

// One workload for all options, as it takes seconds to fill a machine's memory.
TOOL_TEST(Drsnoop, DirectReclaimOfTheMachine) {
  require_tool("drsnoop");
  Workload workload("reclaim", "--events 20");
  auto worker = workload.ready()["worker_pid"].u64();
  auto id = std::to_string(worker);
  Counters around;
  std::vector<std::unique_ptr<Tracer>> tracers;
  // The kernel counts reclaim by tracers, too. Raising a minimum causes hundreds of reclaims.
  for (auto& options : Strings{"--json -K --include-self", "--json -p " + id, "--json -t " + id,
                               "-T -U -e -n reclaim"})
    tracers.push_back(std::make_unique<Tracer>("drsnoop", options + " --ring-size 4M"));
  workload.release();
  auto truth = workload.truth();
  std::uint64_t skipped = 0, skipped_here = skipped_calls(*tracers[0]);
  for (auto& tracer : tracers) skipped += skipped_calls(*tracer);
  auto report = tracers[0]->stop(), filtered = tracers[1]->stop(), of_main = tracers[2]->stop();
  auto shown = tracers[3]->stop_text();
  check_reclaims(report.body);
  auto direct = lines_with(report.body, {{"kind", "direct"}});
  EXPECT_EQ(direct.size(), report.body.size()) << "nothing else without --memcg";
  for (auto& event : direct)
    EXPECT_TRUE(has_frame(event, "kernel_stack", "try_to_free_pages")) << event.text();

  // The kernel counts a stall again when it retries because nothing was freed, which is rare while
  // there is page cache.
  auto stalls = truth["vmstat"]["allocstall"].u64(), pages = sum(direct, "reclaimed_pages");
  ASSERT_GT(stalls, 0u);
  EXPECT_GT(direct.size(), 0u);
  EXPECT_LE(direct.size(), around.growth("allocstall*"));
  // Pages from slab caches and inodes also count for the task, but not in pgsteal: each page needs
  // a scanned object, except for a slab that became empty by other frees.
  EXPECT_LE(pages, around.growth("pgsteal_direct") + around.growth("pginodesteal") +
                       around.growth("slabs_scanned") + direct.size());
  if (report.ledger["data_lost"].boolean()) {
    // A skipped start makes its end unmatched, and vice versa.
    auto missing = report.lost("lost") + report.lost("untracked") + report.lost("unmatched") +
                   report.lost("missed");
    EXPECT_GE(direct.size() + missing + stalls / 5, stalls);
  } else {
    EXPECT_EQ(skipped_here, 0u) << "the kernel left calls out and the ledger does not tell";
    EXPECT_GE(direct.size() + stalls / 10, stalls);
    EXPECT_GE(pages, truth["vmstat"]["pgsteal_direct"].u64());
  }

  check_reclaims(filtered.body);
  for (auto& event : filtered.body) expect_fields(event, {{"pid", worker}});
  for (auto& event : of_main.body) expect_fields(event, {{"tid", worker}});
  auto rows = expect_table(
      shown, words(shown),
      R"(\d+\.\d{6} +\d+ +reclaim +\d+ +\d+\.\d+ +\d+ +\d+ +\d+ +direct +\d+ +\d+ +\S*GFP_\S+ *)");
  if (!skipped) {  // otherwise each tracer missed different events
    EXPECT_EQ(filtered.body.size(), lines_with(direct, {{"pid", worker}}).size());
    EXPECT_EQ(of_main.body.size(), lines_with(direct, {{"tid", worker}}).size());
    EXPECT_EQ(rows, lines_with(direct, {{"comm", "reclaim"}}).size());
  }
}

// ---- a memory cgroup ----

/// The stalls that the cgroup counted.
void expect_stalls(const Report& report, const Json& truth) {
  auto events = lines_with(report.body, {{"kind", "memcg"}});
  EXPECT_EQ(events.size(), report.body.size()) << "there is memory enough";
  expect_memcg(truth, events.size(), sum(events, "reclaimed_pages"));
}

TOOL_TEST(Drsnoop, ReclaimOfAMemoryCgroup) {
  auto seen =
      observe_all({"drsnoop --json --strict -M -K -p {worker_pid}",
                   "drsnoop --json --strict -p {worker_pid}", "drsnoop --json --strict --memcg"},
                  "reclaim --memcg", {});
  auto worker = seen.ready["worker_pid"].u64();
  auto report = seen.report(0);
  check_reclaims(report.body);
  expect_all_from(report, worker);
  expect_stalls(report, seen.truth);
  for (auto& event : report.body) expect_kernel_frames(event, {"try_to_free_mem_cgroup_pages"});
  EXPECT_LE(report.sum("latency_ns"), seen.truth["took_ns"].u64()) << "one thread reclaims";
  EXPECT_TRUE(lines_with(seen.report(1).body, {{"kind", "memcg"}}).empty());
  EXPECT_EQ(lines_with(seen.report(2).body, {{"pid", worker}, {"kind", "memcg"}}).size(),
            report.body.size());
}

TESTS_OF(drsnoop, .events = {"-M -e -K -U", "reclaim --memcg --events 3 --seconds 8", true},
         .stress = event_row("reclaim --memcg --events {n}", 50, memcg_stalls, "-M", "worker_pid"),
         .long_run = {{.arguments = "--memcg"}});

}  // namespace
}  // namespace coretap::tooltest
