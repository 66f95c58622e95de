// nvmelatency against a process that writes to an NVMe disk that no other process uses.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// Kernels may hand commands over from threads of their own.
const Strings kWrites = {"--make", "nvme", "--count", "30"};

TOOL_TEST(Nvmelatency, CommandsOfADisk) {
  if (!in_guest()) throw Skip("an NVMe disk to write to is in guests only");
  Workload workload("blockio", kWrites, kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer tracer("nvmelatency", {"--json", "--strict", "-d", disk, "--status"}),
      own("nvmelatency", {"--json", "-p", workload.id()}),
      other("nvmelatency", {"--json", "-p", "1"}), text("nvmelatency", {});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  EXPECT_EQ(line["disk"].str(), disk);
  EXPECT_EQ(line["command"].str(), "nvme_cmd_write");
  EXPECT_EQ(line["status"].str(), "success");
  EXPECT_EQ(line["count"].u64(), truth["count"].u64());
  EXPECT_EQ(line["count"].u64(), truth["diskstats"]["writes"].u64());
  EXPECT_LE(line["total_ns"].u64(), truth["took_ns"].u64());
  auto of_process = own.stop();
  ASSERT_EQ(of_process.body.size(), 1u);
  EXPECT_EQ(of_process.body[0]["count"].u64(), truth["count"].u64());
  EXPECT_TRUE(other.stop().body.empty());
  auto shown = text.stop_text();
  EXPECT_TRUE(contains(shown, "\ndisk = " + disk + ", command = nvme_cmd_write\n")) << shown;
}

const DeclareTests kNvmelatency{{
    .name = "nvmelatency",
    .reports = {{ReportKind::aggregate}},
    .events = {"--status", "blockio --make nvme --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make nvme --span 4m --count {n}",
               .events = 500,
               .shown = "count",
               .truth = "count",
               .tiny = "--max-keys 1",
               .workloads = 1},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
