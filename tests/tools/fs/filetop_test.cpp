// filetop against a process that makes a known number of reads and writes.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t sum_of(const Report& report, const std::string& file, const char* key) {
  std::uint64_t sum = 0;
  for (auto& line : report.body)
    if (line["file"].str() == file) sum += line[key].u64();
  return sum;
}

TOOL_TEST(Filetop, CountsCallsAndBytesOfEveryWay) {
  require_tool("filetop");
  Workload workload("fileio", {"--count", "50", "--size", "3000"}, kLinger);
  Tracer tracer("filetop", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto data = truth["data"].str(), copy = truth["copy"].str();
  for (auto* key : {"reads", "writes", "read_bytes", "write_bytes"})
    EXPECT_EQ(sum_of(report, data, key), truth[key].u64()) << key;
  EXPECT_EQ(sum_of(report, copy, "writes"), truth["copies"].u64());
  EXPECT_EQ(sum_of(report, copy, "write_bytes"), truth["copy_bytes"].u64());
  EXPECT_EQ(sum_of(report, copy, "reads"), 0u);
  for (auto& line : report.body) {
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(line["comm"].str(), "fileio");
    EXPECT_EQ(line["file_type"].str(), "R");
  }
}

// All files of a process are one row, with the same sums; other keys are not shown.
TOOL_TEST(Filetop, AddedUpByKeys) {
  require_tool("filetop");
  Workload workload("fileio", {"--count", "50", "--size", "3000"}, kLinger);
  Tracer each("filetop", {"--json", "--strict", "-p", workload.id()});
  Tracer together("filetop", {"--json", "--strict", "-p", workload.id(), "--by", "comm,file_type"});
  workload.release();
  workload.truth();
  auto rows = each.stop(), sums = together.stop();
  ASSERT_EQ(sums.body.size(), 1u);
  auto& row = sums.body[0];
  EXPECT_EQ(row["comm"].str(), "fileio");
  EXPECT_EQ(row["file_type"].str(), "R");
  EXPECT_FALSE(row.has("pid"));
  EXPECT_FALSE(row.has("file"));
  EXPECT_GT(rows.body.size(), 1u);
  for (auto* key : {"reads", "writes", "read_bytes", "write_bytes"})
    EXPECT_EQ(row[key].u64(), rows.sum(key)) << key;
}

TOOL_TEST(Filetop, OnlyWhatIsAskedFor) {
  require_tool("filetop");
  Workload workload("fileio", {"--count", "5"}, kLinger);
  auto dir = workload.ready()["dir"].str();
  Tracer reads("filetop", {"--json", "-p", workload.id(), "--read-only"});
  Tracer elsewhere("filetop", {"--json", "-p", workload.id(), "-d", "/proc"});
  Tracer below("filetop", {"--json", "-p", workload.id(), "-d", dir});
  Tracer all("filetop", {"--json", "-p", workload.id(), "-a"});
  workload.release();
  auto truth = workload.truth();
  auto only_reads = reads.stop(), none = elsewhere.stop(), some = below.stop(), more = all.stop();
  EXPECT_EQ(only_reads.sum("writes"), 0u);
  EXPECT_EQ(only_reads.sum("reads"), truth["reads"].u64());
  EXPECT_TRUE(none.body.empty());
  EXPECT_GE(none.ledger["filtered"].u64(), truth["calls"].u64());
  EXPECT_EQ(some.sum("reads") + some.sum("writes"), truth["calls"].u64());
  // The workload's own pipe.
  bool pipes = false;
  for (auto& line : more.body) pipes |= line["file"].str().starts_with("pipe:[");
  EXPECT_TRUE(pipes);
  EXPECT_GT(more.body.size(), some.body.size());
}

TOOL_TEST(Filetop, BlocksHaveTheKnownColumns) {
  require_tool("filetop");
  Workload workload("fileio", {"--count", "5"}, kLinger);
  Tracer tracer("filetop", {"-p", workload.id(), "-s", "wbytes", "10"});
  workload.release();
  auto truth = workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find(" loadavg: "), std::string::npos) << text;
  EXPECT_NE(text.find("TID     COMM              READS WRITES    R_Kb    W_Kb T FILE\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("R " + truth["data"].str() + "\n"), std::string::npos) << text;
  auto bad = run({tool_path("filetop"), "-s", "nothing"});
  EXPECT_EQ(bad.status, 2);
  bad = run({tool_path("filetop"), "-d", "/nowhere"});
  EXPECT_EQ(bad.status, 2);
  EXPECT_NE(bad.err.find("is not a directory"), std::string::npos) << bad.err;
}

const DeclareTests kFiletop{{
    .name = "filetop",
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
