// iosched against the kernel's own trace of a disk with a scheduler.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

Strings writes(const std::string& count) {
  // Loop devices have no schedulers before 5.15; this machine may have no scsi_debug.
  auto* disk = slurp("/proc/sys/kernel/osrelease").starts_with("5.10.") ? "scsi" : "loop";
  return std::string("blockio --make ") + disk + " --scheduler mq-deadline --span 4m --count " +
         count;
}

/// Of the disk's requests, by their first sectors.
struct Waits {
  std::uint64_t count = 0, ns = 0;
};
Waits traced(const Trace& trace, const std::string& disk) {
  auto dev = slurp("/sys/block/" + disk + "/dev");
  auto colon = dev.find(':');
  auto number =
      dev.substr(0, colon) + "," + dev.substr(colon + 1, dev.find('\n') - colon - 1) + " ";
  std::map<std::string, std::uint64_t> inserted;
  Waits waits;
  for (auto& event : trace.events()) {
    if (!event.words.starts_with(number)) continue;
    // "7,0 WS 4096 () 8 + 8 [blockio]"
    auto place = event.words.substr(event.words.find(") ") + 2);
    place = place.substr(0, place.find(" ["));
    if (event.name == "block_rq_insert") {
      inserted[place] = event.ns;
    } else if (auto found = inserted.find(place); found != inserted.end()) {
      waits.count++;
      waits.ns += event.ns - found->second;
      inserted.erase(found);
    }
  }
  return waits;
}

TOOL_TEST(Iosched, WhatTheKernelTraces) {
  require_tool("iosched");
  auto workload = Workload::of(writes("60"), kLinger);
  auto disk = workload.ready()["disk"].str();
  Tracer tracer("iosched", {"--json", "--strict", "-D", "-d", disk});
  Trace trace(Strings{"block/block_rq_insert", "block/block_rq_issue"});
  workload.release();
  auto truth = workload.truth();
  trace.stop();
  auto report = tracer.stop();
  auto waits = traced(trace, disk);
  EXPECT_GE(waits.count, truth["count"].u64());
  ASSERT_EQ(report.body.size(), 1u);
  auto& line = report.body[0];
  EXPECT_EQ(line["scheduler"].str(), "mq-deadline");
  EXPECT_EQ(line["disk"].str(), disk);
  EXPECT_EQ(line["count"].u64(), waits.count);
  // The trace has microseconds; the programs run a little before it where a wait starts, and behind
  // it where it ends, which takes long in an emulated guest.
  auto total = static_cast<double>(line["total_ns"].u64()), seen = static_cast<double>(waits.ns);
  auto waited = static_cast<double>(waits.count);
  EXPECT_GE(total, seen * 0.75 - waited * 4e3);
  EXPECT_LE(total, seen * 1.25 + waited * 1e5);
}

TOOL_TEST(Iosched, Text) {
  require_tool("iosched");
  auto workload = Workload::of(writes("10"), kLinger);
  Tracer tracer("iosched", {"-T", "-d", workload.ready()["disk"].str()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "\nscheduler = mq-deadline\n")) << text;
  EXPECT_TRUE(contains(text, " usecs ")) << text;
}

const DeclareTests kIosched{{
    .name = "iosched",
    .reports = {{ReportKind::aggregate}},
    .events = {{"-D"}, writes("5")},
    .nothing_when_idle = true,
    .stress = {.workload = writes("{n}"),
               .events = 1500,
               .options = "-D",
               .shown = "count",
               .truth = "count",
               .tiny = "--max-keys 1",
               .workloads = 1},
    .long_run = {{.arguments = "-D 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
