// fileslower against a process that makes a known number of reads and writes, one of them slowly.
#include "../harness.hpp"

namespace coretap::tooltest {
TOOL_TEST(Fileslower, EveryCallWithItsResult) {
  auto seen = observe("fileslower --json --strict 0 -p {pid}", "fileio --count 50 --size 3000");
  auto events = seen.report().body;
  for (auto& line : events)
    expect_fields(line, {{"file", seen.truth["data"].str()}, {"comm", "fileio"}});
  auto failed = lines_with(events, {{"error", "EBADF"}});
  std::erase_if(events, [](auto& line) { return Value("EBADF").is(line["error"]); });
  auto reads = lines_with(events, {{"operation", "R"}});
  EXPECT_EQ(reads.size(), seen.truth["reads"].u64());
  EXPECT_EQ(events.size() - reads.size(), seen.truth["writes"].u64());
  expect_sums(reads, seen.truth, {{"bytes", "read_bytes"}});
  EXPECT_EQ(failed.size(), seen.truth["failed"].u64());
  EXPECT_EQ(sum(failed, "bytes"), 0u);
}

TOOL_TEST(Fileslower, OnlyWhatIsSlow) {
  auto seen = observe_all(
      {"fileslower --json --strict 250 -p {pid}", "fsslower --json --strict -m 250 -p {pid}"},
      "fileio --count 200 --delay 300");
  for (std::size_t tool : {0, 1}) {
    auto slow = only(seen.body(tool));
    expect_fields(slow, {{"file", seen.truth["data"].str()}, {"operation", "R"}});
    EXPECT_GE(slow["latency_ns"].u64(), 290'000'000u);
    EXPECT_LT(slow["latency_ns"].u64(), 2'000'000'000u);
    EXPECT_GE(seen.report(tool).lost("filtered"), seen.number(tool ? "returned" : "results") - 1);
  }
}

// A path with more components than the walk's limit: the event and the ledger report it.
TOOL_TEST(Fileslower, PathsThatAreTooDeep) {
  for (std::string tool : {"fileslower", "fsslower"}) {
    SCOPED_TRACE(tool);
    require_tool(tool);
    TemporaryDirectory directory;
    auto deep = "cd " + directory.path() +
                "; i=0; while [ $i -lt 120 ]; do mkdir d; cd d; i=$((i + 1)); done; echo > leaf";
    auto result = run({tool_path(tool), "--json", "0", "--", "/bin/sh", "-c", deep});
    auto report = parse_report(result.out, result.err);
    std::uint64_t cut = 0;
    for (auto& line : lines_with(report.body, {{"comm", "sh"}})) {
      auto file = line["file"].str();
      if (!file.ends_with("/d/leaf")) continue;
      EXPECT_FALSE(file.starts_with("/")) << file;
      cut++;
    }
    EXPECT_GE(cut, 1u);
    EXPECT_GE(report.lost("truncated"), cut);
  }
}

TESTS_OF(fileslower, .events = {"0", "fileio --count 5"},
         .stress = event_row("fileio --count {n}", 10000, "returned", "0"),
         .long_run = {{.arguments = "1"}});

}  // namespace coretap::tooltest
