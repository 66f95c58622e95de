// walltime against clocks of the threads themselves, cpu.stat and /proc/stat.
#include <sys/resource.h>

#include <ctime>

#include "../profile_reader.hpp"
#include "../quota.hpp"
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr double kPart = 0.001;  // the states' deviation from the time
constexpr auto kSecond = 1'000'000'000;

std::uint64_t clock_ns(clockid_t clock) {
  timespec t{};
  ::clock_gettime(clock, &t);
  return static_cast<std::uint64_t>(t.tv_sec) * kSecond + static_cast<std::uint64_t>(t.tv_nsec);
}

std::vector<std::string> state_keys(const Report& report) {
  std::vector<std::string> all;
  std::smatch found;
  static const std::regex key("\"([a-z_]+)_count\"");
  auto text = report.body.at(0).text();
  for (auto at = text.cbegin(); std::regex_search(at, text.cend(), found, key);
       at = found[0].second)
    all.push_back(found[1].str() + "_ns");
  return all;
}

/// The rows, all of which add up.
std::vector<Json> rows_of(const Report& report) {
  auto rows = lines_with(report.body, {{"type", "account"}});
  for (auto& row : rows) {
    std::uint64_t sum = 0;
    for (auto& key : state_keys(report)) sum += row[key.c_str()].u64();
    auto time = row["time_ns"].real();
    expect_between(static_cast<double>(sum), time * (1 - kPart), time * (1 + kPart));
  }
  return rows;
}
Json total_of(const Report& report) { return lines_with(report.body, {{"type", "total"}}).at(0); }
double cpu_ns(const Json& row) {
  return row["cpu_ns"].real() + row["cpu_irq_ns"].real() + row["cpu_stolen_ns"].real();
}

/// Clocks that a thread reads about itself.
struct Life {
  std::uint64_t tid = 0, ns = 0, cpu = 0;
  void live(const std::function<void()>& run) {
    tid = static_cast<std::uint64_t>(::gettid());
    auto from = clock_ns(CLOCK_MONOTONIC);
    run();
    cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    ns = clock_ns(CLOCK_MONOTONIC) - from;
  }
};
void spin(std::uint64_t ns) {
  for (auto from = clock_ns(CLOCK_MONOTONIC); clock_ns(CLOCK_MONOTONIC) - from < ns;) {
  }
}

TOOL_TEST(Walltime, ThreadsAgainstTheirOwnClocks) {
  require_tool("walltime");
  Tracer tracer("walltime", "--json --by thread -p " + std::to_string(::getpid()));
  int pipe[2];
  ASSERT_EQ(::pipe(pipe), 0);
  Life busy, sleeper, reader;
  std::thread spins([&] { busy.live([] { spin(kSecond); }); });
  std::thread sleeps([&] {
    sleeper.live([] {
      for (int i = 0; i < 20; i++) nap(std::chrono::milliseconds(50));
    });
  });
  std::thread reads([&] {
    char c = 0;
    reader.live([&] { EXPECT_EQ(::read(pipe[0], &c, 1), 1); });
  });
  nap(std::chrono::seconds(1));
  EXPECT_EQ(::write(pipe[1], "x", 1), 1);
  for (auto* thread : {&spins, &sleeps, &reads}) thread->join();
  auto report = tracer.stop();
  auto rows = rows_of(report);
  auto row = [&](const Life& life) {
    auto found = lines_with(rows, {{"tid", life.tid}}).at(0);
    EXPECT_GE(found["time_ns"].u64(), life.ns);
    EXPECT_LE(found["time_ns"].real(), static_cast<double>(life.ns) * 1.01 + 2e6);
    return found;
  };
  EXPECT_NEAR(cpu_ns(row(busy)), static_cast<double>(busy.cpu), 0.02 * kSecond);
  // The timer starts before the switch, which takes long on emulated CPUs.
  auto slept = row(sleeper)["wait_sleep_ns"].u64();
  EXPECT_GE(slept, 20 * 45'000'000u);
  EXPECT_GE(static_cast<double>(slept) + cpu_ns(row(sleeper)), 20 * 49.9e6);
  EXPECT_EQ(row(sleeper)["wait_sleep_count"].u64(), 20u);
  EXPECT_GE(row(reader)["wait_pipe_read_ns"].u64(), 900'000'000u);
  for (auto& life : {sleeper, reader}) EXPECT_LE(cpu_ns(row(life)), 0.05 * kSecond);
}

TOOL_TEST(Walltime, QuotaIsThatOfTheKernel) {
  require_tool("walltime");
  Quota quota;
  Process probe({.argv = {"/bin/sleep", "0"}});
  quota.add(probe.pid());  // or skips
  auto stat = quota.stat();
  Tracer tracer("walltime", {"--json", "--", "sh", "-c", quota.computes()}, {.attached = false});
  auto report = tracer.finish();
  const auto throttled = Quota::throttled(stat);
  for (auto& text : total_of(report)["approximate"].strings())
    if (text.starts_with("queue.limit")) throw Skip(text);
  ASSERT_GT(throttled, kSecond / 2);
  EXPECT_NEAR(rows_of(report).at(0)["queue_limit_ns"].real(), throttled, 0.02 * throttled);
}

// More busy threads than CPUs: no CPU is idle, except where /proc/stat says so.
TOOL_TEST(Walltime, AllCpuTime) {
  require_tool("walltime");
  require_whole_cpus();
  const auto cpus = std::thread::hardware_concurrency();
  std::vector<std::unique_ptr<Process>> busy;
  for (unsigned i = 0; i <= cpus; i++)
    busy.emplace_back(new Process({.argv = {"/bin/sh", "-c", "while :; do :; done"}}));
  auto idle = [] {
    auto all = words(lines(slurp("/proc/stat")).at(0));
    return std::stod(all.at(4)) + std::stod(all.at(5));
  };
  auto before = idle();
  auto report = report_of("walltime --json --include-self 1 1");
  auto idle_ns = (idle() - before) * 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  double cpu = 0, unknown = 0;
  for (auto& row : rows_of(report)) {
    cpu += cpu_ns(row);
    unknown += row["unknown_ns"].real();
  }
  auto most = cpus * total_of(report)["wall_ns"].real();
  expect_between(cpu, 0.99 * most - idle_ns - unknown, 1.01 * most);
}

TOOL_TEST(Walltime, EachShortProcessHasAnAccount) {
  require_tool("walltime");
  Tracer tracer(
      "walltime",
      {"--json", "--", "sh", "-c", "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done"},
      {.attached = false});
  auto report = tracer.finish();
  EXPECT_EQ(rows_of(report).size(), 301u);
  EXPECT_EQ(total_of(report)["threads"].u64(), 301u);
  EXPECT_GE(report.body.at(0)["wait_children_ns"].u64(), 1u);
}

TOOL_TEST(Walltime, StoppedByASignal) {
  require_tool("walltime");
  Process busy({.argv = {"/bin/sh", "-c", "while :; do :; done"}});
  Tracer tracer("walltime", "--json 0.2 -p " + std::to_string(busy.pid()));
  auto from = clock_ns(CLOCK_MONOTONIC);
  ::kill(busy.pid(), SIGSTOP);
  nap(std::chrono::milliseconds(500));
  ::kill(busy.pid(), SIGCONT);
  auto most = clock_ns(CLOCK_MONOTONIC) - from;
  auto rows = rows_of(tracer.stop());
  std::uint64_t stopped = 0, time = 0;
  for (auto& row : rows) {
    stopped += row["stopped_ns"].u64();
    time += row["time_ns"].u64();
  }
  EXPECT_GE(rows.size(), 3u) << "one for each interval";
  expect_between(static_cast<double>(stopped), 400e6, static_cast<double>(most) + 1e6);
  EXPECT_GT(time, stopped);
}

/// Nanoseconds of the folded stacks with these frames.
std::uint64_t folded_ns(const std::string& text, std::string_view inside, std::string_view leaf) {
  std::uint64_t us = 0;
  for (auto& line : lines(text)) {
    auto end = line.rfind(' ');
    auto frames = line.substr(0, end);
    if (contains(frames, std::string(inside)) && frames.ends_with(leaf))
      us += std::stoull(line.substr(end + 1));
  }
  return us * 1000;
}

TOOL_TEST(Walltime, StacksOfSleepsAndOfCpuTime) {
  require_tool("walltime");
  auto seen = observe_all({"walltime --folded --work -p {pid}", "walltime --folded -p {pid}",
                           "walltime --folded --work --by-state --by thread -K -p {pid}"},
                          "sleeper --sleeps 20 --ms 10 --spin 1000", {});
  constexpr auto* kSleeps = ";workload_outer;workload_middle;workload_sleep;";
  auto& graph = seen.text(0);
  auto slept = folded_ns(graph, kSleeps, "nanosleep;[sleep]");
  EXPECT_LE(slept, seen.truth["slept_ns"].u64());
  EXPECT_GE(slept, 20 * 9'900'000u);
  auto spun = seen.truth["threads"].items().at(0)["spun_cpu_ns"].real();
  auto user = folded_ns(graph, ";workload_spin", "[cpu.user]");
  auto all = user + folded_ns(graph, ";workload_spin", "[cpu.kernel]");
  EXPECT_GE(user, all / 4);
  expect_between(static_cast<double>(all), 0.8 * spun, 1.1 * spun);
  EXPECT_EQ(folded_ns(seen.text(1), "", "[sleep]"), 0u) << "nothing to do";
  auto tid = std::to_string(seen.truth["tid"].u64());
  for (auto& line : lines(seen.text(2))) {
    EXPECT_TRUE(line.starts_with("[") && contains(line, "];sleeper/" + tid)) << line;
    EXPECT_FALSE(contains(line, "workload_")) << line;
  }
  EXPECT_TRUE(contains(seen.text(2), "hrtimer_nanosleep"));
}

TOOL_TEST(Walltime, ProfileHasAllTime) {
  require_tool("walltime");
  TemporaryDirectory directory;
  auto path = directory.path() + "/profile.pb.gz";
  auto report = observe("walltime --json --work -p {pid} --pprof " + path,
                        "sleeper --sleeps 20 --ms 5 --spin 200 --threads 3")
                    .report();
  auto profile = read_profile(path);
  EXPECT_EQ(profile["types"].strings(), (Strings{"waits/count", "time/nanoseconds"}));
  std::uint64_t ns = 0;
  for (auto& sample : profile["samples"].items()) ns += sample["values"].items().at(1).u64();
  EXPECT_EQ(ns, total_of(report)["states_ns"].u64());
}

/// Changes of a run since that of the file; those of time without a CPU are the machine's.
std::vector<Json> changes_of(const Report& report) {
  auto all = lines_with(report.body, {{"type", "change"}});
  std::erase_if(all, [](auto& line) { return line["state"].str().starts_with("queue."); });
  return all;
}
double share(const Json& truth, const char* part) {
  return 1e9 * truth[part].real() / truth["all_ns"].real();
}

/// Its shares of time are the planned ones, also on a machine with other work: it does not wait
/// for CPUs.
const Workload::How kBeforeOthers{.linger = true,
                                  .in_child = [] { ::setpriority(PRIO_PROCESS, 0, -20); }};

TOOL_TEST(Walltime, ComparisonFindsPlantedChanges) {
  require_tool("walltime");
  TemporaryDirectory directory;
  auto old = directory.path() + "/old.pb.gz", picture = directory.path() + "/diff.svg";
  auto before = observe("walltime --json --work -F 199 -p {pid} --pprof " + old,
                        "shares --f 40 --g 30 --sleep 30 --ms 4000", kBeforeOthers)
                    .truth;
  auto compare = "walltime --json --work -F 199 -p {pid} --diff " + old;
  auto seen = observe(compare + " --svg " + picture, "shares --f 40 --g 20 --sleep 40 --ms 4000",
                      kBeforeOthers);
  auto report = seen.report();
  auto changes = changes_of(report);
  // As much as it sleeps more, it computes less.
  ASSERT_GE(changes.size(), 2u);
  auto& slept = changes.at(changes.at(0)["state"].str() == "sleep" ? 0 : 1);
  EXPECT_EQ(slept["state"].str(), "sleep") << slept.text();
  EXPECT_TRUE(contains(slept["stack"].str(), "workload_sleep"));
  auto planted = share(seen.truth, "slept_ns") - share(before, "slept_ns");
  expect_between(slept["change_ns"].real(), 0.8 * planted, 1.2 * planted);
  auto summary = lines_with(report.body, {{"type", "comparison"}}).at(0);
  EXPECT_EQ(summary["scaled_by"].str(), "thread time");
  EXPECT_TRUE(summary["noise_known"].boolean());
  auto svg = slurp(picture);
  expect_contains(svg,
                  {"compared with old.pb.gz", "workload_sleep", "class=\"more", "class=\"less"});
}

TOOL_TEST(Walltime, EqualRunsDoNotDiffer) {
  require_tool("walltime");
  TemporaryDirectory directory;
  auto old = directory.path() + "/old.pb.gz";
  constexpr auto* kShares = "shares --f 40 --g 30 --sleep 30 --ms 4000";
  observe("walltime --json --work -p {pid} --pprof " + old, kShares, kBeforeOthers);
  auto report =
      observe("walltime --json --work -p {pid} --diff " + old, kShares, kBeforeOthers).report();
  EXPECT_TRUE(report.body.size() > 0);
  for (auto& line : changes_of(report)) {
    // On a busy machine time in queues takes the place of other time.
    double queued = 0;
    for (auto& other : lines_with(report.body, {{"type", "change"}}))
      if (other["state"].str().starts_with("queue.")) queued += other["change_ns"].real();
    EXPECT_LE(std::abs(line["change_ns"].real()), std::abs(queued)) << line.text();
  }
}

TOOL_TEST(Walltime, ComparisonRefusesWhatItCannotRead) {
  require_tool("walltime");
  TemporaryDirectory directory;
  auto folded = directory.path() + "/folded";
  std::ofstream(folded) << "a;main;[cpu.user] 5\n\x1b[31m;main;write 5\n";
  expect_refused({"walltime", "--diff", folded, "0.1", "1"}, {"folded", "state of walltime"}, 1);
  expect_refused({"walltime", "--diff", directory.path() + "/none", "0.1", "1"},
                 {"none", "No such file"}, 1);
  expect_refused({"walltime", "--diff", ""}, {"--diff: needs a file"});
  for (auto* other : {"--csv", "--folded", "--latency", "--by-state", "--offset", "-v"})
    expect_refused({"walltime", "--diff", folded, other}, {"cannot be used together"});
  expect_refused({"walltime", "-F", "99"}, {"--frequency"});
}

// A thread sleeps for 10 ms each time: 8,192 us or more, as histograms count.
TOOL_TEST(Walltime, LatencyOfSleeps) {
  require_tool("walltime");
  auto report =
      observe("walltime --json --latency -p {pid}", "sleeper --sleeps 20 --ms 10", {}).report();
  auto sleeps = lines_with(report.body, {{"type", "latency"}, {"state", "wait.sleep"}}).at(0);
  EXPECT_EQ(sleeps["count"].u64(), 20u);
  EXPECT_EQ(sleeps["total_ns"].u64(), rows_of(report).at(0)["wait_sleep_ns"].u64());
  std::uint64_t counted = 0;
  for (auto& slot : sleeps["histogram"].items()) {
    EXPECT_GE(slot["below_ns"].u64(), 10'000'000u) << "less than the sleeps were";
    counted += slot["count"].u64();
  }
  EXPECT_EQ(counted, 20u);
}

TOOL_TEST(Walltime, RowsByNameAndCgroup) {
  require_tool("walltime");
  Workload one("sleeper", "--sleeps 5 --ms 5 --threads 3"), two("sleeper", "--sleeps 5 --ms 5");
  Tracer tracer("walltime", "--json --by comm,cgroup -p " + one.id() + "," + two.id());
  one.release();
  two.release();
  one.truth();
  two.truth();
  auto rows = rows_of(tracer.stop());
  ASSERT_EQ(rows.size(), 1u) << "one name in one cgroup";
  EXPECT_EQ(rows[0]["comm"].str(), "sleeper");
  EXPECT_TRUE(rows[0]["pid"].is_null() && rows[0]["tid"].is_null());
  EXPECT_EQ(rows[0]["threads"].u64(), 5u);
  EXPECT_GE(rows[0]["wait_sleep_count"].u64(), 20u);
  expect_refused("walltime --by comm,nothing", {"there is no key 'nothing'"});
}

TESTS_OF(walltime, .reports = {{ReportKind::aggregate}},
         .events = {.options = "-v", .command = "sleeper --sleeps 1"}, .alone = true,
         // Threads that began before it do not count; an unseen event of a shown thread does.
         .stress = event_row("runner --count {n}", 600, "storm+execs+fails")
                       .with_children()
                       .with_slack(5),
         .long_run = {{.arguments = "10"}});

}  // namespace
}  // namespace coretap::tooltest
