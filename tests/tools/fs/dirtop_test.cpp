// dirtop against a process that makes a known number of reads and writes in a directory of its own.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Of the copies one half reads and the other writes, in the same directory.
void expect_all_of(const Json& truth, const Json& line) {
  EXPECT_EQ(line["reads"].u64(), truth["reads"].u64());
  EXPECT_EQ(line["writes"].u64(), truth["writes"].u64() + truth["copies"].u64());
  EXPECT_EQ(line["read_bytes"].u64(), truth["read_bytes"].u64());
  EXPECT_EQ(line["write_bytes"].u64(), truth["write_bytes"].u64() + truth["copy_bytes"].u64());
}

TOOL_TEST(Dirtop, FilesCountForTheirDirectory) {
  require_tool("dirtop");
  Workload workload("fileio", {"--count", "50", "--size", "3000"}, kLinger);
  auto dir = workload.ready()["dir"].str();
  auto above = dir.substr(0, dir.rfind('/'));
  auto first = dir.substr(0, dir.find('/', 1));
  Tracer own("dirtop", {"--json", "--strict", "-p", workload.id()});
  Tracer depth("dirtop", {"--json", "--strict", "-p", workload.id(), "--depth", "1"});
  Tracer roots("dirtop", {"--json", "-p", workload.id(), "-d", "/proc," + above});
  Tracer pattern("dirtop",
                 {"--json", "-p", workload.id(), "-d", "/,/proc", "-d", above + "/fileio-*"});
  Tracer none("dirtop", {"--json", "-p", workload.id(), "-d", "/proc"});
  workload.release();
  auto truth = workload.truth();
  struct {
    Tracer* tracer;
    std::string directory;
  } all[] = {{&own, dir}, {&depth, first}, {&roots, above}, {&pattern, dir}};
  for (auto& [tracer, directory] : all) {
    auto report = tracer->stop();
    ASSERT_EQ(report.body.size(), 1u) << directory;
    EXPECT_EQ(report.body[0]["directory"].str(), directory);
    expect_all_of(truth, report.body[0]);
  }
  auto nothing = none.stop();
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_GE(nothing.ledger["filtered"].u64(), truth["calls"].u64());
}

TOOL_TEST(Dirtop, DirectoriesBelowAnotherAreOneRow) {
  require_tool("dirtop");
  Workload one("fileio", {"--count", "20"}, kLinger), other("fileio", {"--count", "30"}, kLinger);
  auto dir = one.ready()["dir"].str();
  auto above = dir.substr(0, dir.rfind('/'));
  Tracer tracer("dirtop", {"--json", "--strict", "--comm", "fileio", "-d", above});
  one.release();
  other.release();
  auto calls = one.truth()["calls"].u64() + other.truth()["calls"].u64();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.sum("reads") + report.sum("writes"), calls);
  EXPECT_EQ(report.ledger["shown"].u64(), calls);
}

TOOL_TEST(Dirtop, BlocksHaveTheKnownColumns) {
  require_tool("dirtop");
  Workload workload("fileio", {"--count", "5"}, kLinger);
  auto dir = workload.ready()["dir"].str();
  Tracer tracer("dirtop", {"-p", workload.id(), "-s", "wbytes", "10"});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find(" READS WRITES    R_Kb    W_Kb PATH\n"), std::string::npos) << text;
  EXPECT_NE(text.find(" " + dir + "\n"), std::string::npos) << text;
  for (auto& bad : std::vector<Strings>{
           {"-d", "/nowhere"}, {"-d", "/,"}, {"-d", "/dev/null"}, {"-d", "/", "--depth", "1"}}) {
    auto argv = bad;
    argv.insert(argv.begin(), tool_path("dirtop"));
    EXPECT_EQ(run(argv).status, 2) << bad[1];
  }
}

const DeclareTests kDirtop{{
    .name = "dirtop",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "fileio --count 5"},
    .stress = {.workload = "fileio --count {n}",
               .events = 20000,
               .shown = "reads+writes",
               .truth = "calls",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
