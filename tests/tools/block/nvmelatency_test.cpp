// nvmelatency against a process that writes to an NVMe disk that no other process uses.
#include "disks.hpp"

namespace coretap::tooltest {
// Kernels may submit commands from kernel threads.
TOOL_TEST(Nvmelatency, CommandsOfADisk) {
  if (!in_guest()) throw Skip("an NVMe disk to write to is in guests only");
  Scene scene("blockio --make nvme --count 30");
  scene.trace("nvmelatency --json --strict -d {disk} --status");
  scene.trace("nvmelatency --json -p {pid}");
  scene.trace("nvmelatency --json -p 1");
  scene.trace("nvmelatency");
  auto seen = scene.finish();
  auto row = only(seen.report(0).body);
  expect_fields(row, "command nvme_cmd_write status success");
  expect_same(row, seen.truth, {"count"});
  expect_same(row, seen.truth["diskstats"], {{"count", "writes"}});
  expect_same(row, seen.ready, {"disk"});
  EXPECT_LE(row["total_ns"].u64(), seen.truth["took_ns"].u64());
  expect_same(only(seen.report(1).body), seen.truth, {"count"});
  EXPECT_TRUE(seen.report(2).body.empty());
  expect_contains(seen.text(3),
                  {"\ndisk = " + seen.ready["disk"].str() + ", command = nvme_cmd_write\n"});
}

TESTS_OF(nvmelatency, .events = {"--status", "blockio --make nvme --count 5"},
         .nothing_when_idle = true,
         .stress = count_row("blockio --make nvme --span 4m --count {n}", 500, "count", "count")
                       .of_one_workload());

}  // namespace coretap::tooltest
