// icstat against a program that opens files by their handles: each is one look-up of an inode.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Icstat, LookUpsAndMisses) {
  require_tool("icstat");
  Workload workload("filecalls", {"--handles", "200"}, kLinger);
  Tracer tracer("icstat", {"--json", "--strict", "-p", workload.id()});
  Tracer nobody("icstat", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto handles = workload.truth()["handles"].u64();
  auto report = tracer.stop(), none = nobody.stop();
  workload.end_lingering();
  // Half of them are of a file that is no more.
  EXPECT_EQ(report.sum("lookups"), 2 * handles);
  EXPECT_EQ(report.sum("misses"), handles);
  EXPECT_EQ(none.sum("lookups"), 0u);
  EXPECT_GE(none.lost("filtered"), 2 * handles);
}

TOOL_TEST(Icstat, Columns) {
  require_tool("icstat");
  auto text = run({tool_path("icstat"), "-T", "0.2", "1"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_EQ(words(lines(text.out)[0]), (Strings{"TIME", "REFS", "MISSES", "HIT%"}));
}

const DeclareTests kIcstat{{
    .name = "icstat",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "filecalls --handles 20"},
    .stress = {.workload = "filecalls --handles {n}",
               .events = 5000,
               .shown = "lookups",
               .truth = [](stress::Load& load) { return 2 * load.truth("handles"); }},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
