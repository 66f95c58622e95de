// hardirqs against /proc/interrupts.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Hardirqs, AsTheKernel) {
  for (auto* words : {"hardirqs", "hardirqs --count", "hardirqs -C", "hardirqs --max-keys 1000"}) {
    SCOPED_TRACE(words);
    auto counted = count(words, "/proc/interrupts", write_to_disk);
    if (counted.at[2] == counted.at[1]) throw Skip("no device interrupts here");
    std::uint64_t most = 0;
    for (auto& [irq, n] : counts_by(counted.report, "irq")) {
      counted.expect(irq, n);
      most = std::max(most, n);
    }
    EXPECT_GE(most, 20u) << "the workload's writes interrupt";
    for (auto& line : counted.report.body) {
      EXPECT_LE(line["spurious"].u64(), line["count"].u64());
      if (words != std::string("hardirqs")) continue;
      EXPECT_GE(line["total_ns"].u64(), line["max_ns"].u64());
      EXPECT_GE(line["max_ns"].u64() * line["count"].u64(), line["total_ns"].u64());
    }
  }
}

TOOL_TEST(Hardirqs, LongestIsOfItsInterval) {
  auto result = result_of("hardirqs --vectors --json 0.3 4");
  if (result.status == 3) throw Skip(result.err);
  auto report = parse_report(result.out, result.err);
  for (auto& line : report.body) expect_longest_of_all(line);
  auto timers = lines_with(report.body, {{"name", "local_timer"}});
  EXPECT_GE(timers.size(), 3u);
  std::set<std::uint64_t> longest;
  for (auto& line : timers) longest.insert(line["max_ns"].u64());
  // A maximum over the whole run would stay constant once reached.
  EXPECT_GE(longest.size(), 2u);
}

TESTS_OF(
    hardirqs, .events = {"--vectors", "sleeper --sleeps 1 --spin 100"}, .alone = true,
    .nothing_when_idle = true,
    .stress = count_row("sleeper --sleeps 1 --spin {n}", 500, "count", {}, "--vectors").not_known(),
    .long_run = {{.arguments = "--vectors -C 10"}});

}  // namespace coretap::tooltest
