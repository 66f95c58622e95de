// loads against tasks whose states are known, and against /proc/loadavg.
#include <algorithm>
#include <chrono>
#include <regex>
#include <set>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::uint64_t kSpinning = 4, kBlocked = 3;
/// All threads in vfork() wait in it.
constexpr char kFunction[] = "kernel_clone+0x";

Workload start_load() {
  return Workload("load", {"--spinning", std::to_string(kSpinning), "--blocked",
                           std::to_string(kBlocked), "--comm", "theload"});
}

std::vector<Json> lines_of_type(const Report& report, const std::string& type) {
  std::vector<Json> all;
  for (auto& line : report.body)
    if (line["type"].str() == type) all.push_back(line);
  return all;
}

std::set<std::uint64_t> ids(const Json& list) {
  std::set<std::uint64_t> all;
  for (auto& id : list.items()) all.insert(id.u64());
  return all;
}

std::string result_of(const Strings& words) {
  auto argv = words;
  argv.insert(argv.begin(), tool_path("loads"));
  auto result = run(argv);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

bool has_function(const Strings& frames) {
  return std::any_of(frames.begin(), frames.end(),
                     [](auto& frame) { return frame.starts_with(kFunction); });
}

TOOL_TEST(Loads, Groups) {
  require_tool("loads");
  auto load = start_load();
  Tracer tracer("loads", {"--json", "-p", load.id(), "0.05", "5"}, {.attached = false});
  auto report = tracer.finish();
  auto averages = lines_of_type(report, "averages");
  ASSERT_EQ(averages.size(), 5u);
  for (auto& a : averages) {
    EXPECT_EQ(a["runnable_tasks"].u64(), kSpinning);
    EXPECT_EQ(a["uninterruptible_tasks"].u64(), kBlocked);
    EXPECT_GE(a["system_running"].u64(), kSpinning);
    EXPECT_GT(a["system_tasks"].u64(), kSpinning + kBlocked);
  }
  std::uint64_t runnable = 0, before = UINT64_MAX;
  std::size_t blocked = 0;
  for (auto& line : report.body) {
    if (line["type"].str() == "averages") {
      before = UINT64_MAX;
      continue;
    }
    EXPECT_EQ(line["comm"].str(), "theload");
    EXPECT_LE(line["count"].u64(), before) << "the largest group first";
    before = line["count"].u64();
    if (line["state"].str() == "R") {
      runnable += line["count"].u64();
    } else {
      EXPECT_EQ(line["state"].str(), "D");
      EXPECT_EQ(line["count"].u64(), kBlocked) << "one stack, one group";
      EXPECT_TRUE(has_function(line["kernel_stack"].strings()));
      blocked++;
    }
  }
  EXPECT_EQ(runnable, 5 * kSpinning);
  EXPECT_EQ(blocked, 5u);
  EXPECT_EQ(report.ledger["shown"].u64(), 5 * (kSpinning + kBlocked));
  EXPECT_FALSE(report.ledger["data_lost"].boolean());
  load.release();
  load.truth();
}

TOOL_TEST(Loads, EachTask) {
  require_tool("loads");
  auto begun = Clock::now();
  auto load = start_load();
  auto spinning = ids(load.ready()["spinning"]), blocked = ids(load.ready()["blocked"]);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  auto report =
      Tracer("loads", {"--json", "-e", "-p", load.id(), "1", "1"}, {.attached = false}).finish();
  auto passed = static_cast<std::uint64_t>(
      std::chrono::nanoseconds(Clock::now() - begun + std::chrono::milliseconds(50)).count());
  std::set<std::uint64_t> runnable, waiting;
  std::uint64_t running = 0;
  for (auto& task : lines_of_type(report, "snapshot")) {
    EXPECT_EQ(task["pid"].u64(), static_cast<std::uint64_t>(load.pid()));
    EXPECT_EQ(task["comm"].str(), "theload");
    auto frames = task["kernel_stack"].strings();
    if (task["running"].boolean()) {
      running++;
      EXPECT_TRUE(frames.empty());
    }
    if (task["state"].str() == "R") {
      runnable.insert(task["tid"].u64());
    } else {
      waiting.insert(task["tid"].u64());
      EXPECT_FALSE(task["running"].boolean());
      EXPECT_TRUE(has_function(frames));
      EXPECT_GE(task["in_state_ns"].u64(), 250'000'000u) << "since it was ready";
      EXPECT_LE(task["in_state_ns"].u64(), passed);
    }
  }
  EXPECT_EQ(runnable, spinning);
  EXPECT_EQ(waiting, blocked);
  EXPECT_LT(running, static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN)))
      << "loads runs on one";
  auto cut = Tracer("loads", {"--json", "-e", "--top", "2", "-p", load.id(), "1", "1"},
                    {.attached = false})
                 .finish();
  auto first = lines_of_type(cut, "snapshot");
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[0]["state"].str(), "D");
  EXPECT_GE(first[0]["in_state_ns"].u64(), first[1]["in_state_ns"].u64());
  auto shallow =
      Tracer("loads", {"--json", "-e", "--perf-max-stack-depth", "2", "-p", load.id(), "1", "1"},
             {.attached = false})
          .finish();
  for (auto& task : lines_of_type(shallow, "snapshot"))
    EXPECT_LE(task["kernel_stack"].items().size(), 2u);
}

TOOL_TEST(Loads, Text) {
  require_tool("loads");
  auto load = start_load();
  auto text = lines(result_of({"-p", load.id(), "0.05", "2"}));
  const std::regex head(R"(\d\d:\d\d:\d\d load averages: \d+\.\d\d \d+\.\d\d \d+\.\d\d)");
  int reports = 0, groups = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (std::regex_match(text[i], head)) {
      reports++;
      ASSERT_LT(i + 1, text.size());
      EXPECT_EQ(text[i + 1], "STATE COMM                COUNT");
    }
    if (text[i] != "D     theload                 3") continue;
    groups++;
    Strings frames;
    while (i + 1 < text.size() && text[i + 1].starts_with("        "))
      frames.push_back(text[++i].substr(8));
    EXPECT_TRUE(has_function(frames));
  }
  EXPECT_EQ(reports, 2);
  EXPECT_EQ(groups, 2);

  auto summary = lines(result_of({"-s", "-p", load.id(), "0.05", "2"}));
  ASSERT_EQ(summary.size(), 2u);
  for (auto& line : summary) EXPECT_TRUE(line.ends_with(" runnable: 4 uninterruptible: 3")) << line;
}

TOOL_TEST(Loads, Csv) {
  require_tool("loads");
  auto load = start_load();
  auto text = result_of({"--csv", "-p", load.id(), "0.05", "2"});
  EXPECT_GE(check_csv(text), 4u);
  auto table = lines(text);
  EXPECT_EQ(table[0],
            "time,load_1m,load_5m,load_15m,runnable_tasks,uninterruptible_tasks,system_running,"
            "system_tasks,"
            "state,comm,count,kernel_stack");
  int blocked = 0;
  for (auto& line : table) {
    auto cells = csv_fields(line);
    if (cells.at(8) != "D") continue;
    blocked++;
    EXPECT_EQ(cells[4], "4");
    EXPECT_EQ(cells[5], "3");
    EXPECT_EQ(cells[10], "3");
    EXPECT_TRUE(contains(cells[11], std::string(";") + kFunction)) << cells[11];
  }
  EXPECT_EQ(blocked, 2);
  auto idle = result_of({"--csv", "--comm", "no such task", "1", "1"});
  EXPECT_EQ(check_csv(idle), 1u) << "the averages, and no task:\n" << idle;
  EXPECT_EQ(check_csv(result_of({"--csv", "-s", "0.05", "2"})), 2u);
}

TOOL_TEST(Loads, AveragesOfTheKernel) {
  require_tool("loads");
  for (int i = 0; i < 20; i++) {
    auto before = words(slurp("/proc/loadavg"));
    auto report = Tracer("loads", {"--json", "-s", "1", "1"}, {.attached = false}).finish();
    auto after = words(slurp("/proc/loadavg"));
    before.resize(3);
    after.resize(3);
    if (before != after) continue;
    ASSERT_EQ(report.body.size(), 1u);
    EXPECT_EQ(report.body[0]["load_1m"].real(), std::stod(before[0]));
    EXPECT_EQ(report.body[0]["load_5m"].real(), std::stod(before[1]));
    EXPECT_EQ(report.body[0]["load_15m"].real(), std::stod(before[2]));
    return;
  }
  FAIL() << "/proc/loadavg is never the same twice";
}

// Both look a moment apart, and the kernel sees loads too.
TOOL_TEST(Loads, CountsWhatTheKernelCounts) {
  require_tool("loads");
  auto load = start_load();
  auto report = Tracer("loads", {"--json", "-s", "0.02", "50"}, {.attached = false}).finish();
  auto same = std::count_if(report.body.begin(), report.body.end(), [](auto& a) {
    return a["system_running"].u64() == a["runnable_tasks"].u64() + 1;
  });
  EXPECT_GT(same, 0);
  for (auto& a : report.body) {
    EXPECT_GE(a["runnable_tasks"].u64(), kSpinning);
    EXPECT_GE(a["uninterruptible_tasks"].u64(), kBlocked);
  }
}

TOOL_TEST(Loads, WrongCommandLines) {
  for (auto& [arguments, told] : std::vector<std::pair<Strings, std::string>>{
           {{"-e", "-s"}, "together"}, {{"-s", "--top", "3"}, "together"}, {{"0"}, "INTERVAL"}}) {
    auto argv = arguments;
    argv.insert(argv.begin(), tool_path("loads"));
    auto result = run(argv);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(contains(result.err, told)) << result.err;
  }
}

const DeclareTests kLoads{{
    .name = "loads",
    .reports = {{ReportKind::snapshot}, {ReportKind::snapshot, {"-e"}}},
    .events = {.options = "0.1", .command = "load --ms 1000"},
    .long_run = {{.arguments = "1"}},
}};

}  // namespace
}  // namespace coretap::tooltest
