// drsnoop against the kernel's own counters of reclaim, of the machine and of a memory cgroup.
#include <algorithm>
#include <filesystem>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::vector<Json> of_kind(const Report& report, const char* kind) {
  std::vector<Json> found;
  for (auto& event : report.body)
    if (event["kind"].str() == kind) found.push_back(event);
  return found;
}

std::uint64_t reclaimed(const std::vector<Json>& events) {
  std::uint64_t pages = 0;
  for (auto& event : events) pages += event["reclaimed_pages"].u64();
  return pages;
}

/// What holds for every event.
void check_events(const Report& report) {
  for (auto& event : report.body) {
    EXPECT_EQ(event["type"].str(), "event");
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    EXPECT_LT(event["latency_ns"].u64(), std::uint64_t(1e9) * kPatience.count());
    EXPECT_GE(event["order"].i64(), 0);
    EXPECT_TRUE(contains(event["gfp_flags"].str(), "GFP_")) << event["gfp_flags"].str();
    EXPECT_GT(event["free_kb"].u64(), 0u);
    EXPECT_TRUE(std::filesystem::exists("/sys/devices/system/node/node" +
                                        std::to_string(event["node"].u64())) ||
                event["node"].u64() == 0);
  }
}

void expect_all_from(const Report& report, std::uint64_t pid) {
  for (auto& event : report.body) {
    EXPECT_EQ(event["pid"].u64(), pid);
    EXPECT_EQ(event["comm"].str(), "reclaim");
    EXPECT_EQ(event["uid"].u64(), 0u);
    EXPECT_NE(event["tid"].u64(), pid) << "its threads are what needs memory";
  }
}

bool has_frame(const Json& event, std::string_view part) {
  auto frames = event["kernel_stack"].strings();
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

// ---- the whole machine ----

/// Calls of its programs that the kernel left out because the program was under way on that CPU: a
/// kernel that lets itself be preempted in tracepoints does so when another task comes to the same.
std::uint64_t skipped_calls(Tracer& tracer) {
  std::uint64_t calls = 0;
  auto directory = "/proc/" + std::to_string(tracer.process().pid()) + "/fdinfo";
  for (auto& entry : std::filesystem::directory_iterator(directory)) {
    std::istringstream lines(slurp(entry.path().string()));
    for (std::string key, value; lines >> key >> value;)
      if (key == "recursion_misses:") calls += std::stoull(value);
  }
  return calls;
}

// One workload for all of it: to fill a machine's memory takes seconds.
TOOL_TEST(Drsnoop, DirectReclaimOfTheMachine) {
  require_tool("drsnoop");
  Workload workload("reclaim", {"--events", "20"});
  auto worker = workload.ready()["worker_pid"].u64();
  const Strings room{"--ring-size", "4M"};  // hundreds come at once when a minimum is raised
  auto with = [&](Strings options) {
    options.insert(options.end(), room.begin(), room.end());
    return std::make_unique<Tracer>("drsnoop", options);
  };
  Counters around;
  // The kernel counts what tracers reclaim as well.
  auto all = with({"--json", "-K", "--include-self"}),
       own = with({"--json", "-p", std::to_string(worker)});
  auto main_thread = with({"--json", "-t", std::to_string(worker)});
  auto text = with({"-T", "-U", "-e", "-n", "reclaim"});
  workload.release();
  auto truth = workload.truth();
  std::uint64_t skipped = 0, skipped_here = skipped_calls(*all);
  for (auto* tracer : {all.get(), own.get(), main_thread.get(), text.get()})
    skipped += skipped_calls(*tracer);
  auto report = all->stop(), filtered = own->stop(), of_main = main_thread->stop();
  auto shown = text->stop_text();
  auto direct = of_kind(report, "direct");
  check_events(report);
  EXPECT_EQ(direct.size(), report.body.size()) << "nothing else without --memcg";
  for (auto& event : direct) EXPECT_TRUE(has_frame(event, "try_to_free_pages"));

  // The kernel counts a stall again when it starts over because all of a try freed nothing, which
  // is rare while there is page cache.
  auto stalls = truth["vmstat"]["allocstall"].u64(), pages = reclaimed(direct);
  ASSERT_GT(stalls, 0u);
  EXPECT_GT(direct.size(), 0u);
  EXPECT_LE(direct.size(), around.growth("allocstall*"));
  // What slab caches and inodes gave back is the task's as well, and in no pgsteal: a page of them
  // takes an object that was scanned, but for a slab that happened to become empty on the way.
  EXPECT_LE(pages, around.growth("pgsteal_direct") + around.growth("pginodesteal") +
                       around.growth("slabs_scanned") + direct.size());
  if (report.ledger["data_lost"].boolean()) {
    // A skipped begin leaves an end of its own unseen, and the other way round.
    auto missing = report.lost("lost") + report.lost("untracked") + report.lost("unmatched") +
                   report.lost("missed");
    EXPECT_GE(direct.size() + missing + stalls / 5, stalls);
  } else {
    EXPECT_EQ(skipped_here, 0u) << "the kernel left calls out and the ledger does not tell";
    EXPECT_GE(direct.size() + stalls / 10, stalls);
    EXPECT_GE(pages, truth["vmstat"]["pgsteal_direct"].u64());
  }

  auto of_worker = [&](const char* key) {
    return static_cast<std::size_t>(std::count_if(
        direct.begin(), direct.end(), [&](auto& event) { return event[key].u64() == worker; }));
  };
  check_events(filtered);
  for (auto& event : filtered.body) EXPECT_EQ(event["pid"].u64(), worker);
  for (auto& event : of_main.body) EXPECT_EQ(event["tid"].u64(), worker);
  auto named = std::count_if(direct.begin(), direct.end(),
                             [&](auto& event) { return event["comm"].str() == "reclaim"; });
  if (!skipped) {  // else each of the tracers saw a little less, and not the same
    EXPECT_EQ(filtered.body.size(), of_worker("pid"));
    EXPECT_EQ(of_main.body.size(), of_worker("tid"));
    EXPECT_EQ(std::count(shown.begin(), shown.end(), '\n'), named + 1) << shown;
  }
  static const std::regex row(
      R"(\d+\.\d{6} +\d+ +reclaim +\d+ +\d+\.\d+ +\d+ +\d+ +\d+ +direct +\d+ +\d+ +\S*GFP_\S+ *)");
  std::istringstream lines(shown);
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line)) EXPECT_TRUE(std::regex_match(line, row)) << line;
}

// ---- a memory cgroup ----

// Of two, the first has switched the controller on and switches it off when it is done: it must end
// last.
struct Memcg {
  Workload workload{"reclaim", {"--memcg"}};
  std::uint64_t worker = workload.ready()["worker_pid"].u64();
  Strings filter{"-p", std::to_string(worker)};
};

/// The stalls that the cgroup counted. A charge that did not fit is one more failure for version 1
/// even where another attempt, or none, followed: only an upper bound.
void expect_stalls(const Report& report, const Json& truth) {
  auto memcg = truth["memcg"];
  auto events = of_kind(report, "memcg");
  EXPECT_EQ(events.size(), report.body.size()) << "there is memory enough";
  EXPECT_GT(events.size(), 0u);
  if (memcg["version"].u64() == 1) {
    EXPECT_LE(events.size(), memcg["failcnt"].u64());
    EXPECT_GT(reclaimed(events), 0u);
  } else {
    EXPECT_EQ(events.size(), memcg["max_events"].u64());
    EXPECT_GE(reclaimed(events), memcg["pgsteal"].u64());
  }
}

TOOL_TEST(Drsnoop, ReclaimOfAMemoryCgroup) {
  require_tool("drsnoop");
  Memcg m;
  Tracer stacks("drsnoop", {"--json", "--strict", "-M", "-K", m.filter[0], m.filter[1]});
  Tracer without("drsnoop", {"--json", "--strict", m.filter[0], m.filter[1]});
  Tracer everybody("drsnoop", {"--json", "--strict", "--memcg"});
  m.workload.release();
  auto truth = m.workload.truth();
  auto report = stacks.stop();
  check_events(report);
  expect_all_from(report, m.worker);
  expect_stalls(report, truth);
  std::uint64_t took = 0;
  for (auto& event : report.body) {
    took += event["latency_ns"].u64();
    EXPECT_TRUE(has_frame(event, "try_to_free_mem_cgroup_pages"));
    EXPECT_FALSE(has_frame(event, "bpf_")) << "our own frames are left out";
  }
  EXPECT_LE(took, truth["took_ns"].u64()) << "one thread reclaims";
  EXPECT_EQ(of_kind(without.stop(), "memcg").size(), 0u);
  std::uint64_t same = 0;
  for (auto& event : everybody.stop().body)
    same += event["pid"].u64() == m.worker && event["kind"].str() == "memcg";
  EXPECT_EQ(same, report.body.size());
}

TOOL_TEST(Drsnoop, Filters) {
  require_tool("drsnoop");
  Memcg wanted;
  Workload other("reclaim", {"--memcg", "--comm", "rc-other"});
  auto with = [](Strings options) {
    options.insert(options.begin(), {"--json", "--strict", "-M"});
    return std::make_unique<Tracer>("drsnoop", options);
  };
  auto own = with(wanted.filter), name = with({"-n", "reclaim"}), user = with({"-u", "0"});
  auto nobody = with({"-u", "54321"}), no_name = with({"-n", "rc-nobody"});
  // The thread that only waits for those that need memory.
  auto waiting = with({"-t", std::to_string(wanted.worker)});
  other.release();
  other.truth();
  wanted.workload.release();
  auto truth = wanted.workload.truth();
  auto report = own->stop();
  expect_stalls(report, truth);
  expect_all_from(report, wanted.worker);
  auto named = name->stop();
  expect_stalls(named, truth);
  expect_all_from(named, wanted.worker);
  EXPECT_GT(user->stop().body.size(), report.body.size());
  EXPECT_TRUE(nobody->stop().body.empty());
  EXPECT_TRUE(no_name->stop().body.empty());
  EXPECT_TRUE(waiting->stop().body.empty());
}

TOOL_TEST(Drsnoop, OnlyTasksOfACgroup) {
  require_tool("drsnoop");
  Memcg wanted, other;
  // Version 2 counts in the hierarchy that filters: there the workload has a cgroup of its own.
  std::string where;
  std::istringstream membership(slurp("/proc/" + std::to_string(wanted.worker) + "/cgroup"));
  for (std::string line; std::getline(membership, line);)
    if (line.starts_with("0::/")) where = line.substr(3);
  std::unique_ptr<Cgroup> ours;
  if (!contains(where, "workload-")) {
    ours = std::make_unique<Cgroup>();
    ours->add(static_cast<pid_t>(wanted.worker));
    where = ours->path();
  }
  Tracer tracer("drsnoop", {"--json", "--strict", "-M", "-c", where});
  other.workload.release();
  other.workload.truth();
  wanted.workload.release();
  auto truth = wanted.workload.truth();
  auto report = tracer.stop();
  expect_stalls(report, truth);
  expect_all_from(report, wanted.worker);
}

TOOL_TEST(Drsnoop, FollowsACommand) {
  require_tool("drsnoop");
  Tracer tracer("drsnoop", {"--json", "--strict", "-M", "--", workload_path("reclaim"), "--memcg"},
                {.attached = false});
  int status = tracer.process().wait();
  ASSERT_EQ(status, 0) << tracer.process().err();
  auto report = parse_report(tracer.process().out(), tracer.process().err());
  if (!report.truth) throw Skip(report.err);
  check_events(report);
  expect_stalls(report, *report.truth);
  expect_all_from(report, (*report.truth)["worker_pid"].u64());
}

// ---- output ----

TOOL_TEST(Drsnoop, Columns) {
  require_tool("drsnoop");
  EXPECT_EQ(header_of("drsnoop", {}), (Strings{"COMM", "PID", "LAT(ms)", "PAGES"}));
  EXPECT_EQ(header_of("drsnoop", {"-T"}), (Strings{"TIME(s)", "COMM", "PID", "LAT(ms)", "PAGES"}));
  EXPECT_EQ(header_of("drsnoop", {"-U"}), (Strings{"UID", "COMM", "PID", "LAT(ms)", "PAGES"}));
  EXPECT_EQ(header_of("drsnoop", {"-M"}), (Strings{"COMM", "PID", "LAT(ms)", "PAGES", "KIND"}));
  EXPECT_EQ(header_of("drsnoop", {"-T", "-U", "-e"}),
            (Strings{"TIME(s)", "UID", "COMM", "PID", "LAT(ms)", "PAGES", "FREE(KB)", "TID", "KIND",
                     "NODE", "ORDER", "GFP"}));
}

TOOL_TEST(Drsnoop, TextAndCsv) {
  require_tool("drsnoop");
  Memcg m;
  Tracer text("drsnoop", {"-M", m.filter[0], m.filter[1]});
  Tracer csv("drsnoop", {"-M", "--csv", m.filter[0], m.filter[1]});
  Tracer json("drsnoop", {"-M", "--json", "--strict", m.filter[0], m.filter[1]});
  auto released = std::chrono::steady_clock::now();
  m.workload.release();
  m.workload.truth();
  std::chrono::duration<double, std::milli> most = std::chrono::steady_clock::now() - released;
  auto events = json.stop().body;
  auto shown = text.stop_text(), table = csv.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  std::istringstream lines(shown), rows(table);
  std::string line, row;
  double all_ms = 0;
  std::getline(lines, line);
  std::getline(rows, row);
  EXPECT_TRUE(row.starts_with("time,")) << row;
  for (auto& event : events) {
    ASSERT_TRUE(std::getline(lines, line));
    std::istringstream cells(line);
    std::string comm, kind;
    std::uint64_t pid = 0, pages = 0;
    double ms = 0;
    cells >> comm >> pid >> ms >> pages >> kind;
    EXPECT_EQ(comm, "reclaim");
    EXPECT_EQ(pid, m.worker);
    EXPECT_EQ(kind, "memcg");
    EXPECT_EQ(pages, event["reclaimed_pages"].u64()) << line;
    all_ms += ms;
    ASSERT_TRUE(std::getline(rows, row));
    EXPECT_TRUE(contains(row, ",reclaim," + std::to_string(m.worker) + ",")) << row;
  }
  // One task reclaims, once at a time.
  EXPECT_GT(all_ms, 0);
  EXPECT_LE(all_ms, most.count());
  EXPECT_FALSE(std::getline(lines, line)) << line;
  EXPECT_FALSE(std::getline(rows, row)) << row;
}

const DeclareTests kDrsnoop{{
    .name = "drsnoop",
    .events = {"-M -e -K -U", "reclaim --memcg --events 3 --seconds 8", true},
    .stress = {.workload = "reclaim --memcg --events {n}",
               .events = 50,
               .options = "-M",
               .truth =
                   [](stress::Load& load) {
                     auto memcg = load.workload().truth()["memcg"];
                     if (memcg["version"].u64() != 2) throw Skip("cgroup-1");
                     return memcg["max_events"].u64();
                   },
               .tiny = "--ring-size 4096",
               .pids = "worker_pid"},
    .long_run = {{.arguments = "--memcg"}},
}};

}  // namespace
}  // namespace coretap::tooltest
