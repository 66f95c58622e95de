// iosched against the kernel's own trace of a disk with a scheduler.
#include <numeric>

#include "disks.hpp"

namespace coretap::tooltest {
namespace {

Strings writes(const std::string& count) {
  // Loop devices have no schedulers before 5.15; this machine may have no scsi_debug.
  auto* disk = slurp("/proc/sys/kernel/osrelease").starts_with("5.10.") ? "scsi" : "loop";
  return std::string("blockio --make ") + disk + " --scheduler mq-deadline --span 4m --count " +
         count;
}

TOOL_TEST(Iosched, WhatTheKernelTraces) {
  Scene scene(writes("60"));
  auto disk = scene.ready()["disk"].str();
  auto& tool = scene.trace("iosched --json --strict -D -d {disk}");
  auto& text = scene.trace("iosched -T -d {disk}");
  Trace trace("block/block_rq_insert block/block_rq_issue");
  scene.workload().release();
  auto count = scene.workload().truth()["count"].u64();
  trace.stop();
  auto row = only(tool.stop().body);
  auto waits = traced(trace, disk, "block_rq_insert");
  EXPECT_GE(waits.size(), count);
  expect_fields(row, {{"scheduler", "mq-deadline"}, {"disk", disk}, {"count", waits.size()}});
  // The trace has a resolution of microseconds; the tool's programs run slightly before it at the
  // start of a wait and after it at the end, which takes long in an emulated guest.
  auto total = static_cast<double>(row["total_ns"].u64());
  auto seen = std::accumulate(waits.begin(), waits.end(), 0.0);
  auto waited = static_cast<double>(waits.size());
  EXPECT_GE(total, seen * 0.75 - waited * 4e3);
  EXPECT_LE(total, seen * 1.25 + waited * 1e5);
  expect_contains(text.stop_text(), {"\nscheduler = mq-deadline\n", " usecs "});
}

TESTS_OF(iosched, .events = {{"-D"}, writes("5")}, .nothing_when_idle = true,
         .stress = count_row(writes("{n}"), 1500, "count", "count", "-D").of_one_workload(),
         .long_run = {{.arguments = "-D 10"}});

}  // namespace
}  // namespace coretap::tooltest
