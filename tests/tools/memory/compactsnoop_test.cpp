// compactsnoop against the kernel's own counters of compaction.
#include <algorithm>
#include <map>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// The zone's name in enum zone_type.
std::string zone_type(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), ::toupper);
  return "ZONE_" + name;
}

/// Present pages of each (node, zone) in a workload's truth.
using Zones = std::map<std::pair<std::uint64_t, std::string>, std::uint64_t>;
Zones zones_of(const Json& truth) {
  Zones zones;
  for (auto& zone : truth["zones"].items())
    zones[{zone["node"].u64(), zone_type(zone["zone"].str())}] = zone["present_pages"].u64();
  return zones;
}

/// What holds for every event.
void check_events(const Report& report, const Zones& zones) {
  static const std::regex lower_case("[a-z_]+");
  bool all_known = report.header["limits"].items().empty();
  for (auto& event : report.body) {
    EXPECT_EQ(event["type"].str(), "event");
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    auto status = event["status"].str(), mode = event["mode"].str();
    EXPECT_TRUE(std::regex_match(status, lower_case)) << status;
    EXPECT_TRUE(mode == "SYNC" || mode == "ASYNC") << mode;
    auto zone = zones.find({event["node"].u64(), event["zone"].str()});
    ASSERT_NE(zone, zones.end()) << event["zone"].str();
    EXPECT_LE(event["free_pages"].u64(), zone->second);
    EXPECT_LE(event["min_pages"].u64(), event["low_pages"].u64());
    EXPECT_LE(event["low_pages"].u64(), event["high_pages"].u64());
    EXPECT_LE(event["high_pages"].u64(), zone->second);
    if (all_known) {
      EXPECT_LE(event["migrated_pages"].u64(), event["migrate_scanned_pages"].u64());
    }
    auto index = event["fragmentation_index"];
    if (event["order"].i64() < 0) {
      EXPECT_TRUE(index.is_null());
    } else {
      EXPECT_GE(index.real(), -1);
      EXPECT_LE(index.real(), 1);
    }
  }
}

/// Sums over all tasks, kcompactd included, are the kernel's own: it counted no less while the
/// workload ran and no more while the tool did.
void expect_scanned(const Report& report, const Json& truth, const Counters& around) {
  EXPECT_LE(report.sum("migrated_pages"), around.growth("pgmigrate_success"));
  if (auto limits = report.header["limits"].strings(); !limits.empty()) {
    // What it isolated it has scanned by the way that is seen; the fast search adds to the rest.
    EXPECT_LE(report.sum("migrate_scanned_pages"), around.growth("compact_migrate_scanned"));
    EXPECT_LE(report.sum("free_scanned_pages"), around.growth("compact_free_scanned"));
    return;
  }
  EXPECT_GE(report.sum("migrate_scanned_pages"), truth["vmstat"]["compact_migrate_scanned"].u64());
  EXPECT_LE(report.sum("migrate_scanned_pages"), around.growth("compact_migrate_scanned"));
  EXPECT_GE(report.sum("free_scanned_pages"), truth["vmstat"]["compact_free_scanned"].u64());
  EXPECT_LE(report.sum("free_scanned_pages"), around.growth("compact_free_scanned"));
}

template <class Condition>
std::size_t count(const Report& report, Condition condition) {
  return static_cast<std::size_t>(std::count_if(report.body.begin(), report.body.end(), condition));
}

bool has_frame(const Json& event, std::string_view part) {
  auto frames = event["kernel_stack"].strings();
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

const Strings kManual{"--manual", "--rounds", "2"};

TOOL_TEST(Compactsnoop, ByHand) {
  require_tool("compactsnoop");
  Workload workload("compaction", kManual);
  Counters around;
  Tracer all("compactsnoop", {"--json", "--strict", "-K"});
  Counters within;
  workload.release();
  auto truth = workload.truth();
  auto migrated = within.growth("pgmigrate_success");
  auto report = all.stop();
  auto zones = zones_of(truth);
  check_events(report, zones);
  expect_scanned(report, truth, around);
  // Compaction is what migrates pages, unless there are several nodes to balance.
  if (zones.rbegin()->first.first == 0) {
    EXPECT_GE(report.sum("migrated_pages"), migrated);
  }
  std::map<Zones::key_type, std::uint64_t> runs, expected;
  for (auto& [zone, pages] : zones) expected[zone] = truth["rounds"].u64();
  std::uint64_t begins = 0, took = 0, scanned = 0;
  for (auto& event : report.body) {
    if (event["pid"].i64() != workload.pid()) continue;
    begins++;
    runs[{event["node"].u64(), event["zone"].str()}]++;
    took += event["latency_ns"].u64();
    scanned += event["migrate_scanned_pages"].u64();
    EXPECT_EQ(event["tid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "compaction");
    EXPECT_EQ(event["kind"].str(), "manual");
    EXPECT_EQ(event["order"].i64(), -1);
    EXPECT_EQ(event["mode"].str(), "SYNC");
    EXPECT_TRUE(has_frame(event, "compact_"));
    EXPECT_TRUE(has_frame(event, "sysctl_compaction_handler"));
    EXPECT_FALSE(has_frame(event, "bpf_")) << "our own frames are left out";
  }
  EXPECT_EQ(begins, truth["begins_expected"].u64());
  EXPECT_EQ(runs, expected);
  EXPECT_LE(took, truth["took_ns"].u64());
  EXPECT_GT(scanned, 0u);
}

TOOL_TEST(Compactsnoop, Filters) {
  require_tool("compactsnoop");
  Cgroup cgroup;
  Workload wanted("compaction", {"--manual", "--comm", "cs-wanted"}), other("compaction", kManual);
  cgroup.add(wanted.pid());
  std::vector<Strings> filters{
      {"-p", wanted.id()}, {"-t", wanted.id()}, {"-n", "cs-wanted"}, {"-c", cgroup.path()}};
  auto with = [](Strings options) {
    options.insert(options.begin(), {"--json", "--strict"});
    return std::make_unique<Tracer>("compactsnoop", options);
  };
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto& filter : filters) tracers.push_back(with(filter));
  auto nobody = with({"-u", "54321"}),
       root = with({"-u", "0", "-p", wanted.id() + "," + other.id()});
  // One after the other: two that compact the same zones are in each other's way.
  wanted.release();
  auto one = wanted.truth();
  other.release();
  auto two = other.truth();
  for (std::size_t i = 0; i < filters.size(); i++) {
    SCOPED_TRACE(filters[i][0]);
    auto report = tracers[i]->stop();
    EXPECT_EQ(report.body.size(), one["begins_expected"].u64());
    for (auto& event : report.body) EXPECT_EQ(event["pid"].i64(), wanted.pid());
  }
  EXPECT_TRUE(nobody->stop().body.empty());
  EXPECT_EQ(root->stop().body.size(), one["begins_expected"].u64() + two["begins_expected"].u64());
}

TOOL_TEST(Compactsnoop, FollowsACommand) {
  require_tool("compactsnoop");
  Tracer tracer(
      "compactsnoop",
      {"--json", "--strict", "--", workload_path("compaction"), "--manual", "--rounds", "2"},
      {.attached = false});
  auto report = tracer.finish();
  ASSERT_TRUE(report.truth);
  check_events(report, zones_of(*report.truth));
  EXPECT_EQ(report.body.size(), (*report.truth)["begins_expected"].u64());
  for (auto& event : report.body) EXPECT_EQ(event["pid"].u64(), (*report.truth)["pid"].u64());
}

// Huge pages out of fragmented memory: the task that asks for them compacts. To fragment a
// machine's memory takes seconds: one workload for all of it.
TOOL_TEST(Compactsnoop, DirectForHugePages) {
  require_tool("compactsnoop");
  Workload workload("compaction", {"--events", "4"});
  Counters around;
  Tracer all("compactsnoop", {"--json", "--strict", "-K"});
  Tracer text("compactsnoop", {"-e", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop();
  auto shown = text.stop_text();
  check_events(report, zones_of(truth));
  expect_scanned(report, truth, around);
  std::uint64_t direct = 0, succeeded = 0;
  for (auto& event : report.body) {
    if (event["pid"].i64() != workload.pid()) {
      EXPECT_NE(event["kind"].str(), "manual");
      continue;
    }
    direct++;
    succeeded += event["status"].str() == "success";
    EXPECT_EQ(event["kind"].str(), "direct");
    EXPECT_EQ(event["order"].i64(), 9);
    EXPECT_EQ(event["comm"].str(), "compaction");
    EXPECT_TRUE(has_frame(event, "compact_zone"));
    EXPECT_TRUE(has_frame(event, "try_to_compact_pages"));
  }
  // A stall is a run on each zone that promises something; none begins where a huge page has become
  // free meanwhile (compaction_suitable() says success).
  EXPECT_GE(direct * 2, truth["stalls"].u64());
  EXPECT_GT(truth["vmstat"]["compact_success"].u64(), 0u);
  EXPECT_GT(succeeded, 0u);

  static const std::regex row(
      R"(compaction +\d+ +\d+ +ZONE_[A-Z0-9]+ +9 +A?SYNC +-?\d\.\d{3}( +\d+){4} +\d+\.\d+ +[a-z_]+ +direct( +\d+){3} *)");
  std::istringstream lines(shown);
  std::string line;
  std::getline(lines, line);
  std::uint64_t rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, direct);
}

TOOL_TEST(Compactsnoop, Text) {
  require_tool("compactsnoop");
  const Strings plain{"COMM", "PID", "NODE", "ZONE", "ORDER", "MODE", "LAT(ms)", "STATUS"};
  const Strings extended{"COMM",    "PID",  "NODE",  "ZONE",  "ORDER", "MODE",
                         "FRAGIDX", "MIN",  "LOW",   "HIGH",  "FREE",  "LAT(ms)",
                         "STATUS",  "KIND", "MSCAN", "FSCAN", "MIGR"};
  Workload workload("compaction", kManual);
  Tracer usual("compactsnoop", {"-p", workload.id()}),
      more("compactsnoop", {"-e", "-p", workload.id()});
  Tracer timed("compactsnoop", {"-T", "-p", workload.id()}),
      csv("compactsnoop", {"--csv", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto rows = truth["begins_expected"].i64();
  auto check = [&](Tracer& tracer, const Strings& columns, const std::string& shape) {
    auto shown = tracer.stop_text();
    EXPECT_TRUE(safe_for_terminals(shown));
    EXPECT_EQ(words(shown), columns);
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), rows + 1) << shown;
    std::istringstream lines(shown);
    std::string line;
    std::getline(lines, line);
    const std::regex row(shape);
    while (std::getline(lines, line)) EXPECT_TRUE(std::regex_match(line, row)) << line;
  };
  const std::string begin = "compaction +" + workload.id() + R"( +\d+ +ZONE_[A-Z0-9]+ +-1 +SYNC +)";
  const std::string end = R"(\d+\.\d+ +[a-z_]+)";
  check(usual, plain, begin + end + " *");
  // No order: nothing to judge fragmentation by.
  check(more, extended, begin + R"(-( +\d+){4} +)" + end + R"( +manual( +\d+){3} *)");
  auto with_time = plain;
  with_time.insert(with_time.begin(), "TIME(s)");
  check(timed, with_time, R"(\d+\.\d{6} +)" + begin + end + " *");
  auto table = csv.stop_text();
  EXPECT_TRUE(table.starts_with("time,")) << table;
  EXPECT_EQ(std::count(table.begin(), table.end(), '\n'), rows + 1) << table;
}

const DeclareTests kCompactsnoop{{
    .name = "compactsnoop",
    .events = {"-e -K", "compaction --manual", true},
    .stress = {.workload = "compaction --manual --rounds {n}",
               .events = 10,
               .truth = "begins_expected",
               .tiny = "--ring-size 4096",
               .workloads = 1},
}};

}  // namespace
}  // namespace coretap::tooltest
