// fileslower against a process that makes a known number of reads and writes, one of them slowly.
#include "../harness.hpp"
#include "../machine.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Fileslower, EveryCallWithItsResult) {
  require_tool("fileslower");
  Workload workload("fileio", {"--count", "50", "--size", "3000"}, kLinger);
  Tracer tracer("fileslower", {"--json", "--strict", "0", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  std::uint64_t reads = 0, writes = 0, read_bytes = 0, failed = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["file"].str(), truth["data"].str());
    EXPECT_EQ(line["comm"].str(), "fileio");
    bool read = line["operation"].str() == "R";
    if (line["error"].str() == "EBADF") {
      failed++;
      EXPECT_EQ(line["bytes"].u64(), 0u);
      continue;
    }
    (read ? reads : writes)++;
    if (read) read_bytes += line["bytes"].u64();
  }
  EXPECT_EQ(reads, truth["reads"].u64());
  EXPECT_EQ(writes, truth["writes"].u64());
  EXPECT_EQ(read_bytes, truth["read_bytes"].u64());
  EXPECT_EQ(failed, truth["failed"].u64());
}

TOOL_TEST(Fileslower, OnlyWhatIsSlow) {
  require_tool("fileslower");
  Workload workload("fileio", {"--count", "200", "--delay", "300"}, kLinger);
  Tracer tracer("fileslower", {"--json", "--strict", "250", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& slow = report.body[0];
  EXPECT_EQ(slow["file"].str(), truth["data"].str());
  EXPECT_EQ(slow["operation"].str(), "R");
  EXPECT_GE(slow["latency_ns"].u64(), 290'000'000u);
  EXPECT_LT(slow["latency_ns"].u64(), 2'000'000'000u);
  EXPECT_GE(report.ledger["filtered"].u64(), truth["results"].u64() - 1);
}

// A path of more components than a walk takes: the event says so, and the ledger.
TOOL_TEST(Fileslower, PathsThatAreTooDeep) {
  for (std::string tool : {"fileslower", "fsslower"}) {
    require_tool(tool);
    TemporaryDirectory directory;
    auto deep = "cd " + directory.path() +
                "; i=0; while [ $i -lt 120 ]; do mkdir d; cd d; i=$((i + 1)); done; echo > leaf";
    auto result = run({tool_path(tool), "--json", "0", "--", "/bin/sh", "-c", deep});
    auto report = parse_report(result.out, result.err);
    std::uint64_t cut = 0;
    for (auto& line : report.body) {
      auto file = line["file"].str();
      if (!file.ends_with("/d/leaf") || line["comm"].str() != "sh") continue;
      EXPECT_FALSE(file.starts_with("/")) << tool << ": " << file;
      cut++;
    }
    EXPECT_GE(cut, 1u) << tool;
    EXPECT_GE(report.ledger["truncated"].u64(), cut) << tool;
  }
}

TOOL_TEST(Fileslower, TextHasTheKnownColumns) {
  require_tool("fileslower");
  Workload workload("fileio", {"--count", "1"}, kLinger);
  Tracer tracer("fileslower", {"0", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_NE(text.find("TIME(s)     COMM             TID     D   BYTES   LAT(ms) FILENAME\n"),
            std::string::npos)
      << text;
  for (auto* bad : {"-1", "x", ""}) {
    auto result = run({tool_path("fileslower"), "--", bad});
    EXPECT_NE(result.status, 0) << bad;
  }
}

const DeclareTests kFileslower{{
    .name = "fileslower",
    .events = {"0", "fileio --count 5"},
    .stress = {.workload = "fileio --count {n}",
               .events = 10000,
               .options = "0",
               .truth = "returned",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "1"}},
}};

}  // namespace
}  // namespace coretap::tooltest
