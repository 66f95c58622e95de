// neighbours against the kernel's own times of tasks (schedstat) and cgroups (cpu.stat,
// *.pressure).
#include <sched.h>

#include "../quota.hpp"
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

constexpr double kOneSecond = 1e9;

std::string path_of(const Cgroup& cgroup) { return cgroup.path().substr(cgroup.path().rfind('/')); }

/// A busy thread on the CPU that all such share, in a separate cgroup.
struct Neighbour {
  Cgroup cgroup;
  Workload load;

  explicit Neighbour(int ms, int nice = 0)
      : load("runqueue", "--threads 1 --ms " + std::to_string(ms), kLinger) {
    cgroup.add(std::stoi(load.id()));
    if (nice) ::setpriority(PRIO_PROCESS, tid(), nice);
  }
  unsigned tid() { return static_cast<unsigned>(load.ready()["tids"].items().at(0).u64()); }
  std::string name() const { return path_of(cgroup); }
};

std::vector<Json> victims(const Report& report) {
  auto rows = lines_with(report.body, {{"type", "victim"}});
  for (auto& row : rows) {
    std::uint64_t waits = 0;
    for (auto* part : {"limit_ns", "itself_ns", "others_ns", "realtime_ns", "kernel_ns", "idle_ns",
                       "unknown_ns"})
      waits += row[part].u64();
    EXPECT_LE(waits, row["wait_ns"].u64());
    if (!row["irq_ns"].is_null()) {
      EXPECT_GE(waits + row["irq_ns"].u64(), row["wait_ns"].u64());
    }
    std::uint64_t culprits = 0;
    for (auto& c : row["culprits"].items()) culprits += c["time_ns"].u64();
    EXPECT_EQ(culprits, row["itself_ns"].u64() + row["others_ns"].u64() + row["realtime_ns"].u64() +
                            row["kernel_ns"].u64());
  }
  return rows;
}
Json victim(const Report& report, const std::string& cgroup) {
  return lines_with(victims(report), {{"cgroup", cgroup}}).at(0);
}
double lost_to(const Json& row, const std::string& cgroup, const std::string& part = "others") {
  double ns = 0;
  for (auto& c : row["culprits"].items())
    if (c["cgroup"].str() == cgroup && c["part"].str() == part) ns += c["time_ns"].real();
  return ns;
}
/// When a task that is woken preempts another one, the kernel's clock stands still from the wake-up
/// to the switch: that time is run delay there.
void expect_waits(double ns, double delay, Location where = Location::current()) {
  expect_between(ns, 0.92 * delay, 1.03 * delay + 20e6 * slowness(), where);
}
/// Each wait counts, and is lost to somebody.
void expect_charged(const Report& report) {
  auto total = line_with(report.body, {{"type", "total"}});
  EXPECT_LE(total["unknown_ns"].real(), 0.01 * total["wait_ns"].real() + 5e6);
}

// One of three loses to the others exactly the time that they have.
TOOL_TEST(Neighbours, SharesOfKnownLoads) {
  require_whole_cpus();
  constexpr int kMs = 2000;
  Neighbour one(kMs), two(kMs), favoured(kMs, -6);
  write_file(favoured.cgroup.path() + "/cpu.weight", "300");
  Tracer tracer("neighbours", "--json");
  for (auto* each : {&one, &two, &favoured}) each->load.release();
  std::map<std::string, Json> truth;
  for (auto* each : {&one, &two, &favoured}) truth[each->name()] = each->load.truth();
  auto report = tracer.stop();
  expect_charged(report);
  for (auto* each : {&one, &two, &favoured}) {
    auto row = victim(report, each->name());
    auto delay = truth[each->name()]["run_delay_ns"].real();
    EXPECT_GT(delay, 0.3 * kOneSecond);
    expect_waits(row["wait_ns"].real(), delay);
    double lost = 0, had_all = 0;
    for (auto* other : {&one, &two, &favoured}) {
      if (other == each) continue;
      lost += lost_to(row, other->name());
      had_all += truth[other->name()]["on_cpu_ns"].real();
    }
    for (auto* other : {&one, &two, &favoured}) {
      if (other == each) continue;
      auto had = truth[other->name()]["on_cpu_ns"].real();
      // They do not begin and end at the same time.
      EXPECT_NEAR(lost_to(row, other->name()), had, 0.08 * had + 10e6 * slowness());
      EXPECT_NEAR(lost_to(row, other->name()) / lost, had / had_all, 0.05 * had / had_all);
    }
  }
}

TOOL_TEST(Neighbours, QuotaIsThatOfTheKernel) {
  require_tool("neighbours");
  Quota quota;
  Process probe({.argv = {"/bin/sleep", "1"}});
  quota.add(probe.pid());  // or skips
  probe.wait();            // it may lack quota, too
  auto stat = quota.stat();
  Tracer tracer("neighbours", {"--json", "--", "sh", "-c", quota.computes()}, {.attached = false});
  auto report = tracer.finish();
  const auto throttled = Quota::throttled(stat);
  ASSERT_GT(throttled, kOneSecond / 2);
  double limit = 0;
  for (auto& row : victims(report)) limit += row["limit_ns"].real();
  bool exact = true;
  for (auto& text : line_with(report.body, {{"type", "total"}})["approximate"].strings())
    exact &= !text.starts_with("limit");
  EXPECT_NEAR(limit, throttled, (exact ? 0.02 : 0.15) * throttled) << report.body.at(0).text();
}

TOOL_TEST(Neighbours, RealTimeTasksAreNamed) {
  require_whole_cpus();
  Neighbour victim_load(1000), urgent(600);
  sched_param rt{};
  rt.sched_priority = 1;
  if (::sched_setscheduler(static_cast<pid_t>(urgent.tid()), SCHED_FIFO, &rt))
    throw Skip("no real-time tasks here");
  Tracer tracer("neighbours", "--json");
  victim_load.load.release();
  urgent.load.release();
  auto had = urgent.load.truth()["on_cpu_ns"].real();
  victim_load.load.truth();
  auto report = tracer.stop();
  auto row = victim(report, victim_load.name());
  ASSERT_GT(had, 0.3 * kOneSecond);
  EXPECT_NEAR(lost_to(row, urgent.name(), "realtime"), had, 0.08 * had + 10e6 * slowness());
  EXPECT_LE(lost_to(row, urgent.name()), 0.05 * had);
  // The other one waits only for the end of real-time throttling.
  EXPECT_LE(victim(report, urgent.name())["others_ns"].real(), 0.15 * kOneSecond);
}

// A thread that wants a CPU all the time has all of each interval, and no more.
TOOL_TEST(Neighbours, IntervalsAreWhole) {
  require_whole_cpus();
  Neighbour one(2500), two(2500);
  Tracer tracer("neighbours", "--json 0.4");
  one.load.release();
  two.load.release();
  one.load.truth();
  two.load.truth();
  auto report = tracer.stop();
  auto rows = lines_with(victims(report), {{"cgroup", one.name()}});
  // It begins and ends within an interval. Its first thread runs shortly before and after.
  std::vector<std::pair<double, double>> busy;  // wanted, and the interval
  for (auto& row : rows) {
    double wanted = row["run_ns"].real() + row["irq_ns"].real();
    for (auto* part : {"limit_ns", "itself_ns", "others_ns", "realtime_ns", "kernel_ns", "idle_ns",
                       "unknown_ns"})
      wanted += row[part].real();
    auto total = lines_with(report.body, {{"type", "total"}, {"time", row["time"].str()}}).at(0);
    if (wanted > 0.02 * kOneSecond) busy.emplace_back(wanted, total["wall_ns"].real());
  }
  ASSERT_GE(busy.size(), 5u);
  for (std::size_t i = 1; i + 1 < busy.size(); i++)
    EXPECT_NEAR(busy[i].first, busy[i].second, 0.03 * busy[i].second + 10e6 * slowness());
}

TOOL_TEST(Neighbours, TaskThatMovesToAnotherCgroup) {
  require_whole_cpus();
  Neighbour one(1200), two(1200);
  Cgroup later;
  Tracer tracer("neighbours", "--json -p " + one.load.id());
  one.load.release();
  two.load.release();
  nap(std::chrono::milliseconds(600));
  later.add(std::stoi(one.load.id()));
  auto delay = one.load.truth()["run_delay_ns"].real();
  two.load.truth();
  auto report = tracer.stop();
  auto before = victim(report, one.name())["wait_ns"].real(),
       after = victim(report, path_of(later))["wait_ns"].real();
  EXPECT_GT(before, 0.15 * delay);
  EXPECT_GT(after, 0.15 * delay);
  expect_waits(before + after, delay);
  EXPECT_TRUE(lines_with(victims(report), {{"cgroup", two.name()}}).empty()) << "not wanted";
}

// Its numbers stay; its name is known if it existed at a report.
TOOL_TEST(Neighbours, CgroupsThatAreRemoved) {
  require_whole_cpus();
  Neighbour stays(static_cast<int>(std::min(10'000.0, 1500 * slowness())));
  Tracer tracer("neighbours", "--json");
  stays.load.release();
  double had = 0;
  for (int i = 0; i < 5; i++) {
    Neighbour goes(100);
    goes.load.release();
    had += goes.load.truth()["on_cpu_ns"].real();
  }
  stays.load.truth();
  auto report = tracer.stop();
  expect_charged(report);
  auto row = victim(report, stays.name());
  ASSERT_GT(had, 0.02 * kOneSecond);
  double lost = 0;
  for (auto& c : row["culprits"].items())
    if (c["cgroup"].str().starts_with("cgroup ") || c["cgroup"].str().find("coretap-test-") == 1)
      lost += c["part"].str() == "others" ? c["time_ns"].real() : 0;
  EXPECT_GE(lost, 0.9 * had);
}

TOOL_TEST(Neighbours, ManyThreadsInOneCgroup) {
  require_whole_cpus();
  Cgroup crowd;
  Workload load("runqueue", "--threads 64 --ms 1500", kLinger);
  crowd.add(std::stoi(load.id()));
  Neighbour one(1500);
  Tracer tracer("neighbours", "--json");
  load.release();
  one.load.release();
  auto truth = load.truth();
  one.load.truth();
  auto report = tracer.stop();
  expect_charged(report);
  auto row = victim(report, path_of(crowd));
  auto delay = truth["run_delay_ns"].real();
  expect_between(row["wait_ns"].real(), 0.92 * delay, 1.03 * delay + 0.3 * kOneSecond * slowness());
  EXPECT_GT(row["itself_ns"].real(), 0.3 * delay);
}

TOOL_TEST(Neighbours, PressureIsThatOfTheCgroup) {
  require_whole_cpus();
  Neighbour one(1000), two(1000);
  auto total = [&] {
    auto text = slurp(one.cgroup.path() + "/cpu.pressure");
    auto at = text.find("total=");
    if (at == std::string::npos) throw Skip("no pressure of cgroups here");
    return std::stod(text.substr(at + 6)) * 1e3;
  };
  auto before = total();
  Tracer tracer("neighbours", "--json");
  auto at_start = total();
  one.load.release();
  two.load.release();
  one.load.truth();
  two.load.truth();
  auto at_end = total();
  auto row = victim(tracer.stop(), one.name());
  expect_between(row["pressure_cpu_ns"].real(), at_end - at_start, total() - before);
}

TOOL_TEST(Neighbours, ReclaimBelowALimit) {
  require_tool("neighbours");
  Workload load("reclaim", "--memcg");
  Trace trace({"vmscan/mm_vmscan_memcg_reclaim_begin", "vmscan/mm_vmscan_memcg_reclaim_end"});
  Tracer tracer("neighbours", "--json -p " + std::to_string(load.ready()["worker_pid"].u64()));
  load.release();
  load.truth();
  auto report = tracer.stop();
  trace.stop();
  std::map<pid_t, std::uint64_t> begun;
  double truth = 0, own = 0, machine = 0;
  for (auto& e : trace.events()) {
    if (e.name.ends_with("_begin"))
      begun[e.task] = e.ns;
    else if (begun[e.task])
      truth += static_cast<double>(e.ns - begun[e.task]);
  }
  for (auto& row : victims(report)) {
    own += row["reclaim_own_ns"].real();
    machine += row["reclaim_machine_ns"].real();
  }
  ASSERT_GT(truth, 0);
  EXPECT_NEAR(own, truth, 0.1 * truth + 2e6);
  EXPECT_EQ(machine, 0);
}

TOOL_TEST(Neighbours, ByUnitAndWithoutHooks) {
  Neighbour one(300);
  Tracer tracer("neighbours", "--json --by unit --no-irq --no-idle");
  one.load.release();
  one.load.truth();
  auto report = tracer.stop();
  auto row = victim(report, "-");
  EXPECT_TRUE(row["irq_ns"].is_null());
  EXPECT_TRUE(row["unused_ns"].is_null());
  EXPECT_TRUE(row["pressure_cpu_ns"].is_null());
  EXPECT_GE(row["run_ns"].real(), 0.1 * kOneSecond);
  expect_refused("neighbours --by nothing", {"there is no key 'nothing'"});
  expect_refused("neighbours --by cgroup,unit", {"takes one key"});
}

TESTS_OF(neighbours, .reports = {{ReportKind::aggregate}},
         .events = {.options = "", .command = "runqueue --threads 2 --ms 50"}, .alone = true,
         .stress = total_row(
                       "runqueue --threads 3 --ms {n}", 600,
                       [](const Json& line) {
                         return line["type"].str() == "total" ? line["waits"].u64() : 0;
                       },
                       slices)
                       .with_slack(1),
         .long_run = {{.arguments = "10"}});

}  // namespace
}  // namespace coretap::tooltest
