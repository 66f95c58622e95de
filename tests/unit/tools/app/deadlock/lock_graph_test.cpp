#include "tools/app/deadlock/lock_graph.hpp"

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

/// Mutexes that a thread locks one after another, while it holds guards.
struct Order {
  std::uint32_t tid;
  Numbers mutexes;
  std::initializer_list<std::uint64_t> guards = {};
};
/// New cycles after these orders, each with a semicolon.
std::string added(LockGraph& graph, const std::vector<Order>& orders) {
  for (auto& o : orders) graph.add({mutex(o.mutexes[0]), mutex(o.mutexes[1])}, by(o.tid, o.guards));
  std::string all;
  for (auto& cycle : graph.new_cycles()) all += way(graph, cycle) + ";";
  return all;
}

TEST(LockGraph, TwoOrdersAreACycleThatIsReturnedOnce) {
  LockGraph graph;
  EXPECT_EQ(added(graph, {{1, {10, 20}}}), "");
  graph.add({mutex(20), mutex(10)}, by(2));
  auto cycles = graph.new_cycles();
  ASSERT_EQ(cycles.size(), 1u);
  EXPECT_EQ(way(graph, cycles[0]), "10 20 ");
  EXPECT_EQ(cycles[0][0]->seen.tid, 1u);
  EXPECT_EQ(cycles[0][1]->seen.tid, 2u);
  for (int i = 0; i < 2; i++) EXPECT_EQ(added(graph, {{1, {10, 20}}, {2, {20, 10}}}), "");
  EXPECT_EQ(graph.orders(), 2u);
  EXPECT_EQ(graph.cycles(), 1u);
}

TEST(LockGraph, TheShortestWayBack) {
  LockGraph graph;
  EXPECT_EQ(added(graph, {{1, {1, 2}}, {1, {2, 3}}, {1, {3, 4}}, {1, {2, 4}}}), "");
  EXPECT_EQ(added(graph, {{2, {4, 1}}}), "1 2 4 ;");
}

TEST(LockGraph, SeveralCyclesThatAreClosedAtOnce) {
  LockGraph graph;
  EXPECT_EQ(count_of(added(graph, {{1, {1, 2}}, {2, {2, 1}}, {3, {3, 4}}, {4, {4, 3}}}), ";"), 2u);
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
  EXPECT_EQ(added(graph, {{1, {10, 10}}}), "10 ;");
}

TEST(LockGraph, AGuardMakesACycleHarmless) {
  LockGraph graph, others;
  EXPECT_EQ(added(graph, {{1, {10, 20}, {5}}, {2, {20, 10}, {6, 5}}}), "");
  EXPECT_EQ(graph.cycles(), 0u);
  EXPECT_EQ(added(graph, {{1, {10, 20}}}), "10 20 ;") << "it is missing later";
  EXPECT_EQ(added(others, {{1, {10, 20}, {5}}, {2, {20, 10}, {6}}}), "10 20 ;");
}

TEST(LockGraph, AnotherWayThatIsNotGuarded) {
  LockGraph graph;
  EXPECT_EQ(added(graph, {{1, {20, 10}, {5}}, {2, {20, 30}}, {2, {30, 10}}, {3, {10, 20}, {5}}}),
            "20 30 10 ;");
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
  EXPECT_TRUE(says(dot, "label=\"a\\\"b\\\\c?? 1\", color=red", "M0 [label=\"M0\\n0x10\"]"));
}

}  // namespace
}  // namespace coretap
