// schedlat against the kernel's own numbers: /proc/PID/schedstat (time on a CPU, run delay, time
// slices) and /proc/PID/status (context switches).
#include <ctime>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Seconds since 1970 of a local time in ISO 8601.
double seconds(const std::string& iso) {
  std::tm t = {};
  auto* rest = strptime(iso.c_str(), "%Y-%m-%dT%H:%M:%S", &t);
  if (!rest) throw std::runtime_error("not a time: " + iso);
  t.tm_isdst = -1;
  return static_cast<double>(mktime(&t)) + std::stod("0" + std::string(rest));
}

void expect_delays(const Json& row) {
  auto waits = row["waits"].u64(), total = row["wait_ns"].u64(), most = row["max_ns"].u64();
  EXPECT_LE(most, total);
  EXPECT_GE(most * waits, total);
  if (waits) {
    EXPECT_EQ(row["average_ns"].u64(), total / waits);
  } else {
    EXPECT_TRUE(row["average_ns"].is_null());
  }
  EXPECT_EQ(row["max_at"].is_null(), most == 0);
}

std::uint64_t waits_and_leaves(const Json& row) {
  return row["waits"].u64() + row["voluntary"].u64() + row["preempted"].u64();
}

}  // namespace

TOOL_TEST(Schedlat, ThreadsThatShareACpu) {
  auto seen = observe("schedlat --json --strict -p {pid}", "runqueue --threads 3 --ms 400");
  auto report = seen.report();
  for (auto& thread : seen.truth["threads"].items()) {
    auto row = line_with(report.body, {{"tid", thread["tid"].u64()}});
    expect_fields(row, {{"pid", seen.pid}, {"comm", "runqueue"}});
    EXPECT_EQ(row["waits"].u64(), thread["timeslices"].u64());
    expect_run_delay(report, row["wait_ns"].u64(), thread);
    EXPECT_EQ(row["voluntary"].u64(), thread["voluntary"].u64());
    EXPECT_EQ(row["preempted"].u64(), thread["nonvoluntary"].u64());
    // The scheduler's clock excludes interrupts if the kernel accounts for their time.
    auto run = thread["on_cpu_ns"].real();
    expect_between(row["run_ns"].u64(), 0.97 * run, 1.10 * run + 2e6);
    expect_delays(row);
    EXPECT_GT(row["max_ns"].u64(), 0u);
  }
}

TOOL_TEST(Schedlat, AddedUpByProcessAndCgroup) {
  const std::vector<Strings> tools = {Strings("schedlat --json --strict -p {pid} --by pid"),
                                      Strings("schedlat --json --strict -p {pid} --by cgroup_id"),
                                      Strings("schedlat --json --strict -p {pid} --by comm")};
  auto seen = watch_all({{"runqueue --threads 3 --ms 300", tools}}).at(0);
  for (std::size_t i = 0; i < tools.size(); i++) {
    SCOPED_TRACE(i);
    auto row = only(seen.body(i));
    // The first thread's own waits and switches are in it, too.
    auto delay = seen.truth["run_delay_ns"].real();
    expect_between(row["wait_ns"].u64(), 0.97 * delay, 1.03 * delay + 5e7 * slowness());
    EXPECT_GE(row["waits"].u64(), seen.number("timeslices"));
    EXPECT_LE(row["waits"].u64(), seen.number("timeslices") + 40);
    EXPECT_GE(row["preempted"].u64(), seen.number("nonvoluntary"));
    expect_delays(row);
  }
}

// Each interval has its own longest delay, which ended in it; a task that keeps its CPU has a row.
TOOL_TEST(Schedlat, LongestOfEachInterval) {
  auto seen = observe("schedlat --json -p {pid} 0.2", "runqueue --threads 2 --ms 900");
  std::map<std::string, std::vector<Json>> reports;
  for (auto& row : seen.report().body) reports[row["time"].str()].push_back(row);
  ASSERT_GE(reports.size(), 3u);
  auto slack = 0.05 * slowness();
  double before = 0;
  for (auto& [time, rows] : reports) {
    auto now = seconds(time);
    for (auto& row : rows) {
      expect_delays(row);
      if (row["max_at"].is_null()) continue;
      EXPECT_GE(seconds(row["max_at"].str()), before - slack);
      EXPECT_LE(seconds(row["max_at"].str()), now + slack);
    }
    before = now;
  }
  auto alone = observe("schedlat --json -p {pid} 0.1", "sleeper --sleeps 1 --ms 1 --spin 700");
  EXPECT_GE(lines_where(alone.report(), [](auto& row) { return row["run_ns"].u64() > 50'000'000; })
                .size(),
            4u);
  auto spun = alone.truth["threads"].items().at(0)["spun_cpu_ns"].real();
  expect_between(alone.report().sum("run_ns"), 0.97 * spun, 1.10 * spun + 5e7);
}

TESTS_OF(schedlat, .events = {{}, "runqueue --threads 2 --ms 60"}, .alone = true,
         .stress = count_row("runqueue --threads 3 --ms {n}", 600, waits_and_leaves,
                             [](stress::Load& load) {
                               return slices(load) + stress::all_leaves(load);
                             }),
         .long_run = {{.arguments = "10"}, {.arguments = "--by pid 10"}});

}  // namespace coretap::tooltest
