// numasched against a task that is moved between nodes, and the kernel's own trace.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

/// The node whose directory has this CPU; empty: none.
std::string node_of(int cpu) {
  std::error_code none;
  auto path = "/sys/devices/system/cpu/cpu" + std::to_string(cpu);
  for (auto& entry : std::filesystem::directory_iterator(path, none))
    if (auto name = entry.path().filename().string(); name.starts_with("node")) return name;
  return {};
}

/// Two CPUs of one node on which this process may run.
std::pair<int, int> neighbours() {
  cpu_set_t allowed;
  if (::sched_getaffinity(0, sizeof allowed, &allowed)) throw std::runtime_error("no CPUs");
  std::map<std::string, int> known;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(static_cast<std::size_t>(cpu), &allowed) || node_of(cpu).empty()) continue;
    auto [other, fresh] = known.emplace(node_of(cpu), cpu);
    if (!fresh) return {other->second, cpu};
  }
  throw Skip("no two CPUs of one node");
}

TOOL_TEST(Numasched, TwoNodesThereAndBack) {
  Workload other("numa", "--travel 8");
  Scene scene("numa --travel 51", {});
  Trace around("sched/sched_migrate_task");
  for (auto* options : {"--json --strict -p {pid}", "--json --strict -u 54321"})
    scene.trace(Strings("numasched") + options);
  other.release();
  other.truth();
  auto seen = scene.finish();
  around.stop();
  auto report = seen.report();
  auto& truth = seen.truth;
  std::size_t moves = 0;
  for (auto& line : around.lines())
    moves += contains(line, "pid=" + std::to_string(seen.pid) + " ");
  ASSERT_EQ(report.body.size(), truth["moves"].u64());
  EXPECT_EQ(moves, truth["moves"].u64());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    bool back = i % 2;
    expect_fields(report.body[i], {{"pid", seen.pid},
                                   {"comm", "numa"},
                                   {"from_cpu", truth[back ? "other_cpu" : "cpu"].u64()},
                                   {"to_cpu", truth[back ? "cpu" : "other_cpu"].u64()},
                                   {"from_node", truth[back ? "other_node" : "node"].u64()},
                                   {"to_node", truth[back ? "node" : "other_node"].u64()},
                                   {"numa_balancing", false}});
  }
  EXPECT_TRUE(seen.report(1).body.empty());
}

// The kernel traces the decision before the move; some moves then fail.
TOOL_TEST(Numasched, TwoNodesByBalancing) {
  Trace moves("sched/sched_move_numa"), swaps("sched/sched_swap_numa");
  auto report = observe("numasched --json --strict", "numa --pages 400", {}).report();
  EXPECT_LE(lines_with(report.body, {{"numa_balancing", true}}).size(),
            moves.lines().size() + 2 * swaps.lines().size());
}

TOOL_TEST(Numasched, MovesWithinANodeAreNone) {
  auto [here, there] = neighbours();
  Child traveller([home = here, away = there] {
    for (int i = 0; i < 25; i++)
      if (!stay_on(away) || !stay_on(home)) ::_exit(1);
  });
  ASSERT_TRUE(stay_on(here, traveller.pid()));
  Tracer tracer("numasched", "--json --strict -p " + traveller.id());
  traveller.end();
  EXPECT_EQ(traveller.status, 0);
  EXPECT_TRUE(tracer.stop().body.empty());
}

TESTS_OF(numasched, .events = {{}, "numa --travel 3"},
         .stress = event_row("numa --travel {n}", 400, "moves"), .long_run = {{.arguments = "-e"}});

}  // namespace
}  // namespace coretap::tooltest
