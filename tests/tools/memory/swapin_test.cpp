// swapin against a process that reads a known number of pages back from swap.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

void each_wait(const std::string& kind, const std::string& pages) {
  require_tool("swapin");
  Workload workload("swapper", {"--make", kind, "--pages", pages}, kLinger);
  Tracer tracer("swapin", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto waits = truth["major"].u64();
  if (!waits) throw Skip("nothing was swapped out");
  EXPECT_EQ(report.sum("count"), waits);
  EXPECT_EQ(report.sum("swapped_in_bytes"),
            truth["vmstat"]["pswpin"].u64() * truth["page_bytes"].u64());
  EXPECT_LE(report.sum("total_ns"), truth["took_ns"].u64());
  for (auto& row : report.body) {
    EXPECT_EQ(row["comm"].str(), "swapper");
    EXPECT_EQ(row["disk"].str(), truth["device"].str());
    EXPECT_GE(row["max_ns"].u64(), row["average_ns"].u64());
    EXPECT_GE(row["average_ns"].u64(), 100u);
    EXPECT_LE(row["max_ns"].u64(), row["total_ns"].u64());
  }
  workload.end_lingering();
}

TOOL_TEST(Swapin, EachWaitForMemory) { each_wait("zram", "300"); }

// The task sleeps meanwhile, and tries the fault again.
TOOL_TEST(Swapin, EachWaitForADisk) { each_wait("loop", "6000"); }

TOOL_TEST(Swapin, FilesAreNoSwap) {
  require_tool("swapin");
  Workload workload("faulter", {"--major", "60"}, kLinger);
  Tracer tracer("swapin", {"--json", "-p", workload.id()});
  workload.release();
  EXPECT_GE(workload.truth()["cold"]["major"].u64(), 60u);
  EXPECT_TRUE(tracer.stop().body.empty());
}

TOOL_TEST(Swapin, TimeOfDay) {
  require_tool("swapin");
  auto with = run({tool_path("swapin"), "0.1", "1"}),
       without = run({tool_path("swapin"), "-T", "0.1", "1"});
  ASSERT_EQ(with.status, 0) << with.err;
  ASSERT_EQ(without.status, 0) << without.err;
  EXPECT_TRUE(with.out.starts_with("[")) << with.out;
  EXPECT_EQ(words(without.out),
            (Strings{"COMM", "PID", "COUNT", "AVG(ms)", "MAX(ms)", "READ(KB)", "DISK"}));
}

const DeclareTests kSwapin{{
    .name = "swapin",
    .reports = {{ReportKind::aggregate}},
    .events = {.command = "swapper --pages 100", .in_turns = true},
    .stress = {.workload = "swapper --pages {n}",
               .events = 1000,
               .shown = "count",
               .truth = "major",
               .workloads = 1},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
