#include "tools/app/deadlock/lock_graph.hpp"

#include <initializer_list>

#include "expect.hpp"

namespace coretap {
namespace {

constexpr std::uint32_t kOwner = 7;

deadlock_mutex mutex(std::uint64_t address, std::uint32_t life = 0, std::uint32_t owner = kOwner) {
  return {address, life, owner};
}

deadlock_seen by(std::uint32_t tid, std::initializer_list<std::uint64_t> guards = {}) {
  deadlock_seen seen{};
  seen.tid = tid;
  std::size_t n = 0;
  for (auto g : guards) seen.guards[n++] = g;
  return seen;
}

std::string way(const LockGraph& graph, const LockGraph::Cycle& cycle) {
  std::string text;
  for (auto* o : cycle) text += std::to_string(graph.mutex(o->first).address) + " ";
  return text;
}

TEST(LockGraph, TwoOrdersAreACycle) {
  LockGraph graph;
  graph.add({mutex(10), mutex(20)}, by(1));
  EXPECT_TRUE(graph.new_cycles().empty());
  graph.add({mutex(20), mutex(10)}, by(2));
  auto cycles = graph.new_cycles();
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(way(graph, cycles[0]), "10 20 ");
  EXPECT_EQ(cycles[0][0]->seen.tid, 1u);
  EXPECT_EQ(cycles[0][1]->seen.tid, 2u);
}

TEST(LockGraph, ACycleIsReturnedOnce) {
  LockGraph graph;
  for (int i = 0; i < 3; i++) {
    graph.add({mutex(10), mutex(20)}, by(1));
    graph.add({mutex(20), mutex(10)}, by(2));
    EXPECT_EQ(graph.new_cycles().size(), i ? 0u : 1u);
  }
  EXPECT_EQ(graph.orders(), 2u);
  EXPECT_EQ(graph.cycles(), 1u);
}

TEST(LockGraph, TheShortestWayBack) {
  LockGraph graph;
  graph.add({mutex(1), mutex(2)}, by(1));
  graph.add({mutex(2), mutex(3)}, by(1));
  graph.add({mutex(3), mutex(4)}, by(1));
  graph.add({mutex(2), mutex(4)}, by(1));
  EXPECT_TRUE(graph.new_cycles().empty());
  graph.add({mutex(4), mutex(1)}, by(2));
  auto cycles = graph.new_cycles();
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(way(graph, cycles[0]), "1 2 4 ");
}

TEST(LockGraph, SeveralCyclesThatAreClosedAtOnce) {
  LockGraph graph;
  graph.add({mutex(1), mutex(2)}, by(1));
  graph.add({mutex(2), mutex(1)}, by(2));
  graph.add({mutex(3), mutex(4)}, by(3));
  graph.add({mutex(4), mutex(3)}, by(4));
  EXPECT_EQ(graph.new_cycles().size(), 2u);
}

TEST(LockGraph, MutexesOfTwoProcessesOrTwoLivesAreTwo) {
  LockGraph graph;
  graph.add({mutex(10), mutex(20)}, by(1));
  graph.add({mutex(20, 0, 8), mutex(10, 0, 8)}, by(2));
  graph.add({mutex(20), mutex(10, 1)}, by(3));
  EXPECT_TRUE(graph.new_cycles().empty());
  EXPECT_EQ(graph.mutexes(), 5u);
}

TEST(LockGraph, AMutexThatIsWantedTwice) {
  LockGraph graph;
  graph.add({mutex(10), mutex(10)}, by(1));
  auto cycles = graph.new_cycles();
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(cycles[0].size(), 1u);
}

TEST(LockGraph, AGuardMakesACycleHarmless) {
  LockGraph graph;
  graph.add({mutex(10), mutex(20)}, by(1, {5}));
  graph.add({mutex(20), mutex(10)}, by(2, {6, 5}));
  EXPECT_TRUE(graph.new_cycles().empty());
  EXPECT_EQ(graph.cycles(), 0u);
}

TEST(LockGraph, GuardsThatAreNotTheSame) {
  LockGraph graph;
  graph.add({mutex(10), mutex(20)}, by(1, {5}));
  graph.add({mutex(20), mutex(10)}, by(2, {6}));
  EXPECT_EQ(graph.new_cycles().size(), 1u);
}

TEST(LockGraph, AGuardThatIsMissingLater) {
  LockGraph graph;
  graph.add({mutex(10), mutex(20)}, by(1, {5}));
  graph.add({mutex(20), mutex(10)}, by(2, {5}));
  EXPECT_TRUE(graph.new_cycles().empty());
  graph.add({mutex(10), mutex(20)}, by(1));
  EXPECT_EQ(graph.new_cycles().size(), 1u);
}

TEST(LockGraph, AnotherWayThatIsNotGuarded) {
  LockGraph graph;
  graph.add({mutex(20), mutex(10)}, by(1, {5}));
  graph.add({mutex(20), mutex(30)}, by(2));
  graph.add({mutex(30), mutex(10)}, by(2));
  graph.add({mutex(10), mutex(20)}, by(3, {5}));
  auto cycles = graph.new_cycles();
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(way(graph, cycles[0]), "20 30 10 ");
}

TEST(LockGraph, DotIsSafe) {
  LockGraph graph;
  auto seen = by(1);
  std::string_view name = "a\"b\\c\n\x1b";
  name.copy(seen.comm, sizeof seen.comm);
  graph.add({mutex(0x10), mutex(0x20)}, seen);
  graph.add({mutex(0x20), mutex(0x10)}, by(2));
  graph.new_cycles();
  auto dot = graph.dot();
  EXPECT_NE(dot.find("label=\"a\\\"b\\\\c?? 1\", color=red"), dot.npos) << dot;
  EXPECT_NE(dot.find("M0 [label=\"M0\\n0x10\"]"), dot.npos) << dot;
}

}  // namespace
}  // namespace coretap
