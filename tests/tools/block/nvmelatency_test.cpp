// nvmelatency against a process that writes to an NVMe disk that no other process uses.
#include "disks.hpp"

namespace coretap::tooltest {
namespace {

// Kernels may hand commands over from threads of their own.
TOOL_TEST(Nvmelatency, CommandsOfADisk) {
  if (!in_guest()) throw Skip("an NVMe disk to write to is in guests only");
  Scene scene("blockio --make nvme --count 30");
  scene.trace("nvmelatency --json --strict -d {disk} --status");
  scene.trace("nvmelatency --json -p {pid}");
  scene.trace("nvmelatency --json -p 1");
  scene.trace("nvmelatency");
  auto seen = scene.finish();
  auto rows = seen.report(0).body, of_process = seen.report(1).body;
  ASSERT_EQ(rows.size(), 1u);
  expect_fields(rows[0], {{"command", "nvme_cmd_write"}, {"status", "success"}});
  expect_same(rows[0], seen.truth, {"count"});
  expect_same(rows[0], seen.truth["diskstats"], {{"count", "writes"}});
  expect_same(rows[0], seen.ready, {"disk"});
  EXPECT_LE(rows[0]["total_ns"].u64(), seen.truth["took_ns"].u64());
  ASSERT_EQ(of_process.size(), 1u);
  expect_same(of_process[0], seen.truth, {"count"});
  EXPECT_TRUE(seen.report(2).body.empty());
  expect_contains(seen.text(3),
                  {"\ndisk = " + seen.ready["disk"].str() + ", command = nvme_cmd_write\n"});
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
