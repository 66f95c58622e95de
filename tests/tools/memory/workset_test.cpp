// workset against a file that is read again and again in a memory cgroup that cannot hold it.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Each round but the first has to bring back what did not fit.
std::uint64_t least_refaults(const Json& truth) {
  return (truth["rounds"].u64() - 1) * (truth["file_pages"].u64() - truth["limit_pages"].u64());
}
/// Pages that are read ahead may be evicted before they are read.
std::uint64_t most_refaults(const Json& truth) {
  return 2 * truth["rounds"].u64() * truth["file_pages"].u64();
}

TOOL_TEST(Workset, TheMachine) {
  Workload workload("rereads", "--rounds 4");
  Counters around;
  Tracer tracer("workset", "--json 0.2");
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_GT(report.body.size(), 0u);
  expect_within(
      report, {between("refaulted_file_pages", least_refaults(truth),
                       around.growth("workingset_refault_file")),
               between("evicted_file_pages", least_refaults(truth), around.growth("pgsteal_file")),
               at_most("restored_file_pages", around.growth("workingset_restore_file"))});
  for (auto& line : report.body) EXPECT_EQ(line["type"].str(), "interval");
}

TOOL_TEST(Workset, ByCgroup) {
  Workload workload("rereads", "--rounds 4", {.linger = true});
  Tracer tracer("workset", "--json --by cgroup 0.2");
  workload.release();
  auto truth = workload.truth();
  usleep(500'000);
  auto report = tracer.stop();
  auto own = lines_with(report.body, {{"cgroup_id", truth["cgroup_id"].u64()}});
  expect_within(own,
                {between("refaulted_file_pages", least_refaults(truth), most_refaults(truth))});
  for (auto& line : own) {
    EXPECT_TRUE(truth["cgroup"].str().ends_with(line["cgroup"].str())) << line["cgroup"].str();
    EXPECT_EQ(line["refaulted_anon_pages"].u64(), 0u);
  }
  // A cgroup contains those below it.
  auto root = lines_with(report.body, {{"cgroup", "/"}});
  EXPECT_GE(sum(root, "refaulted_file_pages"), sum(own, "refaulted_file_pages"));
}

// The file's pages are evicted in the order in which they are read: each one comes back after all
// that do not fit were evicted. In a smaller cgroup what is read ahead may be evicted, too.
TOOL_TEST(Workset, Distances) {
  if (!in_guest() && result_of(Strings("workset --distances 0.1 1")).status == 3)
    throw Skip("where the kernel allows no probes");
  std::optional<Setting> plain_lru;
  if (in_guest() && !slurp("/sys/kernel/mm/lru_gen/enabled").empty())
    plain_lru.emplace("/sys/kernel/mm/lru_gen/enabled", "0");
  auto seen =
      observe_all({"workset --json --strict --distances 1000", "workset --json --strict -d 1000",
                   "workset --json --strict --distances -p {worker_pid} 1000",
                   "workset --json --distances -u 54321 1000"},
                  "rereads --rounds 4 --limit 20000000 --size 100000000", {});
  // Where memory is short, the kernel also drops what it keeps of evicted pages.
  if (seen.truth["refaulted_pages"].u64() < least_refaults(seen.truth))
    throw Skip("by the kernel's own count, too few evicted pages came back");
  auto pages = seen.truth["file_pages"].u64(), limit = seen.truth["limit_pages"].u64();
  auto page = static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  for (auto report : {seen.report(0), seen.report(2)}) {
    auto own = only(lines_with(report.body, {{"cgroup_id", seen.truth["cgroup_id"].u64()}}));
    EXPECT_EQ(own["pages"].str(), "file");
    EXPECT_GE(own["refaulted_pages"].u64(), least_refaults(seen.truth));
    // Before 5.13 (2d146aa3aa84) each CPU kept a part of the cgroup's count to itself.
    EXPECT_GE(own["refaulted_pages"].u64(), seen.truth["refaulted_pages"].u64());
    EXPECT_LE(own["refaulted_pages"].u64(), seen.truth["refaulted_pages"].u64() + 256);
    expect_between(own["p50_bytes"].real(), (pages - limit) * page * 0.9, 2.0 * pages * page);
    expect_between(own["p99_bytes"].real(), own["p50_bytes"].real(), 2.0 * pages * page);
  }
  auto histogram = line_with(seen.report(1).body, {{"pages", "file"}});
  EXPECT_GE(histogram["count"].u64(), seen.truth["refaulted_pages"].u64());
  std::uint64_t in_range = 0;
  for (auto& range : histogram["histogram"].items())
    if (range["below_bytes"].u64() > (pages - limit) * page * 3 / 4 &&
        range["from_bytes"].u64() <= 2 * pages * page)
      in_range += range["count"].u64();
  EXPECT_GE(in_range * 10, histogram["count"].u64() * 9);
  EXPECT_TRUE(seen.body(3).empty());
}

TOOL_TEST(Workset, Text) {
  auto host = complete_lines(output_of("workset 0.1 2"));
  ASSERT_EQ(host.size(), 3u);
  EXPECT_EQ(words(host[0]), words("TIME REF-ANON REF-FILE ACT-ANON ACT-FILE RES-ANON RES-FILE "
                                  "EVICT-ANON EVICT-FILE NODES"));
  EXPECT_EQ(words(host[1]).size(), words(host[0]).size());
  auto groups = complete_lines(output_of("workset --by cgroup 0.1 1"));
  EXPECT_EQ(words(groups.at(1)), words("REF-ANON REF-FILE ACT-ANON ACT-FILE RES-ANON RES-FILE "
                                       "EVICTED NODES CGROUP"));
}

TOOL_TEST(Workset, Refused) {
  expect_refused("workset --by comm 1 1", {"--by cgroup"});
  expect_refused("workset -p 1 1 1", {"--distances"});
  expect_refused("workset --top 5 1 1", {"--by cgroup"});
  expect_refused("workset --distances -d 1 1", {"distributed"});
}

TESTS_OF(workset, .reports = {{ReportKind::snapshot}},
         .events = {.options = "0.1", .command = "rereads --rounds 2"},
         .long_run = {{.arguments = "--by cgroup 1"}});

}  // namespace
}  // namespace coretap::tooltest
