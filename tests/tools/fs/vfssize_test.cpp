// vfssize against a process that reads and writes pieces of a known size.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Vfssize, EachFileAndOperation) {
  require_tool("vfssize");
  Workload workload("fileio", {"--count", "50", "--size", "3000"}, kLinger);
  Tracer tracer("vfssize", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 3u);
  for (auto& line : report.body) {
    bool write = line["operation"].str() == "W", copy = line["file"].str() == truth["copy"].str();
    EXPECT_EQ(line["comm"].str(), "fileio");
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_TRUE(copy || line["file"].str() == truth["data"].str()) << line["file"].str();
    EXPECT_EQ(line["count"].u64(), truth[copy ? "copies" : write ? "writes" : "reads"].u64());
    EXPECT_EQ(line["total_bytes"].u64(), truth[copy    ? "copy_bytes"
                                               : write ? "write_bytes"
                                                       : "read_bytes"]
                                             .u64());
    // Whole pieces, or nothing at the end of the file.
    auto slots = line["histogram"].items();
    ASSERT_EQ(slots.size(), write ? 1u : 2u);
    auto& pieces = slots.back();
    EXPECT_EQ(pieces["from_bytes"].u64(), 2048u);
    EXPECT_EQ(pieces["below_bytes"].u64(), 4096u);
    EXPECT_EQ(pieces["count"].u64(), line["total_bytes"].u64() / 3000);
    EXPECT_EQ(slots[0]["from_bytes"].u64(), write ? 2048u : 0u);
  }
}

TOOL_TEST(Vfssize, OnlyWhatIsAskedFor) {
  require_tool("vfssize");
  Workload workload("fileio", {"--count", "5"}, kLinger);
  Tracer writes("vfssize", {"--json", "-p", workload.id(), "--write-only"});
  Tracer all("vfssize", {"--json", "-p", workload.id(), "-a"});
  Tracer text("vfssize", {"-p", workload.id(), "--read-only"});
  workload.release();
  auto truth = workload.truth();
  auto only_writes = writes.stop(), more = all.stop();
  for (auto& line : only_writes.body) EXPECT_EQ(line["operation"].str(), "W");
  EXPECT_EQ(only_writes.body.size(), 2u);
  bool pipes = false;
  for (auto& line : more.body) pipes |= line["file"].str().starts_with("pipe:[");
  EXPECT_TRUE(pipes);
  auto title = "comm = fileio, pid = " + workload.id() +
               ", operation = R, file = " + truth["data"].str() + "\n";
  auto shown = text.stop_text();
  EXPECT_NE(shown.find(title), std::string::npos) << shown;
  EXPECT_NE(shown.find("bytes"), std::string::npos) << shown;
}

const DeclareTests kVfssize{{
    .name = "vfssize",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "fileio --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "fileio --count {n}",
               .events = 20000,
               .shown = "count",
               .truth = "calls",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
