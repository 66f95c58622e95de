// loads against tasks whose states are known, and against /proc/loadavg.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kSpinning = 4, kBlocked = 3;
constexpr char kLoad[] = "--spinning 4 --blocked 3 --comm theload";
/// All threads in vfork() wait in this function.
constexpr char kVfork[] = "kernel_clone+0x";

std::set<std::uint64_t> ids(const Json& list) {
  std::set<std::uint64_t> all;
  for (auto& id : list.items()) all.insert(id.u64());
  return all;
}

bool in_vfork(const Strings& frames) {
  return std::ranges::any_of(frames, [](auto& frame) { return frame.starts_with(kVfork); });
}

TOOL_TEST(Loads, Groups) {
  Workload load("load", kLoad);
  auto report = report_of("loads --json 0.05 5 -p " + load.id());
  auto averages = lines_with(report.body, {{"type", "averages"}});
  ASSERT_EQ(averages.size(), 5u);
  for (auto& a : averages) {
    expect_fields(a, {{"runnable_tasks", kSpinning}, {"uninterruptible_tasks", kBlocked}});
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
    expect_fields(line, {{"comm", "theload"}});
    EXPECT_LE(line["count"].u64(), before) << "the largest group first";
    before = line["count"].u64();
    if (line["state"].str() == "R") {
      runnable += line["count"].u64();
    } else {
      // One stack, one group.
      expect_fields(line, {{"state", "D"}, {"count", kBlocked}});
      EXPECT_TRUE(in_vfork(line["kernel_stack"].strings()));
      blocked++;
    }
  }
  EXPECT_EQ(runnable, 5 * kSpinning);
  EXPECT_EQ(blocked, 5u);
  expect_fields(report.ledger, {{"shown", 5 * (kSpinning + kBlocked)}, {"data_lost", false}});
  load.release();
  load.truth();
}

TOOL_TEST(Loads, EachTask) {
  auto begun = std::chrono::steady_clock::now();
  Workload load("load", kLoad);
  nap(std::chrono::milliseconds(500));
  auto snapshot = [&](const std::string& options) {
    auto report = report_of("loads --json -e 1 1 -p " + load.id() + options);
    return lines_with(report.body, {{"type", "snapshot"}});
  };
  auto tasks = snapshot("");
  auto passed = std::chrono::steady_clock::now() - begun + std::chrono::milliseconds(50);
  std::set<std::uint64_t> runnable, waiting;
  long running = 0;
  for (auto& task : tasks) {
    expect_fields(task, {{"pid", load.pid()}, {"comm", "theload"}});
    auto frames = task["kernel_stack"].strings();
    if (task["running"].boolean()) {
      running++;
      EXPECT_TRUE(frames.empty());
    }
    if (task["state"].str() == "R") {
      runnable.insert(task["tid"].u64());
      continue;
    }
    waiting.insert(task["tid"].u64());
    EXPECT_FALSE(task["running"].boolean());
    EXPECT_TRUE(in_vfork(frames));
    EXPECT_GE(task["in_state_ns"].u64(), 250'000'000u) << "since it was ready";
    EXPECT_LE(std::chrono::nanoseconds(task["in_state_ns"].u64()), passed);
  }
  EXPECT_EQ(runnable, ids(load.ready()["spinning"]));
  EXPECT_EQ(waiting, ids(load.ready()["blocked"]));
  EXPECT_LT(running, ::sysconf(_SC_NPROCESSORS_ONLN)) << "loads runs on one";
  auto first = snapshot(" --top 2");
  ASSERT_EQ(first.size(), 2u);
  expect_fields(first[0], {{"state", "D"}});
  EXPECT_GE(first[0]["in_state_ns"].u64(), first[1]["in_state_ns"].u64());
  for (auto& task : snapshot(" --perf-max-stack-depth 2"))
    EXPECT_LE(task["kernel_stack"].items().size(), 2u);
}

TOOL_TEST(Loads, Text) {
  Workload load("load", kLoad);
  auto text = lines(output_of("loads 0.05 2 -p " + load.id()));
  const std::regex head(R"(\d\d:\d\d:\d\d load averages: \d+\.\d\d \d+\.\d\d \d+\.\d\d)");
  int reports = 0, groups = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    reports += std::regex_match(text[i], head);
    if (text[i] != "D     theload                 3") continue;
    groups++;
    Strings frames;
    while (i + 1 < text.size() && text[i + 1].starts_with("        "))
      frames.push_back(text[++i].substr(8));
    EXPECT_TRUE(in_vfork(frames));
  }
  EXPECT_EQ(reports, 2);
  EXPECT_EQ(groups, 2);

  auto summary = lines(output_of("loads -s 0.05 2 -p " + load.id()));
  ASSERT_EQ(summary.size(), 2u);
  for (auto& line : summary) EXPECT_TRUE(line.ends_with(" runnable: 4 uninterruptible: 3")) << line;
}

TOOL_TEST(Loads, AveragesOfTheKernel) {
  for (int i = 0; i < 20; i++) {
    auto before = words(slurp("/proc/loadavg"));
    auto report = report_of("loads --json -s 1 1");
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

// Both sample at slightly different times, and the kernel counts loads itself, too.
TOOL_TEST(Loads, CountsWhatTheKernelCounts) {
  Workload load("load", kLoad);
  auto report = report_of("loads --json -s 0.02 50");
  auto same = lines_where(
      report, [](auto& a) { return a["system_running"].u64() == a["runnable_tasks"].u64() + 1; });
  EXPECT_FALSE(same.empty());
  for (auto& a : report.body) {
    EXPECT_GE(a["runnable_tasks"].u64(), kSpinning);
    EXPECT_GE(a["uninterruptible_tasks"].u64(), kBlocked);
  }
}

TESTS_OF(loads, .reports = {{ReportKind::snapshot}, {ReportKind::snapshot, {"-e"}}},
         .events = {.options = "0.1", .command = "load --ms 1000"}, .alone = true,
         .long_run = {{.arguments = "1"}});

}  // namespace
}  // namespace coretap::tooltest
