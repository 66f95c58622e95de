// swapout against a process that has its pages swapped out, and the kernel's count of them.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t swapped_out(const Json& truth) { return truth["vmstat"]["pswpout"].u64(); }

// The workload asks the kernel to write its own pages.
TOOL_TEST(Swapout, OwnerAndCause) {
  auto seen = observe_all({"swapout --json --strict -p {pid} 1000", "swapout --json --strict 1000",
                           "swapout --json --strict -u 54321 1000"},
                          "swapper --out --pages 300", {});
  auto pages = swapped_out(seen.truth);
  EXPECT_GT(pages, 200u);
  for (auto report : {seen.report(0), seen.report(1)}) {
    auto own = report.of_process(seen.pid);
    EXPECT_EQ(sum(own, "count"), pages);
    EXPECT_EQ(sum(own, "swapped_out_bytes"), pages * seen.truth["page_bytes"].u64());
    for (auto& row : own)
      expect_fields(row, {{"comm", "swapper"},
                          {"owner", "process"},
                          {"cause", "other"},
                          {"by_comm", "swapper"},
                          {"by_pid", seen.pid}});
  }
  EXPECT_TRUE(seen.body(2).empty()) << "its owner has another user";
}

// From its start: later, pages that are unchanged in swap are freed without a write.
TOOL_TEST(Swapout, AtTheLimitOfAMemoryCgroup) {
  require_tool("swapout");
  Counters around;
  auto result = result_of(Strings("swapout --json --exit-status 1000 --") +
                          Strings{workload_path("swapper"), "--make", "loop", "--pages", "6000"});
  if (result.status == 77) throw Skip(result.err);
  auto report = parse_report(result.out, result.err);
  auto own = lines_with(report.body, {{"cause", "memcg"}, {"comm", "swapper"}});
  EXPECT_GT(sum(own, "count"), 100u);
  for (auto& row : own) {
    expect_fields(row, {{"by_comm", "swapper"}, {"owner", "process"}});
    EXPECT_FALSE(row["cgroup_id"].is_null());
  }
  EXPECT_LE(report.sum("count"), around.growth("pswpout"));
}

TOOL_TEST(Swapout, Text) {
  EXPECT_EQ(words(complete_lines(output_of("swapout 0.1 1")).at(1)),
            words("COMM PID OWNER CAUSE BY BYPID COUNT WRITE(KB) CGROUP"));
}

TESTS_OF(swapout, .events = {.command = "swapper --out --pages 100", .in_turns = true},
         .stress = total_row("swapper --out --pages {n}", 1000, "count", [](stress::Load& load) {
                     return swapped_out(load.workload().truth());
                   }).of_one_workload());

}  // namespace
}  // namespace coretap::tooltest
