// perfcount against perf stat, and against workloads that count themselves.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr unsigned kWatching = 50;  // calls by children of the workload
constexpr char kGetppid[] = "syscalls:sys_enter_getppid", kExecve[] = "syscalls:sys_enter_execve";

Json event_of(const Report& report, const char* event) {
  return line_with(report.body, {{"type", "snapshot"}, {"event", event}});
}

bool has_event_open(pid_t pid) {
  std::error_code failed;
  for (auto& fd :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd", failed))
    if (std::filesystem::read_symlink(fd.path(), failed).string() == "anon_inode:[perf_event]")
      return true;
  return false;
}

/// perf stat's counts, by event.
std::map<std::string, double> counts_of_perf(const std::string& csv) {
  std::map<std::string, double> counts;
  std::istringstream lines(csv);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream cells(line);
    std::string value, unit, event;
    if (std::getline(cells, value, ',') && std::getline(cells, unit, ',') &&
        std::getline(cells, event, ',') && !value.empty() && isdigit(value[0]))
      counts[event] = std::stod(value);
  }
  return counts;
}

TOOL_TEST(Perfcount, EqualsPerf) {
  if (!std::filesystem::exists("/usr/bin/perf"))
    throw Skip("there is no perf (package linux-perf)");
  constexpr char kEvents[] = "task-clock,context-switches,page-faults,minor-faults,cpu-migrations";
  Workload faults(Workload::of({"faulter", "--anon", "20000"}, {.linger = true}));
  Process perf({.argv = {"perf", "stat", "-x,", "-e", kEvents, "-p", faults.id()}});
  ASSERT_TRUE(until([&] { return has_event_open(perf.pid()) || perf.ended(); }));
  nap(std::chrono::milliseconds(300));
  if (perf.ended()) throw Skip("perf does not run here: " + perf.err());
  Tracer ours("perfcount", {"--json", "-e", kEvents, "-p", faults.id()});
  faults.release();
  auto truth = faults.truth();
  auto report = ours.stop();
  perf.signal(2);
  perf.wait();
  auto theirs = counts_of_perf(perf.err());
  ASSERT_EQ(theirs.size(), 5u) << perf.err();
  for (auto* event : {"context-switches", "page-faults", "minor-faults", "cpu-migrations"})
    EXPECT_EQ(event_of(report, event)["count"].u64(), static_cast<std::uint64_t>(theirs[event]))
        << event;
  EXPECT_GE(event_of(report, "page-faults")["count"].u64(), 20000u);
  auto clock = theirs["task-clock"] * 1e6;
  expect_between(event_of(report, "task-clock")["count"].u64(), clock * 0.99, clock * 1.01);
}

TOOL_TEST(Perfcount, CommandAndDescendants) {
  auto report =
      report_of({"perfcount", "--json", "-e", std::string(kExecve) + ",page-faults,task-clock",
                 "--", "sh", "-c", "/bin/true; (/bin/true; /bin/true); :"});
  // Counters begin within the first execve().
  expect_fields(event_of(report, kExecve), {{"count", 3}, {"ratio", nullptr}});
  EXPECT_GT(event_of(report, "page-faults")["count"].u64(), 100u);
  auto clock = event_of(report, "task-clock");
  auto elapsed = line_with(report.body, {{"type", "elapsed"}});
  expect_between(clock["ratio"].real(), 0.001, 4);
  expect_between(clock["count"].real() / 1e9 / elapsed["elapsed_s"].real(),
                 clock["ratio"].real() * 0.99, clock["ratio"].real() * 1.01);
}

TOOL_TEST(Perfcount, OnlyTheProcess) {
  Process shell({.argv = {"sh", "-c", "read x; /bin/true; /bin/true; read y"}, .stdin_pipe = true});
  ASSERT_TRUE(await_sleep(shell.pid()));
  Tracer ours("perfcount", {"--json", "-e", std::string(kExecve) + ",syscalls:sys_enter_read", "-p",
                            std::to_string(shell.pid())});
  shell.write_stdin("x\n");
  ASSERT_TRUE(until([&] { return reads_stdin(shell.pid()); }));
  nap(std::chrono::milliseconds(200));
  auto report = ours.stop();
  EXPECT_GT(event_of(report, "syscalls:sys_enter_read")["count"].u64(), 0u);
  const auto children = event_of(report, kExecve)["count"].u64();
  EXPECT_TRUE(children == 0 || (children == 2 && kernel_before(5, 13))) << children;
}

TOOL_TEST(Perfcount, CgroupAndCpus) {
  Cgroup cgroup("perfcount");
  // Without any controller below the root, older kernels do not count in cgroups.
  std::ofstream(std::filesystem::path(cgroup.path()).parent_path() / "cgroup.subtree_control")
      << "+pids" << std::flush;
  Workload calls(Workload::of({"syscalls", "--calls", "5000"}, {.linger = true}));
  cgroup.add(calls.pid());
  Workload others("syscalls", Strings{"--calls", "700"});
  Tracer inside("perfcount", {"--json", "-e", kGetppid, "-c", cgroup.path()});
  Tracer by_cpu("perfcount", {"--json", "-A", "-e", kGetppid});
  calls.release();
  others.release();
  auto truth = calls.truth();
  others.truth();
  auto counted = event_of(inside.stop(), kGetppid)["count"].u64();
  expect_between(counted, 5000, 5000 + kWatching);
  auto report = by_cpu.stop();
  auto lines = lines_with(report.body, {{"type", "snapshot"}});
  EXPECT_GE(lines.size(), 1u);
  for (auto& line : lines) expect_fields(line, {{"event", kGetppid}});
  std::set<std::uint64_t> cpus;
  for (auto& line : lines) cpus.insert(line["cpu"].u64());
  EXPECT_EQ(cpus.size(), lines.size());
  EXPECT_GE(sum(lines, "count"), 5700u);
}

TOOL_TEST(Perfcount, IntervalsAddUp) {
  Workload calls(Workload::of({"syscalls", "--calls", "3000"}, {.linger = true}));
  Tracer ours("perfcount", {"--json", "-e", kGetppid, "-p", calls.id(), "0.1"});
  calls.release();
  calls.truth();
  nap(std::chrono::milliseconds(300));
  auto report = ours.stop();
  auto lines = lines_with(report.body, {{"type", "snapshot"}});
  EXPECT_GT(lines.size(), 2u);
  expect_between(sum(lines, "count"), 3000, 3000 + kWatching);
}

TOOL_TEST(Perfcount, GroupsCountTogether) {
  auto report = report_of("perfcount --json -e {cpu-clock,page-faults},{cs,migrations} 0.2 1");
  for (auto& line : lines_with(report.body, {{"type", "snapshot"}})) {
    EXPECT_EQ(line["counted_ratio"].real(), 1.0);
    (void)line["count"].u64();  // not null
  }
}

constexpr char kMsr[] = "/sys/bus/event_source/devices/msr/events/tsc";

TOOL_TEST(Perfcount, EventsOfPmus) {
  if (!std::filesystem::exists(kMsr)) throw Skip("this machine has no PMU msr");
  // The counter of time stamps: of a thread that is always on a CPU, and of the machine.
  Process busy({.argv = {"sh", "-c", "while :; do :; done"}});
  Tracer of_task("perfcount", {"--json", "-e", "task-clock,msr/tsc,name=ticks/", "-p",
                               std::to_string(busy.pid())});
  auto of_all = report_of("perfcount --json -A -e msr/tsc/ 1 1");
  auto task = of_task.stop();
  busy.signal(9);
  auto lines = lines_with(of_all.body, {{"type", "snapshot"}});
  ASSERT_GE(lines.size(), 1u);
  const auto hertz = lines[0]["count_per_second"].real();
  for (auto& line : lines) {
    expect_fields(line, {{"event", "msr/tsc/"}, {"scaled", nullptr}, {"unit", nullptr}});
    expect_between(line["count_per_second"].real(), hertz * 0.99, hertz * 1.01);
  }
  const auto seconds = event_of(task, "task-clock")["count"].real() / 1e9;
  expect_between(event_of(task, "ticks")["count"].real() / seconds, hertz * 0.99, hertz * 1.01);
  if (!std::filesystem::exists("/usr/bin/perf")) throw Skip("there is no perf (linux-perf)");
  Process perf({.argv = {"perf", "stat", "-x,", "-a", "-e", "msr/tsc/", "sleep", "1"}});
  perf.wait();
  std::istringstream cells(perf.err());
  std::string count, unit, event, ran_ns;
  for (auto* cell : {&count, &unit, &event, &ran_ns}) std::getline(cells, *cell, ',');
  if (count.empty() || !isdigit(count[0])) throw Skip("perf does not run here: " + perf.err());
  const auto theirs = std::stod(count) / std::stod(ran_ns) * 1e9;
  expect_between(hertz, theirs * 0.99, theirs * 1.01);
}

TOOL_TEST(Perfcount, RefusalsOfPmus) {
  expect_refused({"perfcount", "-e", "no_such_pmu/event=1/", "1", "1"},
                 {"no PMU 'no_such_pmu'", "PMUs here: ", "perf list"}, 3);
  expect_refused({"profile", "-e", "no_such_pmu/event=1/", "1"}, {"no PMU 'no_such_pmu'"}, 3);
  expect_refused({"perfcount", "-e", "cs,cpu/event=1"}, {"is not an event of a PMU"});
  expect_refused({"perfcount", "-e", "cpu/event=1/q"}, {"modifiers"});
  if (!std::filesystem::exists(kMsr)) throw Skip("this machine has no PMU msr");
  expect_refused({"perfcount", "-e", "msr/tsk/", "1", "1"},
                 {"the PMU msr has no term or event 'tsk'", "terms event, ", "events ", "'tsc'"});
  expect_refused({"profile", "-e", "msr/tsc/", "1"}, {"the PMU msr counts, but cannot sample"}, 3);
}

TOOL_TEST(Perfcount, Refusals) {
  expect_refused({"perfcount", "-e", ""}, {"needs an event"});
  expect_refused({"perfcount", "-e", "{cs"}, {"'{cs' has a brace"});
  expect_refused({"perfcount", "-e", "a}b,cs"}, {"'a}b,cs' has a brace"});
  expect_refused({"perfcount", "-e", "{}"}, {"no perf event ''"});
  expect_refused({"perfcount", "-e", "cs,cs"}, {"given twice"});
  expect_refused({"perfcount", "-e", "page-fault"}, {"page-faults"});
  expect_refused({"perfcount", "-e", "no:such"}, {"no tracepoint no:such"}, 3);
  expect_refused({"perfcount", "-A", "-p", "1"}, {"counters of tasks"});
  expect_refused({"perfcount", "-c", "/", "-p", "1"}, {"together"});
  expect_refused({"perfcount", "--not-pid", "1"}, {"cannot exclude"});
}

TESTS_OF(perfcount, .reports = {{ReportKind::snapshot}},
         .events = {.options = "0.1", .command = "syscalls --calls 10"},
         .long_run = {{.arguments = "1"}});

}  // namespace
}  // namespace coretap::tooltest
