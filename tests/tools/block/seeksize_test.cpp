// seeksize against a process that reads a device of its own in a known order.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Seeksize, SequentialReads) {
  require_tool("seeksize");
  Workload workload("blockio", {"--make", "loop", "--op", "read", "--count", "60"}, kLinger);
  Tracer tracer("seeksize", {"--json", "--strict", "-D", "-p", workload.id(), "-d",
                             workload.ready()["disk"].str()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  EXPECT_EQ(line["comm"].str(), "blockio");
  EXPECT_EQ(line["disk"].str(), truth["disk"].str());
  EXPECT_EQ(line["count"].u64(), truth["count"].u64() - 1) << "the first has none before it";
  EXPECT_EQ(line["total_sectors"].u64(), 0u);
  ASSERT_EQ(line["histogram"].items().size(), 1u);
  EXPECT_EQ(line["histogram"].items().at(0)["from_sectors"].u64(), 0u);
}

// Two blocks in turns: the distance is from the end of the one to the start of the other.
TOOL_TEST(Seeksize, ForwardsAndBackwards) {
  require_tool("seeksize");
  Workload workload(
      "blockio", {"--make", "loop", "--count", "41", "--size", "64k", "--span", "128k"}, kLinger);
  Tracer tracer("seeksize", {"--json", "--strict", "--signed", "-p", workload.id(), "-d",
                             workload.ready()["disk"].str()});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 2u);
  for (auto& line : report.body) {
    bool back = line["direction"].str() == "backwards";
    EXPECT_EQ(line["count"].u64(), 20u) << line["direction"].str();
    EXPECT_EQ(line["total_sectors"].u64(), back ? 20u * 256 : 0u);
  }
}

TOOL_TEST(Seeksize, TextHasTheKnownTitles) {
  require_tool("seeksize");
  Workload workload("blockio", {"--make", "loop", "--count", "10"}, kLinger);
  Tracer tracer("seeksize", {"-p", workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "Process Name = blockio\n")) << text;
  EXPECT_TRUE(contains(text, " sectors ")) << text;
}

const DeclareTests kSeeksize{{
    .name = "seeksize",
    .reports = {{ReportKind::aggregate}},
    .events = {"-D", "blockio --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .options = "-D",
               .shown = "count",
               // The first of a disk has no distance.
               .truth = [](stress::Load& load) { return load.truth("count") - 1; },
               .tiny = "--max-keys 1",
               .slack = 1},
    .long_run = {{.arguments = "-D 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
