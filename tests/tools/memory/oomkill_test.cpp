// oomkill against the counters of a memory cgroup and the kernel's log of each killed process.
#include <sys/klog.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// Per-CPU counters lack at most a batch each.
void expect_near(std::uint64_t bytes, std::uint64_t kb) {
  auto cpus = static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_CONF));
  auto most = cpus * std::max<std::uint64_t>(32, 2 * cpus) * 4096;
  EXPECT_LE(bytes, (kb << 10) + most);
  EXPECT_GE(bytes + most, kb << 10);
}

/// The kernel's log of a killed process; the log may have overflowed, or the kernel suppressed the
/// message.
void expect_as_logged(const Json& event) {
  std::string log(1 << 20, 0);
  int bytes = ::klogctl(3, log.data(), static_cast<int>(log.size()));
  if (bytes < 0) return;
  log.resize(static_cast<std::size_t>(bytes));
  std::regex words("Killed process " + std::to_string(event["pid"].u64()) +
                   R"( \(\S+\),? .*anon-rss:(\d+)kB, file-rss:(\d+)kB, shmem-rss:(\d+)kB, )"
                   R"(.*oom_score_adj:(-?\d+))");
  std::smatch part;
  if (!std::regex_search(log, part, words)) return;
  expect_near(event["anon_rss_bytes"].u64(), std::stoull(part[1]));
  expect_near(event["file_rss_bytes"].u64(), std::stoull(part[2]));
  expect_near(event["shmem_rss_bytes"].u64(), std::stoull(part[3]));
  expect_fields(event, {{"oom_score_adj", std::stoll(part[4])}});
}

TOOL_TEST(Oomkill, LimitOfAMemoryCgroup) {
  auto seen = observe_all(
      {"oomkill --json --strict -K", "oomkill --json -u 54321", "oomkill --comm reclaim"},
      "reclaim --memcg --kills 2", {});
  ASSERT_EQ(seen.truth["memcg"]["oom_kill"].u64(), 2u);
  auto ours = seen.report().body;
  std::erase_if(ours, [of = "workload-" + std::to_string(seen.pid)](auto& event) {
    return !event["memcg_path"].is_string() || !contains(event["memcg_path"].str(), of);
  });
  ASSERT_EQ(ours.size(), 2u);
  auto victims = seen.ready["victims"].items();
  auto limit = seen.truth["memcg"]["limit_bytes"].u64();
  for (std::size_t i = 0; i < 2; i++) {
    auto& event = ours[i];
    SCOPED_TRACE(event.text());
    auto victim = victims[i].u64();
    EXPECT_NE(victim, seen.ready["worker_pid"].u64());
    expect_fields(event, {{"pid", victim},
                          {"comm", "reclaim"},
                          {"trigger_comm", "reclaim"},
                          {"trigger_pid", victim},  // its own allocation
                          {"killed", true},
                          {"kind", "memcg"},
                          {"limit_bytes", limit},
                          {"oom_score_adj", 1000}});
    EXPECT_GE(event["order"].i64(), 0);
    expect_contains(event["gfp_flags"].str(), {"GFP_"});
    EXPECT_LE(event["anon_rss_bytes"].u64(), limit);
    EXPECT_GE(event["anon_rss_bytes"].u64(), limit / 2);
    EXPECT_TRUE(has_frame(event, "kernel_stack", "out_of_memory"));
    expect_as_logged(event);
  }
  EXPECT_TRUE(seen.report(1).body.empty());
  auto victim = std::to_string(victims[1].u64());
  std::regex line(R"(\d\d:\d\d:\d\d\.\d{3} Triggered by PID )" + victim +
                  R"( \("reclaim"\), OOM kill of PID )" + victim + R"( \("reclaim"\), )" +
                  std::to_string(limit / static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) +
                  R"( pages, loadavg: \d+\.\d+ \d+\.\d+ \d+\.\d+ \d+/\d+ \d+, )");
  EXPECT_TRUE(std::regex_search(seen.text(2), line)) << seen.text(2);
}

TOOL_TEST(Oomkill, TheMachine) {
  if (!in_guest()) throw Skip("the machine runs out of memory: a guest's only");
  Counters around;
  Tracer tracer("oomkill", "--json --strict -K");
  auto pid = ::fork();
  if (pid == 0) {
    std::ofstream("/proc/self/oom_score_adj") << "1000";
    constexpr std::size_t kBlock = 16 << 20;
    for (;;) {
      auto* at = static_cast<char*>(::mmap(nullptr, kBlock, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
      if (at == MAP_FAILED) ::_exit(1);
      for (std::size_t i = 0; i < kBlock; i += 4096) at[i] = 1;
    }
  }
  int status = 0;
  ASSERT_EQ(::waitpid(pid, &status, 0), pid);
  auto report = tracer.stop();
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGKILL);
  auto all = meminfo_bytes("MemTotal") + meminfo_bytes("SwapTotal");
  auto event = line_with(report.body, {{"pid", pid}});
  expect_fields(event, {{"kind", "machine"}, {"killed", true}, {"limit_bytes", all}});
  EXPECT_GE(event["order"].i64(), 0);
  EXPECT_GE(event["anon_rss_bytes"].u64(), all / 4);
  expect_as_logged(event);
  EXPECT_EQ(lines_with(report.body, {{"killed", true}}).size(), around.growth("oom_kill"));
}

// Killing by the kernel's sysrq: not caused by a task's allocation.
TOOL_TEST(Oomkill, BySysrq) {
  if (!in_guest()) throw Skip("kills a process of the machine: a guest's only");
  auto pid = ::fork();
  if (pid == 0) {
    std::ofstream("/proc/self/oom_score_adj") << "1000";
    ::pause();
    ::_exit(0);
  }
  nap(std::chrono::milliseconds(200));
  Tracer tracer("oomkill", "--json --strict");
  std::ofstream("/proc/sysrq-trigger") << "f" << std::flush;
  for (int i = 0; i < 100 && ::waitpid(pid, nullptr, WNOHANG) == 0; i++)
    nap(std::chrono::milliseconds(50));
  auto report = tracer.stop();
  ::kill(pid, SIGKILL);
  auto event = line_with(report.body, {{"pid", pid}});
  expect_fields(event, {{"kind", "machine"}, {"killed", true}});
  expect_contains(event["trigger_comm"].str(), {"kworker"});
  EXPECT_NE(event["trigger_pid"].i64(), pid);
}

TESTS_OF(oomkill, .events = {"-K", "reclaim --memcg --kills 2 --seconds 8", true},
         .stress = event_row(
             "reclaim --memcg --kills {n}", 6,
             [](stress::Load& load) { return load.workload().truth()["memcg"]["oom_kill"].u64(); },
             {}, "victims"),
         .long_run = {{.arguments = "-K"}});

}  // namespace
}  // namespace coretap::tooltest
