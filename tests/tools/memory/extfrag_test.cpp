// extfrag against the kernel's own trace of the event, and its files in debugfs.
#include <grp.h>
#include <sys/mount.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <tuple>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Page frame, orders (of the allocation, the block, page blocks), types (of the allocation, of the
/// block), fragmenting, change_ownership.
using Fallback = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                            std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t>;
std::uint64_t pfn_of(const Fallback& f) { return std::get<0>(f); }
std::uint64_t order_of(const Fallback& f) { return std::get<1>(f); }
bool fragments(const Fallback& f) { return std::get<6>(f); }

/// In the words of the kernel's trace output; 5.10 writes page frames in decimal.
Fallback parse_traced(const std::string& text) {
  auto number = [&](const char* key) {
    auto at = text.find(std::string(key) + '=');
    if (at == std::string::npos) throw std::runtime_error(key + (": " + text));
    return std::strtoull(text.c_str() + at + std::strlen(key) + 1, nullptr, 0);
  };
  return {number("pfn"),
          number("alloc_order"),
          number("fallback_order"),
          number("pageblock_order"),
          number("alloc_migratetype"),
          number("fallback_migratetype"),
          number("fragmenting"),
          number("change_ownership")};
}

struct Fallbacks : Trace {
  Fallbacks() : Trace("kmem/mm_page_alloc_extfrag") {}
  std::vector<Fallback> of(std::optional<pid_t> task = {}) const {
    std::vector<Fallback> all;
    for (auto& line : lines(task)) all.push_back(parse_traced(line));
    return all;
  }
  std::uint64_t count() const { return lines().size(); }
};

/// Names of migrate types by number, as the kernel's own table has them.
std::map<std::string, std::uint64_t> migrate_types() {
  auto text = slurp("/proc/pagetypeinfo");
  const std::string title = "Number of blocks type";
  std::istringstream words(text.substr(text.find(title) + title.size()));
  std::string line;
  std::getline(words, line);
  std::istringstream names(line);
  std::map<std::string, std::uint64_t> all;
  for (std::string name; names >> name;) {
    std::ranges::transform(name, name.begin(), ::tolower);
    all.emplace(name, all.size());
  }
  return all;
}

Fallback parse_event(const Json& event) {
  static const auto types = migrate_types();
  auto type = [&](const char* key) { return types.at(event[key].str()); };
  return {event["pfn"].u64(),
          event["alloc_order"].u64(),
          event["fallback_order"].u64(),
          event["pageblock_order"].u64(),
          type("alloc_migratetype"),
          type("fallback_migratetype"),
          event["fragmenting"].boolean(),
          event["change_ownership"].boolean()};
}

/// What a row of the table tells apart.
using Kind = std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, bool, bool>;
using Kinds = std::map<Kind, std::uint64_t>;

Kinds kinds_of(const std::vector<Fallback>& fallbacks) {
  Kinds all;
  for (auto& [pfn, order, from, block, type, other, fragmenting, ownership] : fallbacks)
    all[{type, other, order, from, fragmenting, ownership}]++;
  return all;
}

Kinds kinds_of(const Report& report, std::optional<pid_t> pid = {}) {
  static const auto types = migrate_types();
  Kinds all;
  for (auto& row : report.body) {
    if (pid && row["pid"].i64() != *pid) continue;
    auto& count =
        all[{types.at(row["alloc_migratetype"].str()), types.at(row["fallback_migratetype"].str()),
             row["alloc_order"].u64(), row["fallback_order"].u64(), row["fragmenting"].boolean(),
             row["change_ownership"].boolean()}];
    EXPECT_EQ(count, 0u) << "two rows of one kind";
    count = row["count"].u64();
  }
  return all;
}

std::vector<Fallback> events_of(const Report& report) {
  std::vector<Fallback> all;
  for (auto& event : report.body) all.push_back(parse_event(event));
  return all;
}

template <class Condition>
std::vector<Fallback> those(std::vector<Fallback> all, Condition condition) {
  std::erase_if(all, [&](auto& f) { return !condition(f); });
  return all;
}

struct Span {
  std::uint64_t node;
  std::string zone;
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
    if ((*m)[1].matched) now = {std::stoull((*m)[1]), (*m)[2], 0, 0};
    if ((*m)[3].matched) spanned = std::stoull((*m)[3]);
    if ((*m)[4].matched && spanned) {
      now.first = std::stoull((*m)[4]);
      now.end = now.first + spanned;
      all.push_back(now);
    }
  }
  return all;
}

std::unique_ptr<Tracer> start(Strings options) {
  options.insert(options.begin(), {"--json", "--strict"});
  return std::make_unique<Tracer>("extfrag", options);
}

bool has_frame(const Json& event, std::string_view part) {
  auto frames = event["kernel_stack"].strings();
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

// Whole page blocks change their type: that is possible on any machine.
TOOL_TEST(Extfrag, WholeBlocks) {
  require_tool("extfrag");
  Workload workload("compaction", {"--unmovable", "16", "--order", "8", "--whole"});
  Fallbacks trace;
  auto id = workload.id();
  auto all = start({"-e", "-a", "-K", "-p", id}), table = start({"-a", "-p", id}),
       processes = start({"-a", "-P"}), usual = start({"-p", id}), usual_events = start({"-e"}),
       large = start({"-a", "-o", "8", "-p", id}), none = start({"-a", "-e", "-o", "11", "-p", id}),
       other = start({"-a", "--comm", "no-such-name"});
  std::vector<std::pair<Span, std::unique_ptr<Tracer>>> zones;
  for (auto& span : spans())
    zones.emplace_back(
        span, start({"-a", "-p", id, "-n", std::to_string(span.node), "-z", "ZONE_" + span.zone}));
  Tracer text("extfrag", {"-a", "-e", "-T", "-p", id}), raw("extfrag", {"-aep", id, "--raw"});
  workload.release();
  workload.truth();
  trace.stop();
  auto truth = trace.of(workload.pid());
  if (truth.empty()) throw Skip("this kernel found unmovable memory without falling back");

  auto events = all->stop();
  EXPECT_EQ(events_of(events), truth);
  for (auto& event : events.body) {
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["tid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "compaction");
    EXPECT_TRUE(has_frame(event, "packet_set")) << "a packet ring is what it asks for";
    auto pfn = event["pfn"].u64();
    bool found = false;
    for (auto& [span, tracer] : zones)
      found |= event["node"].u64() == span.node && event["zone"].str() == span.zone &&
               pfn >= span.first && pfn < span.end;
    EXPECT_TRUE(found) << pfn << event["zone"].str();
  }
  auto kinds = kinds_of(truth);
  EXPECT_EQ(kinds_of(table->stop()), kinds);
  EXPECT_EQ(kinds_of(processes->stop(), workload.pid()), kinds);
  EXPECT_EQ(kinds_of(usual->stop()), kinds_of(those(truth, fragments)));
  for (auto& event : usual_events->stop().body) EXPECT_TRUE(event["fragmenting"].boolean());
  EXPECT_EQ(kinds_of(large->stop()),
            kinds_of(those(truth, [](auto& f) { return order_of(f) >= 8; })));
  EXPECT_TRUE(none->stop().body.empty());
  EXPECT_TRUE(other->stop().body.empty());
  for (auto& [span, tracer] : zones) {
    SCOPED_TRACE(span.zone);
    auto here =
        those(truth, [&](auto& f) { return pfn_of(f) >= span.first && pfn_of(f) < span.end; });
    EXPECT_EQ(kinds_of(tracer->stop()), kinds_of(here));
  }

  static const std::regex row(
      R"(\d+\.\d{6} +compaction +\d+ +\d+ +\w+ +\d+ +\d+ +\d+ +[a-z]+ +[a-z]+ +(yes|no) +(yes|no))");
  std::istringstream lines(text.stop_text());
  std::string line;
  std::getline(lines, line);
  EXPECT_TRUE(
      std::regex_match(line, std::regex("TIME\\(s\\) +COMM +PID +NODE +ZONE +AORDER +FORDER "
                                        "+PBORDER +AMIGTYPE +FMIGTYPE +FRAGMENTING "
                                        "+OWNERSHIP")))
      << line;
  std::size_t rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, truth.size());

  std::vector<Fallback> read;
  std::istringstream traced(raw.stop_text());
  std::getline(traced, line);
  while (std::getline(traced, line)) read.push_back(parse_traced(line));
  EXPECT_EQ(read, truth);
}

// One after the other of ours and the kernel's begin, and end in the other order.
TOOL_TEST(Extfrag, AllThatTheKernelCounts) {
  require_tool("extfrag");
  Workload workload("compaction", {"--unmovable", "16", "--order", "8", "--whole"});
  Fallbacks outer;
  auto tracer = start({"-a", "--max-keys", "4096"});
  Fallbacks inner;
  workload.release();
  workload.truth();
  inner.stop();
  auto report = tracer->stop();
  outer.stop();
  if (!outer.count()) throw Skip("nothing fell back");
  EXPECT_GE(report.sum("count"), inner.count());
  EXPECT_LE(report.sum("count"), outer.count());
  EXPECT_EQ(report.sum("count"), report.ledger["shown"].u64());
}

// ---- the indices ----

Strings lines_of(const std::string& text) {
  Strings all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(line);
  return all;
}

/// "Node 0, zone   Normal" of a line.
std::string zone_of(const std::string& line) {
  static const std::regex begin(R"(Node \d+, zone +\S+)");
  std::smatch found;
  return std::regex_search(line, found, begin) ? found.str() : "";
}

/// As older kernels write the fragmentation index: no column for the sign.
std::string without_sign_column(const std::string& line) {
  auto numbers = zone_of(line).size();
  return line.substr(0, numbers) + std::regex_replace(line.substr(numbers), std::regex("  +"), " ");
}

void like_debugfs(const std::string& file, const char* option) {
  require_tool("extfrag");
  Mounted debugfs("debugfs");
  auto path = debugfs.path() + "/extfrag/" + file;
  if (!std::filesystem::exists(path)) throw Skip("this kernel has no debugfs extfrag");
  std::set<std::string> wanted, equal;
  std::string last;
  for (auto& line : lines_of(slurp(path))) wanted.insert(zone_of(line));
  ASSERT_FALSE(wanted.empty());
  // Memory changes all the time: a line counts when the kernel's is the same before and after.
  for (int i = 0; i < 200 && equal != wanted; i++) {
    auto before = lines_of(slurp(path));
    auto ours = run({tool_path("extfrag"), option});
    ASSERT_EQ(ours.status, 0) << ours.err;
    EXPECT_EQ(ours.err, "");
    auto after = lines_of(slurp(path)), all = lines_of(ours.out);
    ASSERT_EQ(all.size(), after.size());
    for (std::size_t n = 0; n < all.size(); n++)
      if (before[n] == after[n] && (all[n] == after[n] || without_sign_column(all[n]) == after[n]))
        equal.insert(zone_of(all[n]));
      else if (before[n] == after[n])
        last = all[n] + "\n" + after[n];
  }
  EXPECT_EQ(equal, wanted) << last;
}

TOOL_TEST(Extfrag, IndexLikeDebugfs) { like_debugfs("extfrag_index", "-i"); }
TOOL_TEST(Extfrag, UnusableLikeDebugfs) { like_debugfs("unusable_index", "-u"); }

// To fragment a machine's memory takes seconds: one workload for all of it.
TOOL_TEST(Extfrag, Fragmenting) {
  require_tool("extfrag");
  Workload workload("compaction", {"--unmovable", "112", "--order", "0"}, kLinger);
  Fallbacks trace;
  auto id = workload.id();
  auto usual = start({"-P"}), table = start({"-p", id}),
       events = start({"-e", "-p", id, "--ring-size", "8M"});
  Tracer text("extfrag", {"-P", "--top", "1"});
  workload.release();
  workload.truth();
  trace.stop();
  auto truth = those(trace.of(workload.pid()), fragments);
  if (truth.empty()) throw Skip("memory was not short enough to fragment a page block");
  EXPECT_EQ(kinds_of(usual->stop(), workload.pid()), kinds_of(truth));
  EXPECT_EQ(kinds_of(table->stop()), kinds_of(truth));
  EXPECT_EQ(events_of(events->stop()), truth);
  like_debugfs("extfrag_index", "-i");
  like_debugfs("unusable_index", "-u");
  auto index = run({tool_path("extfrag"), "-i"});
  EXPECT_TRUE(contains(index.out, " 0.")) << "some order would fail for fragmentation:\n"
                                          << index.out;
  workload.end_lingering();
  auto shown = text.stop_text();
  EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), 4) << shown;  // time, titles, row, none
}

/// The numbers of each line of text.
std::vector<double> numbers(const std::string& line) {
  std::istringstream words(line.substr(zone_of(line).size()));
  std::vector<double> all;
  for (double number; words >> number;) all.push_back(number);
  return all;
}

TOOL_TEST(Extfrag, IndexAsData) {
  auto orders = numbers(lines_of(slurp("/proc/buddyinfo")).at(0)).size();
  auto zones = lines_of(slurp("/proc/buddyinfo")).size();
  auto tool = tool_path("extfrag");
  for (auto& [option, key] :
       {std::pair{"-i", "fragmentation_indices"}, {"-u", "unusable_indices"}}) {
    SCOPED_TRACE(option);
    bool same = false;
    for (int i = 0; i < 200 && !same; i++) {
      auto before = run({tool, option}), json = run({tool, option, "--json"}),
           csv = run({tool, option, "--csv"}), after = run({tool, option});
      if (before.out != after.out) continue;
      auto report = parse_report(json.out, json.err);
      auto text = lines_of(before.out), table = lines_of(csv.out);
      ASSERT_EQ(text.size(), zones);
      ASSERT_EQ(report.body.size(), zones);
      ASSERT_EQ(table.size(), zones + 1);
      EXPECT_TRUE(table[0].starts_with("time,node,zone,order_0,order_1,")) << table[0];
      same = true;
      for (std::size_t n = 0; n < zones; n++) {
        auto expected = numbers(text[n]);
        EXPECT_EQ(expected.size(), orders);
        std::vector<double> found;
        for (auto& value : report.body[n][key].items()) found.push_back(value.real());
        std::istringstream cells(table[n + 1]);
        std::vector<double> of_csv;
        std::string cell;
        for (int skipped = 0; skipped < 3; skipped++) std::getline(cells, cell, ',');
        while (std::getline(cells, cell, ',')) of_csv.push_back(std::stod(cell));
        same &= found == expected && of_csv == expected;
        EXPECT_TRUE(contains(text[n], report.body[n]["zone"].str()));
      }
    }
    EXPECT_TRUE(same) << "never the same twice";
  }
}

TOOL_TEST(Extfrag, IndexEachInterval) {
  auto tool = tool_path("extfrag");
  auto zones = lines_of(slurp("/proc/buddyinfo")).size();
  auto json = run({tool, "-i", "--json", "0.05", "3"});
  EXPECT_EQ(json.status, 0) << json.err;
  auto report = parse_report(json.out, json.err);
  EXPECT_EQ(report.body.size(), 3 * zones);
  EXPECT_EQ(report.ledger["shown"].u64(), 3 * zones);
  EXPECT_TRUE(report.header["hooks"].items().empty());
  auto text = run({tool, "-u", "-T", "0.05", "2"});
  EXPECT_EQ(lines_of(text.out).size(), 2 * (zones + 1) + 1) << text.out;
  EXPECT_TRUE(std::regex_search(text.out, std::regex(R"(^\[\d\d:\d\d:\d\d\]\n)"))) << text.out;
  auto one = run({tool, "-i", "-z", spans().at(0).zone, "-n", "0"});
  EXPECT_EQ(lines_of(one.out).size(), 1u) << one.out;
  // It goes on until it is asked to end, and says no more then.
  Process endless({.argv = {tool, "-i", "0.05"}});
  ASSERT_TRUE(endless.await([](auto& out, auto&) { return contains(out, "\n\n"); }));
  endless.signal(SIGINT);
  EXPECT_EQ(endless.wait(), 0) << endless.err();
  EXPECT_TRUE(contains(run({tool, "-i", "--explain"}).out, "/proc/buddyinfo"));
  EXPECT_EQ(run({tool, "-i"}, {}, "/dev/full").status, 1);
}

TOOL_TEST(Extfrag, IndexForAnybody) {
  auto become_nobody = [] {
    constexpr uid_t kNobody = 65534;
    if (::setgroups(0, nullptr) || ::setresgid(kNobody, kNobody, kNobody) ||
        ::setresuid(kNobody, kNobody, kNobody))
      ::_exit(126);
  };
  for (auto* option : {"-i", "-u"}) {
    auto result = run({tool_path("extfrag"), option}, become_nobody);
    if (result.status >= 126) throw Skip("cannot give up rights here: " + result.err);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(lines_of(result.out).size(), lines_of(slurp("/proc/buddyinfo")).size());
  }
}

TOOL_TEST(Extfrag, WrongCommandLines) {
  auto zone = spans().at(0).zone;
  for (auto& [words, told] :
       std::vector<std::pair<Strings, std::string>>{{{"-z", "Nowhere\x1b"}, zone},
                                                    {{"-z", ""}, zone},
                                                    {{"-n", "4095"}, "there are: 0"},
                                                    {{"-n", "x"}, "there are: 0"},
                                                    {{"-n", "-1"}, "there are: 0"},
                                                    {{"-o", "x"}, "--order"},
                                                    {{"-i", "-u"}, "used together"},
                                                    {{"-e", "-i"}, "used together"},
                                                    {{"-i", "-p", "1"}, "whole machine"},
                                                    {{"-i", "--", "true"}, "whole machine"},
                                                    {{"-i", "-a"}, "--all"},
                                                    {{"-u", "-o", "3"}, "--order"},
                                                    {{"-i", "--top", "3"}, "--top"},
                                                    {{"-e", "-P"}, "--process"},
                                                    {{"-K"}, "--events"},
                                                    {{"--raw"}, "--events"},
                                                    {{"-e", "--raw", "--json"}, "used together"},
                                                    {{"--sort", "pid"}, "count"}}) {
    SCOPED_TRACE(::testing::PrintToString(words));
    auto argv = words;
    argv.insert(argv.begin(), tool_path("extfrag"));
    auto result = run(argv);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, told)) << result.err;
    EXPECT_TRUE(safe_for_terminals(result.err));
  }
}

const DeclareTests kExtfrag{{
    .name = "extfrag",
    .reports = {{ReportKind::aggregate},
                {ReportKind::events, {"-e"}},
                {ReportKind::snapshot, {"-i"}}},
    .events = {"-a -P", "compaction --unmovable 16 --order 8 --whole"},
    .stress = {.workload = "compaction --unmovable {n} --order 8 --whole",
               .events = 16,
               .options = "-a -P",
               .shown = "count",
               .truth = nullptr,
               .tiny = "--max-keys 1",
               .workloads = 1,
               .kernel_event = "kmem/mm_page_alloc_extfrag"},
    .long_run = {{.arguments = "-P 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
