// numasched against a task that is sent from node to node, and the kernel's own trace.
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <optional>
#include <regex>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// The node of a CPU that is online, by the lists of its nodes.
std::optional<int> node_of(int cpu) {
  for (int node = 0; node < 64; node++) {
    std::ifstream file("/sys/devices/system/node/node" + std::to_string(node) + "/cpulist");
    int first = 0, last = 0;
    while (file >> first) {
      last = first;
      if (file.peek() == '-') file.ignore() >> last;
      if (cpu >= first && cpu <= last) return node;
      file.ignore();
    }
  }
  return {};
}

std::vector<int> allowed_cpus() {
  cpu_set_t set;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof set, &set)) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void stay_on(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  if (::sched_setaffinity(0, sizeof one, &one)) ::_exit(1);
}

/// A child on one CPU that goes to another one and back, `rounds` times.
class Traveller {
 public:
  Traveller(int home, int away, int rounds) {
    if (::pipe(gate_)) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_) return;
    ::close(gate_[1]);
    stay_on(home);
    char byte = 0;
    if (::read(gate_[0], &byte, 1) != 1) ::_exit(2);
    for (int i = 0; i < rounds; i++) {
      stay_on(away);
      stay_on(home);
    }
    ::_exit(0);
  }
  ~Traveller() {
    ::close(gate_[0]);
    ::close(gate_[1]);
    if (!ended_) ::kill(pid_, SIGKILL), ::waitpid(pid_, nullptr, 0);
  }
  Traveller(const Traveller&) = delete;
  Traveller& operator=(const Traveller&) = delete;
  pid_t pid() const { return pid_; }
  std::string id() const { return std::to_string(pid_); }
  void travel() {
    int status = -1;
    if (::write(gate_[1], "x", 1) != 1) throw std::runtime_error("write");
    ::waitpid(pid_, &status, 0);
    ended_ = true;
    ASSERT_EQ(status, 0);
  }

 private:
  int gate_[2];
  pid_t pid_;
  bool ended_ = false;
};

/// Two CPUs of one node.
std::pair<int, int> neighbours() {
  auto cpus = allowed_cpus();
  for (int a : cpus)
    for (int b : cpus)
      if (a < b && node_of(a) && node_of(a) == node_of(b)) return {a, b};
  throw Skip("no two CPUs of one node");
}

TOOL_TEST(Numasched, TwoNodesThereAndBack) {
  require_tool("numasched");
  Workload workload("numa", {"--travel", "51"}), other("numa", {"--travel", "8"});
  Trace around("sched/sched_migrate_task");
  Tracer own("numasched", {"--json", "--strict", "-p", workload.id()});
  Tracer nobody("numasched", {"--json", "--strict", "-u", "54321"});
  Tracer text("numasched", {"-p", workload.id(), "-e"});
  other.release();
  other.truth();
  workload.release();
  auto truth = workload.truth();
  auto report = own.stop();
  around.stop();
  std::size_t moves = 0;
  for (auto& line : around.lines()) moves += contains(line, "pid=" + workload.id() + " ");
  ASSERT_EQ(report.body.size(), truth["moves"].u64());
  EXPECT_EQ(moves, truth["moves"].u64());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    auto& event = report.body[i];
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "numa");
    EXPECT_EQ(event["from_cpu"].u64(), truth[i % 2 ? "other_cpu" : "cpu"].u64());
    EXPECT_EQ(event["to_cpu"].u64(), truth[i % 2 ? "cpu" : "other_cpu"].u64());
    EXPECT_EQ(event["from_node"].u64(), truth[i % 2 ? "other_node" : "node"].u64());
    EXPECT_EQ(event["to_node"].u64(), truth[i % 2 ? "node" : "other_node"].u64());
    EXPECT_FALSE(event["numa_balancing"].boolean());
  }
  EXPECT_TRUE(nobody.stop().body.empty());
  std::istringstream lines(text.stop_text());
  std::string line;
  std::getline(lines, line);
  static const std::regex row(
      R"(\d\d:\d\d:\d\d\.\d{3} +\d+ +\d+ +\d+ +-> \d+ +\d+ +\d+ +(no|false) +numa *)");
  std::uint64_t rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, truth["moves"].u64());
}

// The kernel traces the decision before the move; some moves then cannot be made.
TOOL_TEST(Numasched, TwoNodesByBalancing) {
  require_tool("numasched");
  Trace moves("sched/sched_move_numa"), swaps("sched/sched_swap_numa");
  Workload workload("numa", {"--pages", "400"});
  Tracer tracer("numasched", {"--json", "--strict"});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  std::size_t balanced = 0;
  for (auto& event : report.body) balanced += event["numa_balancing"].boolean();
  EXPECT_LE(balanced, moves.lines().size() + 2 * swaps.lines().size());
}

TOOL_TEST(Numasched, MovesWithinANodeAreNone) {
  require_tool("numasched");
  auto [here, there] = neighbours();
  Traveller traveller(here, there, 25);
  Tracer tracer("numasched", {"--json", "--strict", "-p", traveller.id()});
  traveller.travel();
  EXPECT_TRUE(tracer.stop().body.empty());
}

TOOL_TEST(Numasched, ColumnsOfThePeer) {
  require_tool("numasched");
  const Strings usual{"TIME", "PID", "TID", "SRC_NID", "DST_NID", "COMM"};
  EXPECT_EQ(header_of("numasched", {}), usual);
  EXPECT_EQ(header_of("numasched", {"-e"}), (Strings{"TIME", "PID", "TID", "SRC_NID", "DST_NID",
                                                     "SRC_CPU", "DST_CPU", "NUMA", "COMM"}));
}

const DeclareTests kNumasched{{
    .name = "numasched",
    .events = {{}, "numa --travel 3"},
    .stress = {.workload = "numa --travel {n}",
               .events = 400,
               .truth = "moves",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "-e"}},
}};

}  // namespace
}  // namespace coretap::tooltest
