// oomkill against the counters of a memory cgroup and what the kernel's log says of each killed
// process.
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <regex>
#include <thread>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// What the kernel's log says of a killed process.
struct Logged {
  std::uint64_t anon_kb, file_kb, shmem_kb;
  std::int64_t adj;
};
std::optional<Logged> logged(std::uint64_t pid) {
  std::string log(1 << 20, 0);
  int bytes = ::klogctl(3, log.data(), static_cast<int>(log.size()));
  if (bytes < 0) return {};
  log.resize(static_cast<std::size_t>(bytes));
  std::regex words("Killed process " + std::to_string(pid) +
                   R"( \(\S+\),? .*anon-rss:(\d+)kB, file-rss:(\d+)kB, shmem-rss:(\d+)kB, )"
                   R"(.*oom_score_adj:(-?\d+))");
  std::smatch part;
  if (!std::regex_search(log, part, words)) return {};
  auto n = [&](std::size_t i) { return std::stoull(part[i]); };
  return Logged{n(1), n(2), n(3), std::stoll(part[4])};
}

/// Counters per CPU lack at most a batch of each.
void expect_near(std::uint64_t bytes, std::uint64_t kb) {
  auto cpus = static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_CONF));
  auto most = cpus * std::max<std::uint64_t>(32, 2 * cpus) * 4096;
  EXPECT_LE(bytes, (kb << 10) + most);
  EXPECT_GE(bytes + most, kb << 10);
}

void expect_as_logged(const Json& event) {
  auto log = logged(event["pid"].u64());
  if (!log) return;  // another may have filled the log, or the kernel suppressed the message
  EXPECT_EQ(event["oom_score_adj"].i64(), log->adj);
  expect_near(event["anon_rss_bytes"].u64(), log->anon_kb);
  expect_near(event["file_rss_bytes"].u64(), log->file_kb);
  expect_near(event["shmem_rss_bytes"].u64(), log->shmem_kb);
}

std::vector<Json> of_victim(const Report& report, std::uint64_t pid) {
  std::vector<Json> found;
  for (auto& event : report.body)
    if (event["pid"].u64() == pid) found.push_back(event);
  return found;
}

TOOL_TEST(Oomkill, LimitOfAMemoryCgroup) {
  require_tool("oomkill");
  Workload workload("reclaim", {"--memcg", "--kills", "2"});
  auto worker = workload.ready()["worker_pid"].u64();
  Tracer all("oomkill", {"--json", "--strict", "-K"});
  Tracer text("oomkill", {"--comm", "reclaim"}), nobody("oomkill", {"--json", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  ASSERT_EQ(truth["memcg"]["oom_kill"].u64(), 2u);
  auto report = all.stop();
  std::vector<Json> ours;
  for (auto& event : report.body)
    if (event["memcg_path"].is_string() &&
        contains(event["memcg_path"].str(), "workload-" + workload.id()))
      ours.push_back(event);
  ASSERT_EQ(ours.size(), 2u);
  auto victims = workload.ready()["victims"].items();
  for (std::size_t i = 0; i < 2; i++) EXPECT_EQ(ours[i]["pid"].u64(), victims[i].u64());
  auto limit = truth["memcg"]["limit_bytes"].u64();
  for (auto& event : ours) {
    EXPECT_NE(event["pid"].u64(), worker);
    EXPECT_EQ(event["comm"].str(), "reclaim");
    EXPECT_EQ(event["trigger_comm"].str(), "reclaim");
    EXPECT_EQ(event["trigger_pid"].u64(), event["pid"].u64()) << "its own allocation";
    EXPECT_TRUE(event["killed"].boolean());
    EXPECT_EQ(event["kind"].str(), "memcg");
    EXPECT_EQ(event["limit_bytes"].u64(), limit);
    EXPECT_EQ(event["oom_score_adj"].i64(), 1000);
    EXPECT_GE(event["order"].i64(), 0);
    EXPECT_TRUE(contains(event["gfp_flags"].str(), "GFP_"));
    EXPECT_LE(event["anon_rss_bytes"].u64(), limit);
    EXPECT_GE(event["anon_rss_bytes"].u64(), limit / 2);
    auto frames = event["kernel_stack"].strings();
    EXPECT_TRUE(std::any_of(frames.begin(), frames.end(),
                            [](auto& f) { return contains(f, "out_of_memory"); }));
    expect_as_logged(event);
  }
  EXPECT_TRUE(nobody.stop().body.empty());
  auto shown = text.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  auto victim = std::to_string(victims[1].u64());
  std::regex line(R"(\d\d:\d\d:\d\d\.\d{3} Triggered by PID )" + victim +
                  R"( \("reclaim"\), OOM kill of PID )" + victim + R"( \("reclaim"\), )" +
                  std::to_string(limit / static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE))) +
                  R"( pages, loadavg: \d+\.\d+ \d+\.\d+ \d+\.\d+ \d+/\d+, )");
  EXPECT_TRUE(std::regex_search(shown, line)) << shown;
}

TOOL_TEST(Oomkill, TheMachine) {
  require_tool("oomkill");
  if (!in_guest()) throw Skip("the machine runs out of memory: a guest's only");
  Counters around;
  Tracer tracer("oomkill", {"--json", "--strict", "-K"});
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
  auto ours = of_victim(report, static_cast<std::uint64_t>(pid));
  ASSERT_EQ(ours.size(), 1u);
  auto& event = ours[0];
  EXPECT_EQ(event["kind"].str(), "machine");
  EXPECT_TRUE(event["killed"].boolean());
  EXPECT_GE(event["order"].i64(), 0);
  std::ifstream info("/proc/meminfo");
  std::string key;
  std::uint64_t kb = 0, all = 0;
  for (std::string unit; info >> key >> kb; std::getline(info, unit))
    if (key == "MemTotal:" || key == "SwapTotal:") all += kb;
  EXPECT_EQ(event["limit_bytes"].u64(), all << 10);
  EXPECT_GE(event["anon_rss_bytes"].u64(), (all << 10) / 4);
  expect_as_logged(event);
  std::uint64_t kills = 0;
  for (auto& e : report.body) kills += e["killed"].boolean();
  EXPECT_EQ(kills, around.growth("oom_kill"));
}

// The kernel's own way to make it kill: by no task's allocation.
TOOL_TEST(Oomkill, BySysrq) {
  require_tool("oomkill");
  if (!in_guest()) throw Skip("kills a process of the machine: a guest's only");
  auto pid = ::fork();
  if (pid == 0) {
    std::ofstream("/proc/self/oom_score_adj") << "1000";
    ::pause();
    ::_exit(0);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  Tracer tracer("oomkill", {"--json", "--strict"});
  std::ofstream("/proc/sysrq-trigger") << "f" << std::flush;
  for (int i = 0; i < 100 && ::waitpid(pid, nullptr, WNOHANG) == 0; i++)
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  auto ours = of_victim(tracer.stop(), static_cast<std::uint64_t>(pid));
  ::kill(pid, SIGKILL);
  ASSERT_EQ(ours.size(), 1u);
  EXPECT_EQ(ours[0]["kind"].str(), "machine");
  EXPECT_TRUE(ours[0]["killed"].boolean());
  EXPECT_TRUE(contains(ours[0]["trigger_comm"].str(), "kworker"));
  EXPECT_NE(ours[0]["trigger_pid"].u64(), static_cast<std::uint64_t>(pid));
}

const DeclareTests kOomkill{{
    .name = "oomkill",
    .events = {"-K", "reclaim --memcg --kills 2 --seconds 8", true},
    .stress = {.workload = "reclaim --memcg --kills {n}",
               .events = 6,
               .truth =
                   [](stress::Load& load) {
                     return load.workload().truth()["memcg"]["oom_kill"].u64();
                   },
               .tiny = "--ring-size 4096",
               .pids = "victims"},
    .long_run = {{.arguments = "-K"}},
}};

}  // namespace
}  // namespace coretap::tooltest
