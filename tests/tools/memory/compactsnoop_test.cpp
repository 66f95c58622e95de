// compactsnoop against the kernel's own counters of compaction.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Present pages of each (node, zone) in a workload's truth; zones as in enum zone_type.
using Zones = std::map<std::pair<std::uint64_t, std::string>, std::uint64_t>;
Zones zones_of(const Json& truth) {
  Zones zones;
  for (auto& zone : truth["zones"].items()) {
    auto name = zone["zone"].str();
    std::ranges::transform(name, name.begin(), ::toupper);
    zones[{zone["node"].u64(), "ZONE_" + name}] = zone["present_pages"].u64();
  }
  return zones;
}

/// Properties of every event.
void check_compactions(const Report& report, const Zones& zones) {
  static const std::regex lower_case("[a-z_]+");
  for (auto& event : report.body) {
    SCOPED_TRACE(event.text());
    auto of = [&](const char* key) { return event[key].u64(); };
    auto mode = event["mode"].str();
    EXPECT_GT(of("latency_ns"), 0u);
    EXPECT_TRUE(std::regex_match(event["status"].str(), lower_case));
    EXPECT_TRUE(mode == "SYNC" || mode == "ASYNC");
    auto present = zones.at({of("node"), event["zone"].str()});
    EXPECT_LE(of("free_pages"), present);
    EXPECT_LE(of("min_pages"), of("low_pages"));
    EXPECT_LE(of("low_pages"), of("high_pages"));
    EXPECT_LE(of("high_pages"), present);
    if (report.header["limits"].items().empty()) {
      EXPECT_LE(of("migrated_pages"), of("migrate_scanned_pages"));
    }
    auto index = event["fragmentation_index"];
    ASSERT_EQ(index.is_null(), event["order"].i64() < 0);
    if (!index.is_null()) {
      EXPECT_LE(std::abs(index.real()), 1);
    }
  }
}

/// Sums over all tasks, including kcompactd, match the kernel's counters: at least their growth
/// while the workload ran, at most that while the tool ran.
void expect_scanned(const Report& report, const Json& truth, const Counters& around) {
  // Otherwise the scans of the fast search are not traced.
  const bool all = report.header["limits"].items().empty();
  auto bounds = [&](const char* key, const char* counter) -> Bounds {
    return {key, all ? truth["vmstat"][counter].u64() : 0, around.growth(counter)};
  };
  expect_within(report, {at_most("migrated_pages", around.growth("pgmigrate_success")),
                         bounds("migrate_scanned_pages", "compact_migrate_scanned"),
                         bounds("free_scanned_pages", "compact_free_scanned")});
}

TOOL_TEST(Compactsnoop, ByHand) {
  auto workload = Workload::of("compaction --manual --rounds 2", {});
  Counters around;
  Tracer all("compactsnoop", "--json --strict -K");
  Counters within;
  workload.release();
  auto truth = workload.truth();
  auto migrated = within.growth("pgmigrate_success");
  auto report = all.stop();
  auto zones = zones_of(truth);
  check_compactions(report, zones);
  expect_scanned(report, truth, around);
  // Compaction is the cause of page migration, unless there are several nodes to balance.
  if (zones.rbegin()->first.first == 0) {
    EXPECT_GE(report.sum("migrated_pages"), migrated);
  }
  auto own = report.of_process(static_cast<std::uint64_t>(workload.pid()));
  for (auto& event : own) {
    expect_fields(event, {is("tid", workload.pid()), is("comm", "compaction"), is("kind", "manual"),
                          is("order", -1), is("mode", "SYNC")});
    expect_kernel_frames(event, {"compact_", "sysctl_compaction_handler"});
  }
  EXPECT_EQ(own.size(), truth["begins_expected"].u64());
  for (auto& [zone, pages] : zones)
    EXPECT_EQ(lines_with(own, {{"node", zone.first}, {"zone", zone.second}}).size(),
              truth["rounds"].u64());
  EXPECT_LE(sum(own, "latency_ns"), truth["took_ns"].u64());
  EXPECT_GT(sum(own, "migrate_scanned_pages"), 0u);
}

// Huge pages in fragmented memory: the allocating task compacts. One workload for all options, as
// it takes seconds to fragment a machine's memory.
TOOL_TEST(Compactsnoop, DirectForHugePages) {
  Scene scene("compaction --events 4", {});
  Counters around;
  scene.trace("compactsnoop --json --strict -K");
  scene.trace("compactsnoop -T -e -n compaction");
  scene.trace("compactsnoop --json -u 54321");
  auto seen = scene.finish();
  auto report = seen.report();
  check_compactions(report, zones_of(seen.truth));
  expect_scanned(report, seen.truth, around);
  auto direct = report.of_process(seen.pid);
  for (auto& event : direct) {
    expect_fields(event, {{"kind", "direct"}, {"order", 9}, {"comm", "compaction"}});
    expect_kernel_frames(event, {"compact_zone", "try_to_compact_pages"});
  }
  EXPECT_TRUE(lines_with(report.body, {{"kind", "manual"}}).empty());
  // A stall is a run on each suitable zone; none starts where a huge page has become free meanwhile
  // (compaction_suitable() returns success).
  EXPECT_GE(direct.size() * 2, seen.truth["stalls"].u64());
  EXPECT_GT(seen.truth["vmstat"]["compact_success"].u64(), 0u);
  EXPECT_FALSE(lines_with(direct, {{"status", "success"}}).empty());
  EXPECT_EQ(
      expect_table(
          seen.text(1),
          "TIME(s) COMM PID NODE ZONE ORDER MODE FRAGIDX MIN LOW HIGH FREE LAT(ms) STATUS KIND "
          "MSCAN FSCAN MIGR",
          R"(\d+\.\d{6} +compaction +\d+ +\d+ +ZONE_[A-Z0-9]+ +9 +A?SYNC +-?\d\.\d{3}( +\d+){4} +\d+\.\d+ +[a-z_]+ +direct( +\d+){3} *)"),
      direct.size());
  EXPECT_TRUE(seen.body(2).empty());
}

TESTS_OF(compactsnoop, .events = {"-e -K", "compaction --manual", true},
         .stress = event_row("compaction --manual --rounds {n}", 10, "begins_expected")
                       .of_one_workload());

}  // namespace
}  // namespace coretap::tooltest
