// biolatpcts against the kernel's own trace of a disk.
#include <algorithm>
#include <cmath>
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Times from issue to completion of the disk's writes, by the kernel's trace, ascending.
std::vector<std::uint64_t> traced(const Trace& trace, const std::string& disk) {
  auto dev = slurp("/sys/block/" + disk + "/dev");
  std::replace(dev.begin(), dev.end(), ':', ',');
  dev.back() = ' ';  // was a newline
  std::map<std::string, std::uint64_t> issued;
  std::vector<std::uint64_t> times;
  for (auto& event : trace.events()) {
    if (!event.words.starts_with(dev) || event.words[dev.size()] != 'W') continue;
    auto place = event.words.substr(event.words.find(") ") + 2);
    place = place.substr(0, place.find(" ["));
    if (event.name == "block_rq_issue") {
      issued[place] = event.ns;
    } else if (auto found = issued.find(place); found != issued.end()) {
      times.push_back(event.ns - found->second);
      issued.erase(found);
    }
  }
  std::sort(times.begin(), times.end());
  return times;
}

TOOL_TEST(Biolatpcts, PercentilesOfWhatTheKernelTraces) {
  require_tool("biolatpcts");
  Workload workload("blockio", {"--make", "loop", "--count", "300", "--span", "1m"}, kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer tracer("biolatpcts", {"--json", "--strict", "--pcts", "10,50,90,100", "-i", "600", disk});
  Trace trace(Strings{"block/block_rq_issue", "block/block_rq_complete"});
  workload.release();
  workload.truth();
  trace.stop();
  auto report = tracer.stop();
  auto times = traced(trace, disk);
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  EXPECT_EQ(line["disk"].str(), disk);
  EXPECT_EQ(line["operation"].str(), "Write");
  EXPECT_EQ(line["count"].u64(), times.size());
  EXPECT_EQ(line["overall_count"].u64(), times.size());
  auto values = line["percentiles"].items();
  ASSERT_EQ(values.size(), 4u);
  for (auto& value : values) {
    auto rank =
        std::max(1.0, std::ceil(static_cast<double>(times.size()) * value["percent"].real() / 100));
    auto truth = static_cast<double>(times.at(static_cast<std::size_t>(rank) - 1));
    // The trace has microseconds, and the programs run beside it.
    EXPECT_NEAR(static_cast<double>(value["value_ns"].u64()), truth, truth / 4 + 10'000);
  }
  EXPECT_EQ(line["overall_percentiles"].items().at(1)["value_ns"].u64(),
            values.at(1)["value_ns"].u64());
}

// Since the allocation it is never shorter; each operation has a row.
TOOL_TEST(Biolatpcts, SinceTheAllocation) {
  require_tool("biolatpcts");
  Workload workload("blockio", {"--make", "loop", "--op", "flush", "--count", "20"}, kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer device("biolatpcts", {"--json", "--pcts", "50", disk, "600"}),
      all("biolatpcts", {"--json", "--pcts", "50", "-w", "after-rq-alloc", "-i", "600", disk});
  workload.release();
  auto truth = workload.truth();
  auto on_device = device.stop(), since_allocated = all.stop();
  ASSERT_EQ(on_device.body.size(), since_allocated.body.size());
  for (std::size_t i = 0; i < on_device.body.size(); i++) {
    auto &less = on_device.body[i], &more = since_allocated.body[i];
    EXPECT_EQ(less["operation"].str(), more["operation"].str());
    EXPECT_EQ(less["count"].u64(), more["count"].u64());
    EXPECT_EQ(less["count"].u64(),
              truth[less["operation"].str() == "Write" ? "count" : "fsyncs"].u64());
    EXPECT_LE(static_cast<double>(less["percentiles"].items().at(0)["value_ns"].u64()),
              1.02 * static_cast<double>(more["percentiles"].items().at(0)["value_ns"].u64()));
  }
}

TOOL_TEST(Biolatpcts, Text) {
  require_tool("biolatpcts");
  Workload workload("blockio", {"--make", "loop", "--count", "10"}, kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer tracer("biolatpcts", {"--overall", "-i", "600", disk});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "DISK    OPERATION    COUNT     p1     p5    p10    p16 ")) << text;
  EXPECT_TRUE(contains(text, "\n" + disk + "   Write           10 ")) << text;
}

const DeclareTests kBiolatpcts{{
    .name = "biolatpcts",
    .reports = {{ReportKind::aggregate}},
    .events = {"--overall", "blockio --count 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "blockio --make loop --count {n} --span 4m",
               .events = 1500,
               .shown = "count",
               .truth = "count",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "-i 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
