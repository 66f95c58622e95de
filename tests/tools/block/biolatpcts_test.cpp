// biolatpcts against the kernel's own trace of a disk.
#include "disks.hpp"

namespace coretap::tooltest {
TOOL_TEST(Biolatpcts, PercentilesOfWhatTheKernelTraces) {
  Scene scene("blockio --make loop --count 300 --span 1m");
  auto disk = scene.ready()["disk"].str();
  auto& tool = scene.trace("biolatpcts --json --strict --pcts 10,50,90,100 -i 600 {disk}");
  Trace trace("block/block_rq_issue block/block_rq_complete");
  scene.workload().release();
  scene.workload().truth();
  trace.stop();
  auto row = only(tool.stop().body);
  auto times = traced(trace, disk, "block_rq_issue", "W");
  std::ranges::sort(times);
  expect_fields(row, {{"disk", disk}, {"operation", "Write"}, {"count", times.size()}});
  expect_same(row, row, {{"overall_count", "count"}});
  auto values = row["percentiles"].items();
  ASSERT_EQ(values.size(), 4u);
  for (auto& value : values) {
    auto rank =
        std::max(1.0, std::ceil(static_cast<double>(times.size()) * value["percent"].real() / 100));
    auto truth = static_cast<double>(times.at(static_cast<std::size_t>(rank) - 1));
    // The trace has a resolution of microseconds, and the tool's programs run next to it.
    EXPECT_NEAR(static_cast<double>(value["value_ns"].u64()), truth, truth / 4 + 10'000);
  }
  expect_same(row["overall_percentiles"].items().at(1), values.at(1), {"value_ns"});
}

// The time since the allocation is never shorter; each operation has a row.
TOOL_TEST(Biolatpcts, SinceTheAllocation) {
  auto seen = on_loop({"biolatpcts --json --pcts 50 {disk} 600",
                       "biolatpcts --json --pcts 50 -w after-rq-alloc -i 600 {disk}",
                       "biolatpcts --overall -i 600 {disk}"},
                      "--op flush --count 20");
  auto on_device = seen.body(0), since_allocated = seen.body(1);
  ASSERT_EQ(on_device.size(), since_allocated.size());
  auto median = [](const Json& row) {
    return static_cast<double>(row["percentiles"].items().at(0)["value_ns"].u64());
  };
  for (std::size_t i = 0; i < on_device.size(); i++) {
    auto &less = on_device[i], &more = since_allocated[i];
    expect_same(less, more, {"operation", "count"});
    bool write = less["operation"].str() == "Write";
    expect_same(less, seen.truth, {{"count", write ? "count" : "fsyncs"}});
    EXPECT_LE(median(less), 1.02 * median(more));
  }
  expect_contains(seen.text(2), {"OPERATION     p1     p5    p10    p16 ",
                                 "   p100    COUNT DISK\n", seen.filled("       20 {disk}\n")});
}

TESTS_OF(biolatpcts, .events = {"--overall", "blockio --count 5"}, .nothing_when_idle = true,
         .stress = writes_to_loop("count"), .long_run = {{.arguments = "-i 10"}});

}  // namespace coretap::tooltest
