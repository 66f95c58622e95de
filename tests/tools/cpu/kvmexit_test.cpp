// kvmexit against a virtual machine that leaves its guest a known number of times, and against
// perf's count of the same exits.
#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::map<std::string, std::uint64_t> by_reason(const Report& report) {
  std::map<std::string, std::uint64_t> all;
  for (auto& line : report.body) all[line["reason"].str()] += line["count"].u64();
  return all;
}

void expect_reasons(const Report& report, const Json& truth) {
  auto seen = by_reason(report);
  EXPECT_EQ(report.sum("count"), truth["exits"].u64());
  EXPECT_EQ(seen["io"] + seen["IO_INSTRUCTION"], truth["outs"].u64());
  EXPECT_EQ(seen["cpuid"] + seen["CPUID"], truth["cpuids"].u64());
  EXPECT_EQ(seen["hlt"] + seen["HLT"], truth["halts"].u64());
}

TOOL_TEST(Kvmexit, EveryExitByReason) {
  require_tool("kvmexit");
  Workload workload("vm", {"--cpuids", "70", "--outs", "30"}, kLinger);
  Tracer tracer("kvmexit", {"--json", "--strict", "-L", "-t", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  expect_reasons(report, truth);
  for (auto& line : report.body) {
    EXPECT_EQ(line["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(line["tid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(line["vcpu"].u64(), 0u);
    EXPECT_LE(line["max_ns"].u64(), line["total_ns"].u64());
    auto name = line["reason"].str();
    if (name == "io" || name == "IO_INSTRUCTION") {
      EXPECT_GT(line["average_ns"].u64(), 0u);
    }
  }
}

TOOL_TEST(Kvmexit, OneProcessOrItsThreads) {
  require_tool("kvmexit");
  for (bool threads : {false, true}) {
    Workload workload("vm", {"--cpuids", "70", "--outs", "30"}, kLinger);
    Strings options{"--json", "--strict", "-p", workload.id()};
    if (threads) options.insert(options.end(), {"-a", "-v", "0"});
    Tracer tracer("kvmexit", options);
    workload.release();
    auto truth = workload.truth();
    auto report = tracer.stop();
    expect_reasons(report, truth);
    for (auto& line : report.body) {
      EXPECT_EQ(line["tid"].is_null(), !threads);
      EXPECT_FALSE(line.has("total_ns"));
    }
  }
}

TOOL_TEST(Kvmexit, AnotherProcessorOnly) {
  require_tool("kvmexit");
  Workload workload("vm", {"--cpuids", "70", "--outs", "30"}, kLinger);
  Tracer tracer("kvmexit", {"--json", "-v", "1", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_TRUE(report.body.empty());
  EXPECT_EQ(report.lost("filtered"), truth["exits"].u64());
}

const DeclareTests kKvmexit{{
    .name = "kvmexit",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "vm"},
    .nothing_when_idle = true,
    .stress = {.workload = "vm --cpuids {n} --outs 100",
               .events = 5000,
               .shown = "count",
               .truth = "exits",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "-i 60"}},
}};

}  // namespace
}  // namespace coretap::tooltest
