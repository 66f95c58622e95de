// mdflush against a process that flushes an array of its own a known number of times.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

Strings flushes(const char* count) { return {"--make", "md", "--op", "flush", "--count", count}; }

TOOL_TEST(Mdflush, EachFlushOfAnArray) {
  require_tool("mdflush");
  Workload workload("blockio", flushes("20"), kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer arrivals("mdflush", {"--json", "--strict", "-p", workload.id()}),
      ends("mdflush", {"--json", "--strict", "-l", "-p", workload.id(), "-d", disk}),
      text("mdflush", {"-l", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto arrived = arrivals.stop(), ended = ends.stop();
  EXPECT_EQ(arrived.body.size(), truth["fsyncs"].u64());
  EXPECT_EQ(ended.body.size(), truth["fsyncs"].u64());
  EXPECT_LE(ended.sum("latency_ns"), truth["took_ns"].u64());
  for (auto& event : ended.body) {
    EXPECT_EQ(event["disk"].str(), disk);
    EXPECT_EQ(event["comm"].str(), "blockio");
    EXPECT_GT(event["latency_ns"].u64(), 0u);
  }
  auto lines = text.stop_text();
  EXPECT_TRUE(contains(lines, "PID     COMM             DEVICE             LAT(ms)\n")) << lines;
  EXPECT_TRUE(contains(lines, " blockio          " + disk)) << lines;
}

const DeclareTests kMdflush{{
    .name = "mdflush",
    .events = {"-l", "blockio --make md --op flush --count 5"},
    .stress = {.workload = "blockio --make md --op flush --span 4m --count {n}",
               .events = 300,
               .truth = "fsyncs",
               .tiny = "--ring-size 4096",
               .workloads = 1},
}};

}  // namespace
}  // namespace coretap::tooltest
