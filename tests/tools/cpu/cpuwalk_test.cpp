// cpuwalk against the kernel's time on a CPU of tasks that keep to one, and /proc/stat.
#include <unistd.h>

#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Cpuwalk, BusyOnTheCpuOfTheTasks) {
  require_tool("cpuwalk");
  Workload workload("runqueue", {"--threads", "2", "--ms", "1000"}, kLinger);
  Tracer tracer("cpuwalk", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto expected = static_cast<double>(truth["on_cpu_ns"].u64());
  bool found = false;
  std::uint64_t last = 0;
  for (auto& line : report.body) {
    EXPECT_TRUE(&line == &report.body.front() || line["cpu"].u64() > last) << "by number";
    last = line["cpu"].u64();
    EXPECT_LE(line["busy_ratio"].real(), 1);
    auto busy = static_cast<double>(line["busy_ns"].u64());
    if (line["cpu"].u64() != truth["cpu"].u64()) {
      EXPECT_LE(busy, 0.2 * expected) << "its main thread";
      continue;
    }
    found = true;
    // The kernel's own sum leaves interrupts out; its main thread may run here too.
    EXPECT_GE(busy, 0.97 * expected);
    EXPECT_LE(busy, 1.10 * expected + 5e7);
  }
  EXPECT_TRUE(found);
}

/// Seconds of /proc/stat in which a CPU did something, and all.
struct Seconds {
  double busy = 0, all = 0;
};
Seconds seconds_of(std::uint64_t cpu) {
  std::istringstream file(slurp("/proc/stat"));
  auto name = "cpu" + std::to_string(cpu);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != name) continue;
    Seconds t;
    double n = 0;
    for (int i = 0; i < 8 && words >> n; i++) {
      n /= static_cast<double>(::sysconf(_SC_CLK_TCK));
      t.all += n;
      if (i != 3 && i != 4) t.busy += n;
    }
    return t;
  }
  throw Skip("no such CPU in /proc/stat");
}

// Sums of intervals too: what runs at the end of one is in both with its parts.
TOOL_TEST(Cpuwalk, AllTasksAsInProcStat) {
  require_tool("cpuwalk");
  Workload workload("runqueue", {"--threads", "1", "--ms", "2000"}, kLinger);
  auto cpu = workload.ready()["cpu"].u64();
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto& more : {Strings{}, Strings{"0.2"}}) {
    Strings words{"--json"};
    words.insert(words.end(), more.begin(), more.end());
    tracers.push_back(std::make_unique<Tracer>("cpuwalk", words));
  }
  auto before = seconds_of(cpu);
  workload.release();
  workload.truth();
  auto after = seconds_of(cpu);
  for (auto& tracer : tracers) {
    auto report = tracer->stop();
    double busy = 0;
    std::size_t cpus = 0, reports = 0;
    for (auto& line : report.body) {
      if (line["cpu"].u64() == report.body[0]["cpu"].u64()) reports++;
      cpus++;
      if (line["cpu"].u64() == cpu) busy += static_cast<double>(line["busy_ns"].u64()) / 1e9;
    }
    // /proc/stat counts in ticks; the tool traced a little longer.
    EXPECT_GE(busy, 0.95 * (after.busy - before.busy) - 0.05);
    EXPECT_LE(busy, 1.05 * (after.busy - before.busy) + 0.3 * slowness());
    EXPECT_EQ(cpus, reports * static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)))
        << "idle CPUs too";
  }
}

// A task that never leaves its CPU is in each interval.
TOOL_TEST(Cpuwalk, SharesOfIntervals) {
  require_tool("cpuwalk");
  Workload workload("sleeper", {"--sleeps", "1", "--ms", "1", "--spin", "4000"}, {});
  workload.release();
  ASSERT_TRUE(until([&] { return state_of(workload.pid()) == 'R'; }));
  auto result = run({tool_path("cpuwalk"), "--json", "-p", workload.id(), "0.5", "3"});
  ASSERT_EQ(result.status, 0) << result.err;
  auto report = parse_report(result.out, result.err);
  auto cpus = static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN));
  ASSERT_EQ(report.body.size(), 3 * cpus);
  for (std::size_t i = 0; i < 3; i++) {
    double share = 0;
    for (std::size_t cpu = 0; cpu < cpus; cpu++)
      share += report.body[i * cpus + cpu]["busy_ratio"].real();
    EXPECT_GE(share, 0.2) << "others run too";
    EXPECT_LE(share, 1.02);
  }
}

TOOL_TEST(Cpuwalk, NodesAreTheSumsOfTheirCpus) {
  require_tool("cpuwalk");
  Workload workload("runqueue", {"--threads", "2", "--ms", "500"}, kLinger);
  Tracer nodes("cpuwalk", {"--json", "--per-node", "-p", workload.id()});
  Tracer cpus("cpuwalk", {"--json", "-p", workload.id()});
  workload.release();
  workload.truth();
  auto by_node = nodes.stop(), by_cpu = cpus.stop();
  auto sum = static_cast<double>(by_cpu.sum("busy_ns"));
  EXPECT_GT(sum, 4e8);
  EXPECT_NEAR(static_cast<double>(by_node.sum("busy_ns")), sum, 0.02 * sum);
  for (auto& line : by_node.body) EXPECT_LE(line["busy_ratio"].real(), 1);
}

TOOL_TEST(Cpuwalk, TextIsTheKnownHistogram) {
  require_tool("cpuwalk");
  auto result = run({tool_path("cpuwalk"), "0.5", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("       cpu : msecs    distribution\n         0 : "), std::string::npos)
      << result.out;
}

const DeclareTests kCpuwalk{{
    .name = "cpuwalk",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "runqueue --threads 2 --ms 60"},
    .stress = {.workload = "runqueue --threads 3 --ms {n}",
               .events = 600,
               .shown = "stints",
               .truth =
                   [](stress::Load& load) {
                     return load.grown(
                         [](const stress::Rest::Thread& t) { return t.voluntary + t.preempted; });
                   }},
    .long_run = {{.arguments = "10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
