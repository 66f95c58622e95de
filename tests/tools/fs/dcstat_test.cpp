// dcstat against a process that looks up known numbers of names.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Dcstat, LookupsOfAProcess) {
  require_tool("dcstat");
  Workload workload("lookups", {"--absent", "200", "--present", "300"}, kLinger),
      other("lookups", {"--absent", "50"}, kLinger);
  Tracer tracer("dcstat", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  other.release();
  workload.truth();
  other.truth();
  auto report = tracer.stop();
  EXPECT_EQ(report.sum("refs"), 500u);
  EXPECT_EQ(report.sum("slow_refs"), 200u);
  EXPECT_EQ(report.sum("misses"), 200u);
}

TOOL_TEST(Dcstat, TextHasRates) {
  require_tool("dcstat");
  EXPECT_EQ(header_of("dcstat", {"0.1", "1"}),
            (Strings{"TIME", "REFS/s", "SLOW/s", "MISS/s", "HIT%"}));
  Workload workload("lookups", {"--absent", "100", "--present", "300"}, kLinger);
  Tracer tracer("dcstat", {"-p", workload.id(), "3600"});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, " 75.00%")) << text;
}

const DeclareTests kDcstat{{
    .name = "dcstat",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "lookups --absent 5"},
    .stress = {.workload = "lookups --absent {n}",
               .events = 20000,
               .shown = "refs",
               .truth = "lookups",
               .slack = 20},
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
