// hfaults against a workload that maps huge pages of each kind, and /proc/vmstat.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Hfaults, TransparentOnes) {
  Scene scene("faulter --anon 2000 --thp 6");
  Counters around;
  scene.trace("hfaults --json --strict -p {pid}");
  auto seen = scene.finish();
  auto report = seen.report();
  EXPECT_EQ(report.sum("thp") + report.sum("fallbacks"), 6u);
  expect_within(report, {at_most("thp", around.growth("thp_fault_alloc")),
                         at_most("fallbacks", around.growth("thp_fault_fallback")),
                         exactly("hugetlb", 0), exactly("collapses", 0)});
  // A huge page has one fault, a small one 512.
  EXPECT_EQ(seen.truth["thp"]["minor"].u64(), 6u);
  for (auto& row : report.body) expect_fields(row, {{"comm", "faulter"}});
}

TOOL_TEST(Hfaults, ThoseOfHugetlb) {
  auto seen = observe("hfaults --json --strict -p {pid}", "faulter --anon 100 --hugetlb 4");
  EXPECT_EQ(seen.truth["hugetlb"]["minor"].u64(), 4u);
  expect_within(seen.report(),
                {{"hugetlb", 4, 4}, {"thp", 0, 0}, {"fallbacks", 0, 0}, {"collapses", 0, 0}});
}

TOOL_TEST(Hfaults, CollapsesAreTheOwners) {
  auto seen = observe("hfaults --json --strict -p {pid}", "faulter --collapse 3");
  auto collapsed = seen.truth["collapsed"].u64();
  if (!collapsed) throw Skip("khugepaged collapsed nothing");
  expect_fields(line_with(seen.report().body, {}),
                {{"collapses", collapsed}, {"thp", 0}, {"pid", seen.pid}});  // not made by faults
}

TOOL_TEST(Hfaults, SmallPagesAreNotSeen) {
  auto seen = observe("hfaults --json -p {pid}", "faulter --anon 3000 --file 100");
  EXPECT_TRUE(seen.report().body.empty());
}

TOOL_TEST(Hfaults, ResidentLikeSmaps) {
  require_tool("hfaults");
  auto workload = Workload::of("faulter --anon 100 --thp 6", kLinger);
  workload.release();
  workload.truth();
  auto report = parse_report(output_of("hfaults --resident --json"), "");
  // The sum over the areas, from another file than the tool reads.
  std::map<std::string, std::uint64_t> sums;
  for (auto& line : complete_lines(slurp("/proc/" + workload.id() + "/smaps")))
    if (auto cells = words(line); cells.size() == 3 && cells[2] == "kB")
      sums[cells[0]] += std::stoull(cells[1]) << 10;
  auto rows = lines_with(report.body, {is("pid", workload.pid())});
  if (!sums["AnonHugePages:"]) {
    EXPECT_TRUE(rows.empty());
    throw Skip("no huge page was free, or they are mapped no longer");
  }
  ASSERT_EQ(rows.size(), 1u);
  expect_fields(rows[0], {{"comm", "faulter"},
                          {"anon_huge_bytes", sums["AnonHugePages:"]},
                          {"rss_bytes", sums["Rss:"]}});
  auto most = std::uint64_t(-1);
  for (auto& row : report.body) {
    auto huge = row["anon_huge_bytes"].u64() + row["shmem_huge_bytes"].u64() +
                row["file_huge_bytes"].u64() + row["hugetlb_bytes"].u64();
    EXPECT_GT(huge, 0u);
    EXPECT_LE(huge, most) << "most first";
    most = huge;
  }
  EXPECT_EQ(lines(output_of("hfaults --resident -r 1")).size(), 2u);
}

TOOL_TEST(Hfaults, CountersOfTheKernel) {
  auto workload = Workload::of("faulter --anon 100 --thp 6", kLinger);
  Counters around;
  Tracer tracer("hfaults", "--counters --json 0.3");
  workload.release();
  auto faults = workload.truth()["thp"]["minor"].u64();
  usleep(500'000);
  auto report = tracer.stop();
  std::uint64_t got = 0, fell_back = 0;
  for (auto& row : report.body) {
    auto name = row["counter"].str();
    EXPECT_TRUE(name.starts_with("thp_") || name.starts_with("compact_") ||
                name.starts_with("pgmigrate_"))
        << name;
    if (name == "thp_fault_alloc") got += row["count"].u64();
    if (name == "thp_fault_fallback") fell_back += row["count"].u64();
  }
  EXPECT_GE(got + fell_back, faults);
  EXPECT_LE(got, around.growth("thp_fault_alloc"));
  EXPECT_LE(fell_back, around.growth("thp_fault_fallback"));
  expect_refused("hfaults --counters --resident", {"--counters"});
}

TOOL_TEST(Hfaults, SettingsBeforeTracing) {
  auto result = result_of("hfaults 0.1 1");
  auto all = slurp("/sys/kernel/mm/transparent_hugepage/enabled");
  auto enabled = all.substr(all.find('[') + 1, all.find(']') - all.find('[') - 1);
  expect_contains(result.err, {"enabled " + enabled + ", defrag "});
}

TESTS_OF(hfaults, .events = {{}, "faulter --thp 3"}, .alone = true,
         .stress = count_row("faulter --anon 10000 --thp {n}", 20, "thp+fallbacks",
                             [](stress::Load& load) {
                               return load.workload().truth()["thp"]["minor"].u64();
                             }));

}  // namespace coretap::tooltest
