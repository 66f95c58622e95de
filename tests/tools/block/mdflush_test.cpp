// mdflush against a process that flushes a private array a known number of times.
#include "disks.hpp"

namespace coretap::tooltest {
TOOL_TEST(Mdflush, EachFlushOfAnArray) {
  auto seen = observe_all({"mdflush --json --strict -p {pid}",
                           "mdflush --json --strict -l -p {pid} -d {disk}", "mdflush -l -p {pid}"},
                          "blockio --make md --op flush --count 20");
  auto ended = seen.report(1);
  EXPECT_EQ(seen.report(0).body.size(), seen.truth["fsyncs"].u64());
  EXPECT_EQ(ended.body.size(), seen.truth["fsyncs"].u64());
  EXPECT_LE(ended.sum("latency_ns"), seen.truth["took_ns"].u64());
  for (auto& event : ended.body) {
    expect_same(event, seen.ready, {"disk"});
    EXPECT_EQ(event["comm"].str(), "blockio");
    EXPECT_GT(event["latency_ns"].u64(), 0u);
  }
  expect_contains(seen.text(2), {"PID     COMM             DEVICE             LAT(ms)\n",
                                 " blockio          " + seen.ready["disk"].str()});
}

TESTS_OF(mdflush, .events = {"-l", "blockio --make md --op flush --count 5"},
         .stress = event_row("blockio --make md --op flush --span 4m --count {n}", 300, "fsyncs")
                       .of_one_workload());

}  // namespace coretap::tooltest
