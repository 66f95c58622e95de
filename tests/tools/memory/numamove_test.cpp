// numamove against pages moved by NUMA balancing, and pages moved by other means.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

void check_moves(const Report& report) {
  for (auto& line : report.body) {
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

void require_moved(const Json& truth, std::uint64_t pages) {
  if (truth["moved"].u64() != pages) throw Skip("NUMA balancing did not move all of the pages");
}

// ---- two nodes; one migrates nothing ----

TOOL_TEST(Numamove, TwoNodesPagesAndTime) {
  Scene scene("numa --pages 400", {});
  Counters around;
  for (std::string options : {"1000", "0.1", "-p {pid}", "-u 54321"})
    scene.trace("numamove --json --strict " + options);
  scene.trace("numamove -p {pid} 1000");
  auto seen = scene.finish();
  auto report = seen.report(0), parts = seen.report(1), mine = seen.report(2),
       none = seen.report(3);
  for (auto* r : {&report, &parts, &mine, &none}) check_moves(*r);
  require_moved(seen.truth, 400);

  expect_within(report, {between("moved_pages", seen.truth["vmstat"]["numa_pages_migrated"].u64(),
                                 around.growth("numa_pages_migrated")),
                         at_most("failed_pages", around.growth("pgmigrate_fail"))});
  expect_within(none, {{"moved_pages", 0, 0}, {"migrations", 0, 0}});
  for (auto* key : {"migrations", "timed_migrations", "moved_pages", "failed_pages"})
    EXPECT_EQ(report.sum(key), parts.sum(key)) << key;

  // One page each: well below a millisecond, but counted.
  auto moves = mine.sum("migrations");
  expect_within(mine, {between("moved_pages", 400, report.sum("moved_pages")),
                       at_least("migrations", 400), exactly("timed_migrations", moves),
                       between("time_ns", moves * 100 + 1, seen.truth["took_ns"].u64() - 1)});

  auto cells = words(lines(seen.text(4)).at(1));
  ASSERT_EQ(cells.size(), 5u) << seen.text(4);
  EXPECT_GE(std::stoull(cells[1]), 400u);
  EXPECT_GT(std::stod(cells[2]), 0.0) << seen.text(4);
  EXPECT_GE(std::stoull(cells[3]), 400u);
}

TOOL_TEST(Numamove, TwoNodesHugePages) {
  auto seen = observe("numamove --json --strict -p {pid}", "numa --huge --pages 2048", {});
  auto report = seen.report();
  check_moves(report);
  auto limits = report.header["limits"].strings();
  if (contains(join(limits), "huge pages")) throw Skip(limits[0]);
  require_moved(seen.truth, 2048);
  expect_within(report, {{"moved_pages", 2048, 2048 + 256},  // its stack, its code
                         {"migrations", 0, 4 + 256}});       // a huge page counts as one
}

TOOL_TEST(Numamove, TwoNodesMovedByACall) {
  auto seen = observe("numamove --json --strict", "numa --call --pages 512 --rounds 4", {});
  EXPECT_EQ(seen.truth["moved"].u64(), 4 * 512u);
  EXPECT_GE(seen.truth["vmstat"]["pgmigrate_success"].u64(), 4 * 512u);
  // That was not NUMA balancing.
  expect_within(seen.report(), {{"migrations", 0, 0}, {"moved_pages", 0, 0}});
}

// ---- any machine ----

TOOL_TEST(Numamove, CompactionIsNotCounted) {
  Workload workload("compaction", "--manual");
  Counters around;
  Tracer tracer("numamove", "--json --strict -p " + workload.id());
  workload.release();
  workload.truth();
  if (!around.growth("pgmigrate_success")) throw Skip("compaction had nothing to migrate");
  auto report = tracer.stop();
  check_moves(report);
  EXPECT_EQ(report.sum("migrations"), 0u);
}

TOOL_TEST(Numamove, Text) {
  EXPECT_EQ(expect_table(output_of("numamove 0.1 2"),
                         "TIME NUMA_migrations NUMA_migrations_ms PAGES FAILED",
                         R"(\d\d:\d\d:\d\d +\d+ +\d+\.\d{3} +\d+ +\d+)"),
            2u);
}

TESTS_OF(numamove, .reports = {{ReportKind::aggregate}}, .events = {{}, "sleeper --sleeps 3"},
         .stress = {
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
         });

}  // namespace
}  // namespace coretap::tooltest
