// scsilatency against a process that writes to a disk of scsi_debug.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// Writes and flushes, each a command.
TOOL_TEST(Scsilatency, CommandsOfADisk) {
  Workload workload("blockio", {"--make", "scsi", "--op", "flush", "--count", "20"}, kLinger);
  Tracer tracer("scsilatency", {"--json", "--strict", "-D", "--status"}),
      failed("scsilatency", {"--json", "-e"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  std::uint64_t writes = 0, flushes = 0, ns = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["status"].str(), "success");
    EXPECT_TRUE(contains(line["device"].str(), ":0:0:0")) << line["device"].str();
    auto command = line["command"].str();
    if (command == "WRITE_10") writes += line["count"].u64();
    if (command.starts_with("SYNCHRONIZE_CACHE")) flushes += line["count"].u64();
    ns += line["total_ns"].u64();
  }
  EXPECT_EQ(writes, truth["count"].u64());
  EXPECT_EQ(flushes, truth["diskstats"]["flushes"].u64());
  EXPECT_LE(ns, truth["took_ns"].u64());
  EXPECT_TRUE(failed.stop().body.empty());
}

TOOL_TEST(Scsilatency, OneDeviceInText) {
  Workload workload("blockio", {"--make", "scsi", "--count", "10"}, kLinger);
  Tracer none("scsilatency", {"--json", "-d", "99:0:0:0"}), text("scsilatency", {}),
      own("scsilatency", {"--json", "-p", workload.id()}),
      other("scsilatency", {"--json", "-p", "1"});
  workload.release();
  workload.truth();
  auto of_process = own.stop();
  ASSERT_EQ(of_process.body.size(), 1u);
  EXPECT_EQ(of_process.body[0]["count"].u64(), 10u);
  EXPECT_TRUE(other.stop().body.empty());
  auto nothing = none.stop();
  EXPECT_TRUE(nothing.body.empty());
  EXPECT_GE(nothing.lost("filtered"), 10u);
  auto shown = text.stop_text();
  EXPECT_TRUE(contains(shown, "\ncommand = WRITE_10\n")) << shown;
}

const DeclareTests kScsilatency{{
    .name = "scsilatency",
    .reports = {{ReportKind::aggregate}},
    .events = {"-D", "blockio --make scsi --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make scsi --span 4m --count {n}",
               .events = 500,
               .shown = "count",
               .truth = "count",
               .tiny = "--max-keys 1",
               .workloads = 1},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
