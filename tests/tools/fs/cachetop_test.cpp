// cachetop against cachestat, and a process that touches a known number of pages of a file.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// Blocks that the file system looks its extents up in, and pages of the workload's own code.
constexpr std::uint64_t kFew = 64;

// The same programs, once summed and once by process.
TOOL_TEST(Cachetop, AgreesWithCachestat) {
  require_tool("cachetop");
  Strings phases{"--phase", "cold,warm,write,mmap"};
  Workload one("pagecache", phases, kLinger), other("pagecache", phases, kLinger);
  auto pids = one.id() + "," + other.id();
  Tracer top("cachetop", {"--json", "--strict", "-p", pids, "3600"});
  Tracer stat("cachestat", {"--json", "--strict", "-p", pids, "3600"});
  one.release();
  other.release();
  auto pages = one.truth()["file_pages"].u64();
  other.truth();
  auto rows = top.stop(), sums = stat.stop();
  ASSERT_EQ(rows.body.size(), 2u);
  for (auto& line : rows.body) {
    EXPECT_EQ(line["comm"].str(), "pagecache");
    EXPECT_EQ(line["uid"].u64(), static_cast<std::uint64_t>(getuid()));
    EXPECT_GE(line["misses"].u64(), pages);
    EXPECT_GE(line["hits"].u64() + kFew, pages);
    EXPECT_GE(line["dirtied"].u64(), pages);
    // What the write has made was not there before.
    EXPECT_LT(line["write_hit_ratio"].real(), 0.5);
  }
  for (auto* key : {"accessed", "misses", "added", "write_added", "dirtied"})
    EXPECT_EQ(rows.sum(key), sums.sum(key)) << key;
}

TOOL_TEST(Cachetop, ShareOfHits) {
  require_tool("cachetop");
  Workload warm("pagecache", {"--phase", "warm"}, kLinger),
      cold("pagecache", {"--phase", "cold"}, kLinger);
  Tracer tracer("cachetop",
                {"--json", "--strict", "-p", warm.id() + "," + cold.id(), "-s", "misses", "3600"});
  warm.release();
  cold.release();
  auto pages = warm.truth()["file_pages"].u64();
  cold.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 2u);
  auto& first = report.body[0];
  auto& last = report.body[1];
  EXPECT_EQ(first["pid"].u64(), static_cast<std::uint64_t>(cold.pid()));
  EXPECT_GE(first["misses"].u64(), pages);
  EXPECT_LE(first["misses"].u64(), pages + kFew);
  EXPECT_LT(first["hit_ratio"].real(), 0.1);
  EXPECT_LE(last["misses"].u64(), kFew);
  EXPECT_GT(last["hit_ratio"].real(), 0.9);
}

TOOL_TEST(Cachetop, TheKnownColumns) {
  require_tool("cachetop");
  auto result = run({tool_path("cachetop"), "-C", "0.1", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("PID     UID    CMD                  HITS   MISSES  DIRTIES  "
                            "READ_HIT% WRITE_HIT%\n"),
            std::string::npos)
      << result.out;
}

const DeclareTests kCachetop{{
    .name = "cachetop",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "pagecache --size 262144"},
    .stress = {.workload = "pagecache --phase warm --rounds {n}",
               .events = 10,
               .shown = "accessed+added+dirtied",
               // No tiny: the ledger counts events, of which one may access many pages.
               .truth = [](stress::Load& load) { return 2 * load.truth("page_accesses"); },
               .slack = kFew},
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
