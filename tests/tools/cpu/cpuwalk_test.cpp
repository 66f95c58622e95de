// cpuwalk against the kernel's time on a CPU of tasks that keep to one, and /proc/stat.
#include <unistd.h>

#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr double kHz = 999;
const Workload::How kLinger{.linger = true};

TOOL_TEST(Cpuwalk, BusyOnTheCpuOfTheTasks) {
  require_tool("cpuwalk");
  Workload workload("runqueue", {"--threads", "2", "--ms", "1500"}, kLinger);
  Tracer tracer("cpuwalk", {"--json", "--strict", "-F", "999", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto expected = static_cast<double>(truth["on_cpu_ns"].u64()) / 1e9 * kHz;
  bool found = false;
  std::uint64_t last = 0;
  for (auto& line : report.body) {
    EXPECT_TRUE(&line == &report.body.front() || line["cpu"].u64() > last) << "by number";
    last = line["cpu"].u64();
    EXPECT_LE(line["busy_ratio"].real(), 1);
    if (line["cpu"].u64() != truth["cpu"].u64()) {
      EXPECT_LE(line["busy"].u64(), 20u) << "its main thread";
      continue;
    }
    found = true;
    // Ticks of a busy guest come late.
    EXPECT_GT(static_cast<double>(line["busy"].u64()), 0.75 * expected);
    EXPECT_LT(static_cast<double>(line["busy"].u64()), 1.25 * expected + 10);
  }
  EXPECT_TRUE(found);
}

/// Ticks of /proc/stat in which a CPU ran a task, and all.
struct Ticks {
  double busy = 0, all = 0;
};
Ticks ticks_of(std::uint64_t cpu) {
  std::istringstream file(slurp("/proc/stat"));
  auto name = "cpu" + std::to_string(cpu);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string first;
    words >> first;
    if (first != name) continue;
    Ticks t;
    double n = 0;
    for (int i = 0; i < 8 && words >> n; i++) {
      t.all += n;
      if (i != 3 && i != 4) t.busy += n;
    }
    return t;
  }
  throw Skip("no such CPU in /proc/stat");
}

TOOL_TEST(Cpuwalk, AllTasksAsInProcStat) {
  require_tool("cpuwalk");
  Workload workload("runqueue", {"--threads", "1", "--ms", "1500"}, kLinger);
  Tracer tracer("cpuwalk", {"--json", "--strict", "-F", "999"});
  auto cpu = workload.ready()["cpu"].u64();
  auto before = ticks_of(cpu);
  workload.release();
  workload.truth();
  auto after = ticks_of(cpu);
  auto report = tracer.stop();
  auto busy = (after.busy - before.busy) / (after.all - before.all);
  for (auto& line : report.body)
    if (line["cpu"].u64() == cpu) {
      EXPECT_NEAR(line["busy_ratio"].real(), busy, 0.3);
    }
  EXPECT_EQ(report.body.size(), static_cast<std::size_t>(::sysconf(_SC_NPROCESSORS_ONLN)))
      << "idle CPUs too";
}

TOOL_TEST(Cpuwalk, NodesAreTheSumsOfTheirCpus) {
  require_tool("cpuwalk");
  auto result = run({tool_path("cpuwalk"), "--json", "--per-node", "-F", "99", "0.5", "1"});
  ASSERT_EQ(result.status, 0) << result.err;
  auto report = parse_report(result.out, result.err);
  for (auto& line : report.body)
    EXPECT_TRUE(line["node"].u64() == 0 || !slurp("/sys/devices/system/node/node" +
                                                  std::to_string(line["node"].u64()) + "/cpulist")
                                                .empty());
  auto cpus = static_cast<double>(::sysconf(_SC_NPROCESSORS_ONLN));
  EXPECT_LT(static_cast<double>(report.sum("busy")), 2 * 49 * cpus * slowness());
}

TOOL_TEST(Cpuwalk, TextIsTheKnownHistogram) {
  require_tool("cpuwalk");
  auto result = run({tool_path("cpuwalk"), "0.5", "1"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_NE(result.out.find("       cpu : count    distribution\n         0 : "), std::string::npos)
      << result.out;
}

constexpr std::uint64_t kStressPeriodNs = 5'000'000;

const DeclareTests declared{{
    .name = "cpuwalk",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, {"runqueue", "--threads", "2", "--ms", "60"}},
    .stress = {.workload = "sleeper",
               .arguments = [](std::uint64_t n) -> Strings {
                 return {"--sleeps", "1", "--spin", std::to_string(n)};
               },
               .events = 1000,
               .options = {"--period", std::to_string(kStressPeriodNs)},
               .shown = [](const Json& line) { return line["busy"].u64(); },
               .truth =
                   [](stress::Load& load) {
                     return load.grown([](const stress::Rest::Thread& t) { return t.on_cpu_ns; }) /
                            kStressPeriodNs;
                   },
               .tolerance = 0.25},
    .long_run = {{.arguments = {"10"}}},
}};

}  // namespace
}  // namespace coretap::tooltest
