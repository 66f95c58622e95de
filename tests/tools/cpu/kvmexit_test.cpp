// kvmexit against a virtual machine that exits a known number of times, and against perf's count of
// the same exits.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr char kGuest[] = "vm --cpuids 70 --outs 30";

void expect_reasons(const Report& report, const Json& truth) {
  auto seen = counts_by(report, "reason");
  expect_sums(report, truth, {{"count", "exits"}});
  EXPECT_EQ(seen["io"] + seen["IO_INSTRUCTION"], truth["outs"].u64());
  EXPECT_EQ(seen["cpuid"] + seen["CPUID"], truth["cpuids"].u64());
  EXPECT_EQ(seen["hlt"] + seen["HLT"], truth["halts"].u64());
}

TOOL_TEST(Kvmexit, EveryExitByReason) {
  auto seen = observe("kvmexit --json --strict -L -t {pid}", kGuest);
  expect_reasons(seen.report(), seen.truth);
  for (auto& line : seen.report().body) {
    expect_fields(line, {{"pid", seen.pid}, {"tid", seen.pid}, {"vcpu", 0}});
    EXPECT_LE(line["max_ns"].u64(), line["total_ns"].u64());
    auto name = line["reason"].str();
    if (name == "io" || name == "IO_INSTRUCTION") {
      EXPECT_GT(line["average_ns"].u64(), 0u);
    }
  }
}

TOOL_TEST(Kvmexit, OneProcessOrItsThreads) {
  for (bool threads : {false, true}) {
    auto seen =
        observe(Strings("kvmexit --json --strict -p {pid}") + (threads ? "-a -v 0" : ""), kGuest);
    expect_reasons(seen.report(), seen.truth);
    for (auto& line : seen.report().body) {
      EXPECT_EQ(line["tid"].is_null(), !threads);
      EXPECT_FALSE(line.has("total_ns"));
    }
  }
}

TOOL_TEST(Kvmexit, AnotherProcessorOnly) {
  auto seen = observe("kvmexit --json -v 1 -p {pid}", kGuest);
  EXPECT_TRUE(seen.report().body.empty());
  EXPECT_EQ(seen.report().lost("filtered"), seen.truth["exits"].u64());
}

TESTS_OF(kvmexit, .events = {{}, "vm"}, .nothing_when_idle = true,
         .stress = count_row("vm --cpuids {n} --outs 100", 5000, "count", "exits"),
         .long_run = {{.arguments = "-i 60"}});

}  // namespace
}  // namespace coretap::tooltest
