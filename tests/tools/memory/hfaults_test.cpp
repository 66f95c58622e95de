// hfaults against a workload that asks for huge pages of each kind, and /proc/vmstat.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Hfaults, TransparentOnes) {
  require_tool("hfaults");
  Workload workload("faulter", {"--anon", "2000", "--thp", "6"}, kLinger);
  Counters around;
  Tracer tracer("hfaults", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("thp") + report.sum("fallbacks"), 6u);
  EXPECT_LE(report.sum("thp"), around.growth("thp_fault_alloc"));
  EXPECT_LE(report.sum("fallbacks"), around.growth("thp_fault_fallback"));
  // A huge page has one fault, a small one 512.
  EXPECT_EQ(truth["thp"]["minor"].u64(), 6u);
  EXPECT_EQ(report.sum("hugetlb") + report.sum("collapses"), 0u);
  for (auto& row : report.body) EXPECT_EQ(row["comm"].str(), "faulter");
  workload.end_lingering();
}

TOOL_TEST(Hfaults, ThoseOfHugetlb) {
  require_tool("hfaults");
  Workload workload("faulter", {"--anon", "100", "--hugetlb", "4"}, kLinger);
  Tracer tracer("hfaults", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(truth["hugetlb"]["minor"].u64(), 4u);
  EXPECT_EQ(report.sum("hugetlb"), 4u);
  EXPECT_EQ(report.sum("thp") + report.sum("fallbacks") + report.sum("collapses"), 0u);
  workload.end_lingering();
}

TOOL_TEST(Hfaults, CollapsesAreTheOwners) {
  require_tool("hfaults");
  Workload workload("faulter", {"--collapse", "3"}, kLinger);
  Tracer tracer("hfaults", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  if (!truth["collapsed"].u64()) throw Skip("khugepaged collapsed nothing");
  EXPECT_EQ(report.sum("collapses"), truth["collapsed"].u64());
  EXPECT_EQ(report.sum("thp"), 0u) << "no fault did that";
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
  workload.end_lingering();
}

TOOL_TEST(Hfaults, SmallPagesAreNotSeen) {
  require_tool("hfaults");
  Workload workload("faulter", {"--anon", "3000", "--file", "100"}, kLinger);
  Tracer tracer("hfaults", {"--json", "-p", workload.id()});
  workload.release();
  workload.truth();
  EXPECT_TRUE(tracer.stop().body.empty());
  auto text = lines(run({tool_path("hfaults"), "0.1", "1"}).out);
  ASSERT_GE(text.size(), 2u);
  EXPECT_EQ(words(text[1]), (Strings{"PID", "COMM", "HUGETLB", "THP", "FALLBACK", "COLLAPSED"}));
}

const DeclareTests kHfaults{{
    .name = "hfaults",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "faulter --thp 3"},
    .stress = {.workload = "faulter --anon 10000 --thp {n}",
               .events = 20,
               .shown = "thp+fallbacks",
               .truth =
                   [](stress::Load& load) { return load.workload().truth()["thp"]["minor"].u64(); },
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
