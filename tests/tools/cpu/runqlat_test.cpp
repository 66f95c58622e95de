// runqlat against the kernel's own sums of run delay in /proc/PID/task/TID/schedstat.
#include <grp.h>
#include <sched.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <map>
#include <set>
#include <thread>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// Where the tool reads the kernel's accounting it adds the very same numbers: any difference is an
/// error. Timestamps of wakeups (the other way) are taken a little later than the kernel's, and
/// before a task is queued; 3% covers that in emulated guests, whose waits are long.
struct Tolerance {
  double below, above;
};
Tolerance tolerance(const Report& report) {
  bool accounting = report.header["hooks"].items().at(0)["attached"].items().size() == 1;
  return accounting ? Tolerance{1, 1} : Tolerance{0.97, 1.03};
}

using Threads = std::map<std::uint64_t, Json>;

Threads by_tid(const Report& report) {
  Threads all;
  for (auto& line : report.body) {
    // A thread that changes its name has a histogram for each: the one that it waited most in.
    auto [known, fresh] = all.emplace(line["tid"].u64(), line);
    if (!fresh && line["total_ns"].u64() > known->second["total_ns"].u64()) known->second = line;
  }
  return all;
}

/// The threads' waits in the report are those in the workload's truth. Nothing of them is outside
/// the time that both measured: they sleep before the start and, while the workload lingers, after
/// it.
void expect_same_waits(const Report& report, const Json& truth) {
  auto allowed = tolerance(report);
  auto threads = by_tid(report);
  for (auto& thread : truth["threads"].items()) {
    auto found = threads.find(thread["tid"].u64());
    ASSERT_NE(found, threads.end()) << "thread " << thread["tid"].u64() << " is missing";
    auto& histogram = found->second;
    auto delay = static_cast<double>(thread["run_delay_ns"].u64());
    EXPECT_GE(static_cast<double>(histogram["total_ns"].u64()), delay * allowed.below);
    EXPECT_LE(static_cast<double>(histogram["total_ns"].u64()), delay * allowed.above);
    // A switch from a thread to itself counts as no time slice in newer kernels: never more here.
    EXPECT_EQ(histogram["count"].u64(), thread["timeslices"].u64());
    check_histogram(histogram, 1000);
  }
}

TOOL_TEST(Runqlat, TotalIsTheKernelsRunDelay) {
  require_tool("runqlat");
  Workload workload("runqueue", {"--threads", "3", "--ms", "300"}, kLinger);
  Tracer tracer("runqlat", {"--json", "--strict", "-L", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  expect_same_waits(report, truth);
  for (auto& line : report.body) EXPECT_EQ(line["comm"].str(), "runqueue");
}

// What a thread has waited on one CPU counts when it gets another one.
TOOL_TEST(Runqlat, ThreadsThatAreMovedWhileTheyWait) {
  require_tool("runqlat");
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) throw Skip("there is one CPU");
  Workload workload("runqueue", {"--threads", "4", "--ms", "400"}, kLinger);
  Tracer tracer("runqlat", {"--json", "--strict", "-L", "-p", workload.id()});
  auto tids = workload.ready()["tids"].items();
  workload.release();
  // Of a thread that has not been seen to run, what it waited on another CPU is not known.
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  for (int i = 0; i < 40; i++) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(i % 2, &one);
    for (auto& tid : tids) ::sched_setaffinity(static_cast<pid_t>(tid.i64()), sizeof one, &one);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  auto truth = workload.truth();
  expect_same_waits(tracer.stop(), truth);
}

TOOL_TEST(Runqlat, UnkeyedAndPerProcessTotals) {
  require_tool("runqlat");
  Workload workload("runqueue", {"--threads", "3", "--ms", "300"}, kLinger);
  Strings tids;
  for (auto& tid : workload.ready()["tids"].items()) tids.push_back(std::to_string(tid.u64()));
  auto list = tids[0] + "," + tids[1] + "," + tids[2];
  Tracer plain("runqlat", {"--json", "--strict", "-t", list});
  Tracer process("runqlat", {"--json", "--strict", "-P", "-t", list});
  Tracer milliseconds("runqlat", {"--json", "-m", "-t", list});
  workload.release();
  auto truth = workload.truth();
  auto delay = static_cast<double>(truth["run_delay_ns"].u64());
  for (auto* tracer : {&plain, &process, &milliseconds}) {
    auto report = tracer->stop();
    auto allowed = tolerance(report);
    ASSERT_EQ(report.body.size(), 1u);
    EXPECT_GE(static_cast<double>(report.sum("total_ns")), delay * allowed.below);
    EXPECT_LE(static_cast<double>(report.sum("total_ns")), delay * allowed.above);
    EXPECT_EQ(report.sum("count"), truth["timeslices"].u64());
    check_histogram(report.body[0], tracer == &milliseconds ? 1'000'000 : 1000);
    if (tracer != &process) continue;
    EXPECT_EQ(report.body[0]["pid"].i64(), workload.pid());
    EXPECT_EQ(report.body[0]["comm"].str(), "runqueue");
  }
}

TOOL_TEST(Runqlat, IntervalsLoseAndDoubleNothing) {
  require_tool("runqlat");
  Workload workload("runqueue", {"--threads", "3", "--ms", "400"}, kLinger);
  Strings tids;
  for (auto& tid : workload.ready()["tids"].items()) tids.push_back(std::to_string(tid.u64()));
  auto list = tids[0] + "," + tids[1] + "," + tids[2];
  Tracer keyed("runqlat", {"--json", "-L", "-t", list, "0.05"});
  Tracer plain("runqlat", {"--json", "-t", list, "0.05"});
  workload.release();
  auto truth = workload.truth();
  for (auto* tracer : {&keyed, &plain}) {
    auto report = tracer->stop();
    auto allowed = tolerance(report);
    EXPECT_GT(report.body.size(), 3u);
    auto delay = static_cast<double>(truth["run_delay_ns"].u64());
    EXPECT_GE(static_cast<double>(report.sum("total_ns")), delay * allowed.below);
    EXPECT_LE(static_cast<double>(report.sum("total_ns")), delay * allowed.above);
    EXPECT_EQ(report.sum("count"), truth["timeslices"].u64());
  }
}

// More processes than there is room for, though never many at a time: with reports in between the
// ended ones make room.
TOOL_TEST(Runqlat, EndedProcessesMakeRoom) {
  require_tool("runqlat");
  Cgroup cgroup;
  Workload workload("forker", {"--serial", "--children", "900", "--ms", "2"});
  cgroup.add(workload.pid());
  const Strings common{"--json", "-P", "-c", cgroup.path(), "--max-keys", "256"};
  auto with = [&](Strings more) {
    more.insert(more.begin(), common.begin(), common.end());
    return std::make_unique<Tracer>("runqlat", more);
  };
  auto once = with({}), often = with({"0.05"});
  workload.release();
  auto truth = workload.truth();
  auto without = once->stop(), report = often->stop();
  EXPECT_GT(without.lost("untracked"), 0u) << "the room is small";
  EXPECT_EQ(report.lost("untracked"), 0u);
  std::set<std::uint64_t> pids;
  for (auto& line : report.body)
    if (line["count"].u64()) pids.insert(line["pid"].u64());
  EXPECT_GE(pids.size(), 901u);
}

// What waits is asked, not what wakes or leaves: rivals on the same CPU are not counted.
TOOL_TEST(Runqlat, FiltersAreAboutTheTaskThatWaits) {
  require_tool("runqlat");
  Cgroup cgroup;
  constexpr uid_t kUser = 54321;
  auto become_user = [] {
    if (::setgroups(0, nullptr) || ::setresgid(kUser, kUser, kUser) ||
        ::setresuid(kUser, kUser, kUser))
      ::_exit(126);
  };
  Workload wanted("runqueue", {"--threads", "2", "--ms", "300", "--comm", "rq-wanted"},
                  {.linger = true, .in_child = become_user});
  Workload rival("runqueue", {"--threads", "2", "--ms", "300"}, kLinger);
  ASSERT_EQ(wanted.ready()["cpu"].u64(), rival.ready()["cpu"].u64());
  cgroup.add(wanted.pid());
  std::vector<Strings> filters{{"-c", cgroup.path()},
                               {"-u", std::to_string(kUser)},
                               {"--comm", "rq-wanted"},
                               {"-p", wanted.id()}};
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto filter : filters) {
    filter.insert(filter.end(), {"--json", "--strict", "-L"});
    tracers.push_back(std::make_unique<Tracer>("runqlat", filter));
  }
  rival.release();
  wanted.release();
  auto truth = wanted.truth();
  rival.truth();
  std::set<std::uint64_t> own{static_cast<std::uint64_t>(wanted.pid())};
  for (auto& tid : wanted.ready()["tids"].items()) own.insert(tid.u64());
  for (std::size_t i = 0; i < tracers.size(); i++) {
    SCOPED_TRACE(filters[i][0]);
    auto report = tracers[i]->stop();
    expect_same_waits(report, truth);
    for (auto& [tid, line] : by_tid(report))
      EXPECT_TRUE(own.contains(tid)) << tid << line["comm"].str();
  }
}

TOOL_TEST(Runqlat, ByPidNamespace) {
  require_tool("runqlat");
  struct stat own {};
  ASSERT_EQ(::stat("/proc/self/ns/pid", &own), 0);
  Workload workload("runqueue", {"--threads", "2", "--ms", "100"}, kLinger);
  Tracer tracer("runqlat", {"--json", "--pidnss", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["pid_namespace"].u64(), own.st_ino);
  EXPECT_GE(report.sum("count"), truth["timeslices"].u64());
}

TOOL_TEST(Runqlat, UnfilteredHoldsAllOfIt) {
  require_tool("runqlat");
  Workload workload("runqueue", {"--threads", "2", "--ms", "200"}, kLinger);
  Tracer all("runqlat", {"--json", "-L"});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop();
  EXPECT_FALSE(report.ledger["data_lost"].boolean());
  expect_same_waits(report, truth);
}

// Threads that begin while tracing goes on, and what a command's children wait.
TOOL_TEST(Runqlat, FollowsACommand) {
  require_tool("runqlat");
  Tracer tracer("runqlat",
                {"--json", "-L", "--", workload_path("runqueue"), "--threads", "3", "--ms", "200"},
                {.attached = false});
  ASSERT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  auto report = parse_report(tracer.process().out(), tracer.process().err());
  ASSERT_TRUE(report.truth);
  auto threads = by_tid(report);
  auto allowed = tolerance(report);
  for (auto& thread : (*report.truth)["threads"].items()) {
    auto found = threads.find(thread["tid"].u64());
    ASSERT_NE(found, threads.end());
    // It also waits before and after the part that the workload measures.
    EXPECT_GE(static_cast<double>(found->second["total_ns"].u64()),
              static_cast<double>(thread["run_delay_ns"].u64()) * allowed.below);
    EXPECT_GE(found->second["count"].u64(), thread["timeslices"].u64());
  }
}

const DeclareTests kRunqlat{{
    .name = "runqlat",
    .reports = {{ReportKind::aggregate}},
    .events = {"-L", "runqueue --threads 2 --ms 60"},
    .stress = {.workload = "runqueue --threads 3 --ms {n}",
               .events = 600,
               .options = "-L",
               .shown = "count",
               .truth =
                   [](stress::Load& load) {
                     return load.grown([](const stress::Rest::Thread& t) { return t.slices; });
                   },
               .tiny = "--max-keys 1",
               // The kernel's own count leaves out a task that is preempted as it goes to sleep
               // (sched_info_depart).
               .slack = 1},
    .long_run = {{.arguments = "-P 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
