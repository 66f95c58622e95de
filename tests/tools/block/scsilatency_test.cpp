// scsilatency against a process that writes to a disk of scsi_debug.
#include "disks.hpp"

namespace coretap::tooltest {
// Each write and each flush is a command.
TOOL_TEST(Scsilatency, CommandsOfADisk) {
  Scene scene("blockio --make scsi --op flush --count 20");
  scene.trace("scsilatency --json --strict -D --status");
  scene.trace("scsilatency --json -e");
  auto seen = scene.finish();
  auto report = seen.report();
  std::uint64_t flushes = 0;
  for (auto& line : report.body) {
    EXPECT_EQ(line["status"].str(), "success");
    EXPECT_TRUE(contains(line["device"].str(), ":0:0:0")) << line["device"].str();
    if (line["command"].str().starts_with("SYNCHRONIZE_CACHE")) flushes += line["count"].u64();
  }
  expect_sums(lines_with(report.body, {{"command", "WRITE_10"}}), seen.truth, {"count"});
  EXPECT_EQ(flushes, seen.truth["diskstats"]["flushes"].u64());
  EXPECT_LE(report.sum("total_ns"), seen.truth["took_ns"].u64());
  EXPECT_TRUE(seen.report(1).body.empty());
}

TOOL_TEST(Scsilatency, OneDeviceInText) {
  Scene scene("blockio --make scsi --count 10");
  for (auto* options : {"--json -d 99:0:0:0", "--json -p {pid}", "--json -p 1", ""})
    scene.trace("scsilatency" + Strings(options));
  auto seen = scene.finish();
  EXPECT_TRUE(seen.report(0).body.empty());
  EXPECT_GE(seen.report(0).lost("filtered"), 10u);
  expect_fields(only(seen.report(1).body), "count 10");
  EXPECT_TRUE(seen.report(2).body.empty());
  expect_contains(seen.text(3), {"\ncommand = WRITE_10\n"});
}

TESTS_OF(scsilatency, .events = {"-D", "blockio --make scsi --count 5"}, .nothing_when_idle = true,
         .stress = count_row("blockio --make scsi --span 4m --count {n}", 500, "count", "count")
                       .of_one_workload());

}  // namespace coretap::tooltest
