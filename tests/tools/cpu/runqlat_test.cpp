// runqlat against the kernel's run delays in /proc/PID/task/TID/schedstat.
#include <grp.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// A thread that changes its name has a histogram for each name: the one with the longest waits.
Json waits_of(const Report& report, const Json& thread) {
  auto own = lines_with(report.body, {{"tid", thread["tid"].u64()}});
  if (own.empty()) throw std::runtime_error("thread " + thread["tid"].text() + " is missing");
  return std::ranges::max(own, {}, [](auto& line) { return line["total_ns"].u64(); });
}

/// The threads' waits in the report are those in the workload's truth. Both measured all of them:
/// the threads sleep before the start and, while the workload lingers, after it.
void expect_same_waits(const Report& report, const Json& truth) {
  for (auto& thread : truth["threads"].items()) {
    auto histogram = waits_of(report, thread);
    expect_run_delay(report, histogram["total_ns"].u64(), thread);
    // Newer kernels do not count a switch from a thread to itself as a time slice: never more here.
    EXPECT_EQ(histogram["count"].u64(), thread["timeslices"].u64());
    check_histogram(histogram, 1000);
  }
}

/// The same for the sums over its threads.
void expect_same_sums(const Report& report, const Json& truth) {
  expect_run_delay(report, report.sum("total_ns"), truth);
  expect_sums(report, truth, {{"count", "timeslices"}});
}

/// The threads of a workload, for -t.
std::string tids_of(const Json& ready) {
  std::string all;
  for (auto& tid : ready["tids"].items()) all += (all.empty() ? "" : ",") + tid.text();
  return all;
}

TOOL_TEST(Runqlat, TotalIsTheKernelsRunDelay) {
  auto seen = observe("runqlat --json --strict -L -p {pid}", "runqueue --threads 3 --ms 300");
  expect_same_waits(seen.report(), seen.truth);
  for (auto& line : seen.report().body) expect_fields(line, {{"comm", "runqueue"}});
}

// A thread's wait on one CPU still counts after a migration.
TOOL_TEST(Runqlat, ThreadsThatAreMovedWhileTheyWait) {
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) throw Skip("there is one CPU");
  Workload workload("runqueue", "--threads 4 --ms 400", kLinger);
  Tracer tracer("runqlat", "--json --strict -L -p " + workload.id());
  auto tids = workload.ready()["tids"].items();
  workload.release();
  // For a thread that has not yet run while traced, the wait on another CPU is unknown.
  nap(std::chrono::milliseconds(100));
  for (int i = 0; i < 40; i++) {
    for (auto& tid : tids) stay_on(i % 2, static_cast<pid_t>(tid.i64()));
    nap(std::chrono::milliseconds(5));
  }
  auto truth = workload.truth();
  expect_same_waits(tracer.stop(), truth);
}

TOOL_TEST(Runqlat, UnkeyedAndPerProcessTotals) {
  Scene scene("runqueue --threads 3 --ms 300");
  for (auto* way : {"--strict", "--strict -P", "-m"})
    scene.trace("runqlat --json -t " + tids_of(scene.ready()) + " " + way);
  auto seen = scene.finish();
  for (std::size_t i = 0; i < 3; i++) {
    auto report = seen.report(i);
    ASSERT_EQ(report.body.size(), 1u);
    expect_same_sums(report, seen.truth);
    check_histogram(report.body[0], i == 2 ? 1'000'000 : 1000);
  }
  expect_fields(seen.report(1).body[0], {{"pid", seen.pid}, {"comm", "runqueue"}});
}

// More processes than the table has room for, but few at a time: each report removes the ended
// ones.
TOOL_TEST(Runqlat, EndedProcessesMakeRoom) {
  Cgroup cgroup;
  Scene scene("forker --serial --children 900 --ms 2", {});
  cgroup.add(scene.workload().pid());
  for (auto* interval : {"", " 0.05"})
    scene.trace("runqlat --json -P -c " + cgroup.path() + " --max-keys 256" + interval);
  auto seen = scene.finish();
  EXPECT_GT(seen.report(0).lost("untracked"), 0u) << "the room is small";
  auto report = seen.report(1);
  EXPECT_EQ(report.lost("untracked"), 0u);
  std::set<std::uint64_t> pids;
  for (auto& line : report.body)
    if (line["count"].u64()) pids.insert(line["pid"].u64());
  EXPECT_GE(pids.size(), 901u);
}

// Filters apply to the waiting task, not to the waker or previous task: rivals on the same CPU are
// not counted.
TOOL_TEST(Runqlat, FiltersAreAboutTheTaskThatWaits) {
  Cgroup cgroup;
  constexpr uid_t kUser = 54321;
  auto become_user = [] {
    if (::setgroups(0, nullptr) || ::setresgid(kUser, kUser, kUser) ||
        ::setresuid(kUser, kUser, kUser))
      ::_exit(126);
  };
  Scene wanted("runqueue --threads 2 --ms 300 --comm rq-wanted",
               {.linger = true, .in_child = become_user});
  Workload rival("runqueue", "--threads 2 --ms 300", kLinger);
  ASSERT_EQ(wanted.ready()["cpu"].u64(), rival.ready()["cpu"].u64());
  cgroup.add(wanted.workload().pid());
  const Strings filters{"-c " + cgroup.path(), "-u " + std::to_string(kUser), "--comm rq-wanted",
                        "-p {pid}"};
  for (auto& filter : filters) wanted.trace("runqlat --json --strict -L " + filter);
  rival.release();
  auto seen = wanted.finish();
  rival.truth();
  std::set<std::uint64_t> own{seen.pid};
  for (auto& tid : seen.ready["tids"].items()) own.insert(tid.u64());
  for (std::size_t i = 0; i < filters.size(); i++) {
    SCOPED_TRACE(filters[i]);
    expect_same_waits(seen.report(i), seen.truth);
    for (auto& line : seen.report(i).body)
      EXPECT_TRUE(own.contains(line["tid"].u64())) << line.text();
  }
}

TOOL_TEST(Runqlat, ByPidNamespace) {
  struct stat own {};
  ASSERT_EQ(::stat("/proc/self/ns/pid", &own), 0);
  auto seen = observe("runqlat --json --pidnss -p {pid}", "runqueue --threads 2 --ms 100");
  auto report = seen.report();
  ASSERT_EQ(report.body.size(), 1u);
  expect_fields(report.body[0], {{"pid_namespace", own.st_ino}});
  EXPECT_GE(report.sum("count"), seen.truth["timeslices"].u64());
}

TESTS_OF(
    runqlat, .events = {"-L", "runqueue --threads 2 --ms 60"},
    // The kernel's count excludes a task that is preempted as it goes to sleep (sched_info_depart).
    .stress = count_row("runqueue --threads 3 --ms {n}", 600, "count", slices, "-L").with_slack(1),
    .long_run = {{.arguments = "-P 10"}});

}  // namespace
}  // namespace coretap::tooltest
