// extfrag against the kernel's own trace of the event, and its files in debugfs.
#include <span>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Fields of an event; the first six are the keys of a row.
constexpr const char* kKeys[] = {
    "alloc_migratetype", "fallback_migratetype", "alloc_order",     "fallback_order",
    "fragmenting",       "change_ownership",     "pageblock_order", "pfn"};
constexpr std::size_t kOrder = 2, kFragmenting = 4, kOfRows = 6, kFrame = 7;
using Fallback = std::vector<std::uint64_t>;
bool fragments(const Fallback& f) { return f[kFragmenting]; }

/// As printed in the kernel's trace; 5.10 writes page frames in decimal.
Fallback parse_traced(const Trace::Event& event) {
  Fallback all;
  for (auto* key : kKeys) all.push_back(std::stoull(event.value(key), nullptr, 0));
  return all;
}

struct Fallbacks : Trace {
  Fallbacks() : Trace("kmem/mm_page_alloc_extfrag") {}
  std::vector<Fallback> of(std::optional<pid_t> task = {}) const {
    std::vector<Fallback> all;
    for (auto& event : events(task)) all.push_back(parse_traced(event));
    return all;
  }
};

/// Names of migrate types by number, from the kernel's table.
std::map<std::string, std::uint64_t> migrate_types() {
  auto text = slurp("/proc/pagetypeinfo");
  const std::string title = "Number of blocks type";
  std::map<std::string, std::uint64_t> all;
  for (auto name : words(text.substr(text.find(title) + title.size()))) {
    std::ranges::transform(name, name.begin(), ::tolower);
    all.emplace(name, all.size());
  }
  return all;
}

Fallback parse_json(const Json& line, std::size_t keys) {
  static const auto types = migrate_types();
  Fallback all;
  for (auto* key : std::span(kKeys).first(keys)) {
    auto value = line[key];
    all.push_back(value.is_string()  ? types.at(value.str())
                  : value.is_count() ? value.u64()
                                     : value.boolean());
  }
  return all;
}

std::vector<Fallback> fallbacks_of(const Report& report) {
  std::vector<Fallback> all;
  for (auto& event : report.body) all.push_back(parse_json(event, std::size(kKeys)));
  return all;
}

/// Counts by row.
using Kinds = std::map<Fallback, std::uint64_t>;

Kinds kinds_of(std::vector<Fallback> fallbacks) {
  Kinds all;
  for (auto& f : fallbacks) {
    f.resize(kOfRows);
    all[f]++;
  }
  return all;
}

Kinds kinds_of(const std::vector<Json>& rows) {
  Kinds all;
  for (auto& row : rows)
    EXPECT_TRUE(all.emplace(parse_json(row, kOfRows), row["count"].u64()).second)
        << "two rows of one kind";
  return all;
}

using Condition = std::function<bool(const Fallback&)>;
std::vector<Fallback> those(std::vector<Fallback> all, const Condition& condition) {
  std::erase_if(all, [&](auto& f) { return !condition(f); });
  return all;
}

struct Span {
  std::string node, zone;
  std::uint64_t first, end;
};
/// Zones that have memory.
std::vector<Span> spans() {
  static const std::regex zone(
      R"(Node (\d+), zone +(\S+)|\n +spanned +(\d+)|\n +start_pfn: +(\d+))");
  auto text = slurp("/proc/zoneinfo");
  std::vector<Span> all;
  Span now{};
  std::uint64_t spanned = 0;
  for (std::sregex_iterator m(text.begin(), text.end(), zone), end; m != end; ++m) {
    if ((*m)[1].matched) now = {(*m)[1], (*m)[2], 0, 0};
    if ((*m)[3].matched) spanned = std::stoull((*m)[3]);
    if ((*m)[4].matched && spanned) {
      now.first = std::stoull((*m)[4]);
      now.end = now.first + spanned;
      all.push_back(now);
    }
  }
  return all;
}

const std::string kJson = "extfrag --json --strict ";
const std::string kWholeBlocks = "compaction --unmovable 16 --order 8 --whole";

// Whole page blocks change their type, which can happen on any machine.
TOOL_TEST(Extfrag, WholeBlocks) {
  Scene scene(kWholeBlocks, {});
  Fallbacks trace;
  std::vector<std::pair<std::string, Condition>> tables{
      {"-a -p {pid}", [](auto&) { return true; }},
      {"-a -P", [](auto&) { return true; }},
      {"-p {pid}", fragments},
      {"-a -o 8 -p {pid}", [](auto& f) { return f[kOrder] >= 8; }},
      {"-a --comm no-such-name", [](auto&) { return false; }}};
  auto zones = spans();
  for (auto& zone : zones)
    tables.emplace_back("-a -p {pid} -n " + zone.node + " -z ZONE_" + zone.zone, [zone](auto& f) {
      return f[kFrame] >= zone.first && f[kFrame] < zone.end;
    });
  for (auto& [options, condition] : tables) scene.trace(kJson + options);
  for (std::string options : {"-e -a -K -p {pid}", "-e", "-a -e -o 11 -p {pid}"})
    scene.trace(kJson + options);
  scene.trace("extfrag -a -e -T -p {pid}");
  scene.trace("extfrag -aep {pid} --raw");
  auto seen = scene.finish();
  trace.stop();
  auto truth = trace.of(static_cast<pid_t>(seen.pid));
  if (truth.empty()) throw Skip("this kernel found unmovable memory without falling back");

  std::size_t at = 0;
  for (auto& [options, condition] : tables) {
    SCOPED_TRACE(options);
    auto report = seen.report(at++);
    EXPECT_EQ(kinds_of(options == "-a -P" ? report.of_process(seen.pid) : report.body),
              kinds_of(those(truth, condition)));
  }
  auto events = seen.report(at++);
  EXPECT_EQ(fallbacks_of(events), truth);
  for (auto& event : events.body) {
    SCOPED_TRACE(event.text());
    expect_fields(event, {{"pid", seen.pid}, {"tid", seen.pid}, {"comm", "compaction"}});
    EXPECT_TRUE(has_frame(event, "kernel_stack", "packet_set")) << "it asks for a packet ring";
    auto pfn = event["pfn"].u64();
    EXPECT_TRUE(std::ranges::any_of(zones, [&](auto& zone) {
      return event["node"].text() == zone.node && event["zone"].str() == zone.zone &&
             pfn >= zone.first && pfn < zone.end;
    }));
  }
  for (auto& event : seen.report(at++).body) expect_fields(event, {{"fragmenting", true}});
  EXPECT_TRUE(seen.report(at++).body.empty());
  EXPECT_EQ(
      expect_table(
          seen.text(at++),
          "TIME(s) COMM PID NODE ZONE AORDER FORDER PBORDER AMIGTYPE FMIGTYPE FRAGMENTING "
          "OWNERSHIP",
          R"(\d+\.\d{6} +compaction +\d+ +\d+ +\w+ +\d+ +\d+ +\d+ +[a-z]+ +[a-z]+ +(yes|no) +(yes|no))"),
      truth.size());

  std::vector<Fallback> read;
  auto raw = lines(seen.text(at));
  for (auto line = raw.begin() + 1; line != raw.end(); ++line)
    read.push_back(parse_traced({.words = *line}));
  EXPECT_EQ(read, truth);
}

// The kernel's trace and the tool start one after another, and end in reverse order.
TOOL_TEST(Extfrag, AllThatTheKernelCounts) {
  auto workload = Workload::of(kWholeBlocks, {});
  Fallbacks outer;
  Tracer tracer("extfrag", "--json --strict -a --max-keys 4096");
  Fallbacks inner;
  workload.release();
  workload.truth();
  inner.stop();
  auto report = tracer.stop();
  outer.stop();
  auto most = outer.of().size();
  if (!most) throw Skip("nothing fell back");
  expect_within(report, {{"count", inner.of().size(), most}});
  EXPECT_EQ(report.sum("count"), report.ledger["shown"].u64());
}

// ---- the indices ----

/// "Node 0, zone   Normal" of a line.
std::string zone_of(const std::string& line) {
  static const std::regex begin(R"(Node \d+, zone +\S+)");
  std::smatch found;
  return std::regex_search(line, found, begin) ? found.str() : "";
}

/// As older kernels print the fragmentation index: no column for the sign.
std::string without_sign_column(const std::string& line) {
  auto numbers = zone_of(line).size();
  return line.substr(0, numbers) + std::regex_replace(line.substr(numbers), std::regex("  +"), " ");
}

void like_debugfs(const std::string& file, const std::string& option) {
  require_tool("extfrag");
  Mounted debugfs("debugfs");
  auto path = debugfs.path() + "/extfrag/" + file;
  if (!std::filesystem::exists(path)) throw Skip("this kernel has no debugfs extfrag");
  std::set<std::string> wanted, equal;
  std::string last;
  for (auto& line : lines(slurp(path))) wanted.insert(zone_of(line));
  ASSERT_FALSE(wanted.empty());
  // Memory changes all the time: a line counts if the kernel's is equal before and after.
  for (int i = 0; i < 200 && equal != wanted; i++) {
    auto before = lines(slurp(path)), ours = lines(output_of("extfrag " + option)),
         after = lines(slurp(path));
    ASSERT_EQ(ours.size(), after.size());
    for (std::size_t n = 0; n < ours.size(); n++) {
      if (before[n] != after[n]) continue;
      if (ours[n] == after[n] || without_sign_column(ours[n]) == after[n])
        equal.insert(zone_of(ours[n]));
      else
        last = ours[n] + "\n" + after[n];
    }
  }
  EXPECT_EQ(equal, wanted) << last;
}

TOOL_TEST(Extfrag, IndexLikeDebugfs) { like_debugfs("extfrag_index", "-i"); }
TOOL_TEST(Extfrag, UnusableLikeDebugfs) { like_debugfs("unusable_index", "-u"); }

// One workload for all options, as it takes seconds to fragment a machine's memory.
TOOL_TEST(Extfrag, Fragmenting) {
  Scene scene("compaction --unmovable 112 --order 0");
  Fallbacks trace;
  for (std::string options : {"-P", "-p {pid}", "-e -p {pid} --ring-size 8M"})
    scene.trace(kJson + options);
  scene.trace("extfrag -P --top 1");
  auto seen = scene.finish();
  trace.stop();
  auto truth = those(trace.of(static_cast<pid_t>(seen.pid)), fragments);
  if (truth.empty()) throw Skip("memory was not short enough to fragment a page block");
  EXPECT_EQ(kinds_of(seen.report(0).of_process(seen.pid)), kinds_of(truth));
  EXPECT_EQ(kinds_of(seen.report(1).body), kinds_of(truth));
  EXPECT_EQ(fallbacks_of(seen.report(2)), truth);
  EXPECT_EQ(lines(seen.text(3)).size(), 4u) << seen.text(3);  // time, titles, row, empty line
  like_debugfs("extfrag_index", "-i");
  like_debugfs("unusable_index", "-u");
  expect_contains(output_of("extfrag -i"), {" 0."});  // some order fails by fragmentation
}

// ---- migrate types and watermarks ----

/// Words of each line with migrate types: node, zone, type, numbers.
std::map<std::string, Strings> type_lines() {
  std::map<std::string, Strings> all;
  for (auto& line : complete_lines(slurp("/proc/pagetypeinfo"))) {
    auto cells = words(line);
    if (cells.size() < 7 || cells[4] != "type") continue;
    all[cells[1] + cells[3] + cells[5]] = Strings(cells.begin() + 6, cells.end());
  }
  return all;
}

// Memory changes all the time: a number is right if it is equal to the kernel's before or after,
// and some of them never stay the same for that long.
TOOL_TEST(Extfrag, TypesLikePagetypeinfo) {
  require_tool("extfrag");
  std::set<std::string> wanted, equal;
  for (auto& [name, numbers] : type_lines())
    for (std::size_t order = 0; order < numbers.size(); order++)
      wanted.insert(name + std::to_string(order));
  ASSERT_GE(wanted.size(), 30u);
  for (int i = 0; i < 20 && equal != wanted; i++) {
    auto before = type_lines();
    auto report = parse_report(output_of("extfrag --types --json"), "");
    auto after = type_lines();
    ASSERT_EQ(report.body.size(), after.size());
    // The lowest order at which a zone has a free block that is not unmovable.
    std::map<std::string, std::size_t> others;
    for (auto& row : report.body) {
      auto blocks = row["free_blocks"].items();
      auto& lowest = others.try_emplace(row["node"].text() + "," + row["zone"].str(), blocks.size())
                         .first->second;
      for (std::size_t order = 0; order < lowest && row["migratetype"].str() != "Unmovable";
           order++)
        if (blocks[order].u64()) lowest = order;
    }
    for (auto& row : report.body) {
      auto zone = row["node"].text() + "," + row["zone"].str();
      auto name = zone + "," + row["migratetype"].str();
      auto blocks = row["free_blocks"].items();
      ASSERT_TRUE(before.contains(name) && after.contains(name)) << name;
      ASSERT_EQ(blocks.size(), after[name].size());
      std::uint64_t alone = 0;
      for (std::size_t order = 0; order < blocks.size(); order++) {
        auto ours = blocks[order].text();
        auto is = [&](const std::string& theirs) { return theirs == ours || theirs == ">" + ours; };
        if (is(before[name][order]) || is(after[name][order]))
          equal.insert(name + std::to_string(order));
        if (row["migratetype"].str() == "Unmovable" && order < others.at(zone) && ours != "0")
          alone = others.at(zone);
      }
      EXPECT_EQ(row["unmovable_below_order"].is_null(), alone == 0) << row.text();
      if (alone) {
        EXPECT_EQ(row["unmovable_below_order"].u64(), alone);
      }
    }
  }
  EXPECT_GE(equal.size() * 10, wanted.size() * 9);
  // The text has the form of the file.
  auto known = type_lines();
  for (auto& line : complete_lines(output_of("extfrag --types"))) {
    auto cells = words(line);
    ASSERT_GT(cells.size(), 6u);
    EXPECT_TRUE(known.contains(cells[1] + cells[3] + cells[5])) << line;
  }
}

/// Of each zone with memory: free, min, low, high.
std::map<std::string, std::vector<std::uint64_t>> watermarks() {
  static const std::regex zone(
      R"(Node (\d+), zone +(\S+)\n(?:[^N][^\n]*\n)*? +pages free +(\d+)\n(?: +boost +\d+\n)? +min +(\d+)\n +low +(\d+)\n +high +(\d+)\n(?:[^N][^\n]*\n)*? +present +(\d+)\n)");
  auto text = slurp("/proc/zoneinfo");
  std::map<std::string, std::vector<std::uint64_t>> all;
  for (std::sregex_iterator m(text.begin(), text.end(), zone), end; m != end; ++m) {
    std::vector<std::uint64_t> numbers;
    for (std::size_t i = 3; i < 7; i++) numbers.push_back(std::stoull((*m)[i]));
    if ((*m)[7] != "0") all[(*m)[1].str() + "," + (*m)[2].str()] = numbers;
  }
  return all;
}

TOOL_TEST(Extfrag, WatermarksOfTheKernel) {
  require_tool("extfrag");
  const bool compacts = std::filesystem::exists("/proc/sys/vm/extfrag_threshold");
  auto before = watermarks();
  auto index = parse_report(output_of("extfrag -i --json"), "");
  auto report = parse_report(output_of("extfrag -w --json"), "");
  auto later = parse_report(output_of("extfrag -i --json"), "");
  auto after = watermarks();
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(report.body.size(), before.size());
  std::size_t checked = 0;
  for (auto& row : report.body) {
    SCOPED_TRACE(row.text());
    auto name = row["node"].text() + "," + row["zone"].str();
    ASSERT_TRUE(before.contains(name) && after.contains(name));
    auto &first = before[name], &last = after[name];
    // Memory changes all the time.
    const auto slack = std::max(first[0], last[0]) / 4 + 1024;
    EXPECT_GE(row["free_pages"].u64() + slack, std::min(first[0], last[0]));
    EXPECT_LE(row["free_pages"].u64(), std::max(first[0], last[0]) + slack);
    EXPECT_EQ(row["min_pages"].u64(), last[1]);
    EXPECT_EQ(row["low_pages"].u64(), last[2]);
    EXPECT_EQ(row["high_pages"].u64(), last[3]);
    EXPECT_EQ(row["extfrag_threshold"].is_null(), !compacts);
    if (compacts) {
      EXPECT_DOUBLE_EQ(row["extfrag_threshold"].real(),
                       std::stod(slurp("/proc/sys/vm/extfrag_threshold")) / 1000);
    }
    // A free block is there if, and only if, the index says that the allocation succeeds.
    auto of_zone = [&](const Report& indices) {
      return line_with(indices.body, {{"node", row["node"].u64()},
                                      {"zone", row["zone"].str()}})["fragmentation_indices"]
          .items();
    };
    auto here = of_zone(index), there = of_zone(later);
    auto steps = row["steps"].items();
    ASSERT_EQ(steps.size(), here.size());
    for (std::size_t order = 0; order < steps.size(); order++) {
      auto step = steps[order].str();
      EXPECT_TRUE(step == "enough" || step == "kswapd" || step == "compact" || step == "reclaim");
      if (here[order].text() != there[order].text()) continue;
      checked++;
      if (step == "enough" || step == "kswapd") {
        EXPECT_DOUBLE_EQ(here[order].real(), -1) << order;
      } else if (step == "compact") {
        EXPECT_TRUE(order && (order <= 3 || here[order].real() == -1 ||
                              here[order].real() > row["extfrag_threshold"].real()))
            << order;
      }
    }
  }
  EXPECT_GT(checked, 0u);
  EXPECT_EQ(expect_table(output_of("extfrag -w"), "NODE ZONE FREE MIN LOW HIGH THRESHOLD BY-ORDER",
                         R"(\d+ +\w+( +\d+){4} +\d\.\d{3} +0(-\d+)? [a-z]+.*)"),
            before.size());
}

TOOL_TEST(Extfrag, IndexEachInterval) {
  auto zones = lines(slurp("/proc/buddyinfo")).size();
  auto report = parse_report(output_of("extfrag -i --json 0.05 3"), "");
  EXPECT_EQ(report.body.size(), 3 * zones);
  EXPECT_EQ(report.ledger["shown"].u64(), 3 * zones);
  EXPECT_TRUE(report.header["hooks"].items().empty());
  auto text = output_of("extfrag -u -T 0.05 2");
  EXPECT_EQ(lines(text).size(), 2 * (zones + 1) + 1) << text;
  EXPECT_TRUE(std::regex_search(text, std::regex(R"(^\d\d:\d\d:\d\d\n)"))) << text;
  EXPECT_EQ(lines(output_of("extfrag -i -n 0 -z " + spans().at(0).zone)).size(), 1u);
  expect_contains(output_of("extfrag -i --explain"), {"/proc/buddyinfo"});
}

TESTS_OF(extfrag,
         .reports = {{ReportKind::aggregate},
                     {ReportKind::events, {"-e"}},
                     {ReportKind::snapshot, {"-i"}}},
         .events = {"-a -P", "compaction --unmovable 16 --order 8 --whole"},
         .stress = count_row("compaction --unmovable {n} --order 8 --whole", 16, "count", {},
                             "-a -P")
                       .of_one_workload()
                       .by_kernel_event("kmem/mm_page_alloc_extfrag"),
         .long_run = {{.arguments = "-P 10"}});

}  // namespace
}  // namespace coretap::tooltest
