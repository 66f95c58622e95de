// swapin against a process that reads a known number of pages back from swap.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void each_wait(const std::string& workload) {
  auto seen = observe("swapin --json --strict -p {pid}", workload);
  auto& truth = seen.truth;
  auto report = seen.report();
  auto waits = truth["major"].u64();
  if (!waits) throw Skip("nothing was swapped out");
  auto bytes = truth["vmstat"]["pswpin"].u64() * truth["page_bytes"].u64();
  expect_within(report, {exactly("count", waits), exactly("swapped_in_bytes", bytes),
                         at_most("total_ns", truth["took_ns"].u64())});
  for (auto& row : report.body) {
    expect_fields(row, {{"comm", "swapper"}, {"disk", truth["device"].str()}});
    EXPECT_GE(row["max_ns"].u64(), row["average_ns"].u64());
    EXPECT_GE(row["average_ns"].u64(), 100u);
    EXPECT_LE(row["max_ns"].u64(), row["total_ns"].u64());
  }
}

TOOL_TEST(Swapin, EachWaitForMemory) { each_wait("swapper --make zram --pages 300"); }

// The task sleeps meanwhile, and retries the fault.
TOOL_TEST(Swapin, EachWaitForADisk) { each_wait("swapper --make loop --pages 6000"); }

TOOL_TEST(Swapin, FilesAreNoSwap) {
  auto seen = observe("swapin --json -p {pid}", "faulter --major 60");
  EXPECT_GE(seen.truth["cold"]["major"].u64(), 60u);
  EXPECT_TRUE(seen.report().body.empty());
}

TOOL_TEST(Swapin, TimeOfDay) { EXPECT_TRUE(isdigit(output_of("swapin 0.1 1")[0])); }

TESTS_OF(swapin, .events = {.command = "swapper --pages 100", .in_turns = true},
         .stress = total_row("swapper --pages {n}", 1000, "count", "major").of_one_workload());

}  // namespace
}  // namespace coretap::tooltest
