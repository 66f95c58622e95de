// numamove against pages that NUMA balancing moves, and pages that others move.
#include <algorithm>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

bool has_limit(const Report& report, std::string_view words) {
  auto limits = report.header["limits"].strings();
  return std::any_of(limits.begin(), limits.end(), [&](auto& l) { return contains(l, words); });
}

void check_lines(const Report& report) {
  for (auto& line : report.body) {
    EXPECT_EQ(line["type"].str(), "interval");
    auto migrations = line["migrations"].u64(), timed = line["timed_migrations"].u64();
    EXPECT_LE(timed, migrations);
    if (migrations && !timed) {
      EXPECT_TRUE(line["time_ns"].is_null());
    } else {
      EXPECT_GE(line["time_ns"].u64(), timed) << "none takes less than a nanosecond";
    }
    if (!migrations) {
      EXPECT_EQ(line["moved_pages"].u64() + line["failed_pages"].u64(), 0u);
    }
  }
}

// ---- two nodes; one migrates nothing ----

TOOL_TEST(Numamove, TwoNodesPagesAndTime) {
  require_tool("numamove");
  Workload workload("numa", {"--pages", "400"});
  Counters around;
  Tracer all("numamove", {"--json", "--strict", "1000"});
  Tracer often("numamove", {"--json", "--strict", "0.1"});
  Tracer own("numamove", {"--json", "--strict", "-p", workload.id()});
  Tracer nobody("numamove", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop(), parts = often.stop(), mine = own.stop(), none = nobody.stop();
  for (auto* r : {&report, &parts, &mine, &none}) check_lines(*r);
  if (truth["moved"].u64() != 400) throw Skip("NUMA balancing did not move all of the pages");

  EXPECT_GE(report.sum("moved_pages"), truth["vmstat"]["numa_pages_migrated"].u64());
  EXPECT_LE(report.sum("moved_pages"), around.growth("numa_pages_migrated"));
  EXPECT_LE(report.sum("failed_pages"), around.growth("pgmigrate_fail"));
  EXPECT_GE(mine.sum("moved_pages"), 400u);
  EXPECT_LE(mine.sum("moved_pages"), report.sum("moved_pages"));
  EXPECT_EQ(none.sum("moved_pages") + none.sum("migrations"), 0u);
  for (auto* key : {"migrations", "timed_migrations", "moved_pages", "failed_pages"})
    EXPECT_EQ(report.sum(key), parts.sum(key)) << key;

  // One page each: well below a millisecond, and no less counted for that.
  EXPECT_GE(mine.sum("migrations"), 400u);
  EXPECT_EQ(mine.sum("timed_migrations"), mine.sum("migrations"));
  EXPECT_GT(mine.sum("time_ns"), mine.sum("migrations") * 100);
  EXPECT_LT(mine.sum("time_ns"), truth["took_ns"].u64());
}

TOOL_TEST(Numamove, TwoNodesHugePages) {
  require_tool("numamove");
  Workload workload("numa", {"--huge", "--pages", "2048"});
  Tracer tracer("numamove", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  check_lines(report);
  if (has_limit(report, "huge pages")) throw Skip(report.header["limits"].strings().at(0));
  if (truth["moved"].u64() != 2048) throw Skip("NUMA balancing did not move all of the pages");
  EXPECT_GE(report.sum("moved_pages"), 2048u);
  EXPECT_LE(report.sum("moved_pages"), 2048u + 256) << "its stack, its code";
  EXPECT_LE(report.sum("migrations"), 4u + 256) << "huge pages move as one";
}

TOOL_TEST(Numamove, TwoNodesMovedByACall) {
  require_tool("numamove");
  Workload workload("numa", {"--call", "--pages", "512", "--rounds", "4"});
  Tracer tracer("numamove", {"--json", "--strict"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(truth["moved"].u64(), 4 * 512u);
  EXPECT_GE(truth["vmstat"]["pgmigrate_success"].u64(), 4 * 512u);
  EXPECT_EQ(report.sum("migrations"), 0u) << "that was no NUMA balancing";
  EXPECT_EQ(report.sum("moved_pages"), 0u);
}

TOOL_TEST(Numamove, TwoNodesText) {
  require_tool("numamove");
  Workload workload("numa", {"--pages", "400"});
  Tracer tracer("numamove", {"-p", workload.id(), "1000"});
  workload.release();
  if (workload.truth()["moved"].u64() != 400)
    throw Skip("NUMA balancing did not move all of the pages");
  std::istringstream lines(tracer.stop_text());
  std::string header, row;
  std::getline(lines, header);
  std::getline(lines, row);
  auto cells = words(row);
  ASSERT_EQ(cells.size(), 5u) << row;
  EXPECT_GE(std::stoull(cells[1]), 400u);
  EXPECT_GT(std::stod(cells[2]), 0.0) << row;
  EXPECT_GE(std::stoull(cells[3]), 400u);
}

// ---- anywhere ----

TOOL_TEST(Numamove, CompactionIsNotCounted) {
  require_tool("numamove");
  Workload workload("compaction", {"--manual"});
  Counters around;
  Tracer tracer("numamove", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  workload.truth();
  if (!around.growth("pgmigrate_success")) throw Skip("compaction had nothing to migrate");
  auto report = tracer.stop();
  check_lines(report);
  EXPECT_EQ(report.sum("migrations"), 0u);
}

TOOL_TEST(Numamove, TextAndCsv) {
  require_tool("numamove");
  auto text = run({tool_path("numamove"), "0.1", "2"});
  ASSERT_EQ(text.status, 0) << text.err;
  EXPECT_TRUE(safe_for_terminals(text.out));
  std::istringstream lines(text.out);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line),
            (Strings{"TIME", "NUMA_migrations", "NUMA_migrations_ms", "PAGES", "FAILED"}));
  static const std::regex row(R"(\d\d:\d\d:\d\d +\d+ +\d+\.\d{3} +\d+ +\d+)");
  int rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, 2);
  auto csv = run({tool_path("numamove"), "--csv", "0.1", "1"});
  ASSERT_EQ(csv.status, 0) << csv.err;
  EXPECT_TRUE(
      csv.out.starts_with("time,migrations,time_ns,moved_pages,failed_pages,timed_migrations\n"))
      << csv.out;
  EXPECT_EQ(std::count(csv.out.begin(), csv.out.end(), '\n'), 2);
}

const DeclareTests kNumamove{{
    .name = "numamove",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "sleeper --sleeps 3"},
    .stress =
        {
            .workload = "numa --pages {n}",
            .events = 400,
            .shown = "moved_pages",
            .truth =
                [](stress::Load& load) {
                  if (load.truth("moved") != load.truth("pages")) throw Skip("unbalanced");
                  return load.truth("moved");
                },
            .workloads = 1,
            .slack = 1024,  // the process's other pages
        },
    .long_run = {{.arguments = "5"}},
}};

}  // namespace
}  // namespace coretap::tooltest
