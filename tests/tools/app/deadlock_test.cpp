// deadlock against programs that take mutexes in orders that can deadlock, and that cannot.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

Strings of_type(const Report& report, const char* type) {
  Strings lines;
  for (auto& line : report.body)
    if (line["type"].str() == type) lines.push_back(type);
  return lines;
}

Json graph_of(const Report& report) {
  EXPECT_EQ(of_type(report, "graph").size(), 1u);
  return report.body.back();
}

struct Run {
  Report report;
  Json truth;
};

Run watch(const Strings& arguments, Strings options = {}) {
  require_tool("deadlock");
  Workload workload("mutexes", arguments, kLinger);
  Strings all{"--json", "--strict"};
  all.insert(all.end(), options.begin(), options.end());
  all.push_back(workload.id());
  Tracer tracer("deadlock", all);
  workload.release();
  auto truth = workload.truth();
  return {tracer.stop(), truth};
}

bool has_frame(const Json& stack, const std::string& name) {
  for (auto& frame : stack.strings())
    if (contains(frame, name)) return true;
  return false;
}

/// The orders follow each other, and the last one ends where the first one begins.
void expect_cycle(const Json& line, std::size_t length) {
  auto orders = line["orders"].items();
  ASSERT_EQ(orders.size(), length);
  for (std::size_t i = 0; i < length; i++)
    EXPECT_EQ(orders[i]["second_address"].u64(), orders[(i + 1) % length]["first_address"].u64());
}

TOOL_TEST(Deadlock, TwoThreadsTwoOrders) {
  auto [report, truth] = watch({"--order", "cycle"});
  ASSERT_EQ(of_type(report, "deadlock").size(), 1u);
  auto found = report.body.front();
  expect_cycle(found, 2);
  EXPECT_FALSE(found["one_thread"].boolean());
  EXPECT_FALSE(found["timed"].boolean());
  auto tids = truth["tids"].items();
  std::set<std::uint64_t> threads, mutexes;
  for (auto& order : found["orders"].items()) {
    threads.insert(order["tid"].u64());
    mutexes.insert(order["first_address"].u64());
    EXPECT_EQ(order["comm"].str(), "mutexes");
    for (auto* stack : {"first_stack", "second_stack"})
      for (auto* function : {"mutexes_take", "mutexes_both", "mutexes_thread"})
        EXPECT_TRUE(has_frame(order[stack], function)) << stack << ": " << function;
    EXPECT_EQ(order["created_by"].u64(), truth["pid"].u64());
    EXPECT_TRUE(has_frame(order["creation_stack"], "main"));
  }
  EXPECT_EQ(threads, (std::set{tids[0].u64(), tids[1].u64()}));
  EXPECT_EQ(mutexes, (std::set{truth["a"].u64(), truth["b"].u64()}));
  auto graph = graph_of(report);
  EXPECT_EQ(graph["mutexes"].u64(), 2u);
  EXPECT_EQ(graph["order_count"].u64(), 2u);
  EXPECT_EQ(graph["deadlocks"].u64(), 1u);
}

TOOL_TEST(Deadlock, ThreeThreads) {
  auto [report, truth] = watch({"--order", "three"});
  ASSERT_EQ(of_type(report, "deadlock").size(), 1u);
  expect_cycle(report.body.front(), 3);
}

TOOL_TEST(Deadlock, WithATimeLimit) {
  auto [report, truth] = watch({"--order", "timed"});
  ASSERT_EQ(of_type(report, "deadlock").size(), 1u);
  EXPECT_TRUE(report.body.front()["timed"].boolean());
}

TOOL_TEST(Deadlock, AConditionTakesItsMutexAgain) {
  auto [report, truth] = watch({"--order", "condition"});
  ASSERT_EQ(of_type(report, "deadlock").size(), 1u);
  auto found = report.body.front();
  EXPECT_TRUE(found["one_thread"].boolean());
  expect_cycle(found, 2);
  bool waits = false;
  for (auto& order : found["orders"].items())
    waits |= has_frame(order["second_stack"], "pthread_cond_timedwait");
  EXPECT_TRUE(waits);
}

/// The threads wait for each other for ever.
TOOL_TEST(Deadlock, OneThatIsThere) {
  auto [report, truth] = watch({"--order", "hang"});
  ASSERT_EQ(of_type(report, "deadlock").size(), 1u);
  expect_cycle(report.body.front(), 2);
}

struct Harmless {
  const char* order;
  std::uint64_t orders;
};

class DeadlockNone : public testing::TestWithParam<Harmless> {};

void none_in(const Harmless& h) {
  auto [report, truth] = watch({"--order", h.order});
  EXPECT_TRUE(of_type(report, "deadlock").empty());
  auto graph = graph_of(report);
  EXPECT_EQ(graph["order_count"].u64(), h.orders);
  EXPECT_EQ(graph["deadlocks"].u64(), 0u);
}

TEST_P(DeadlockNone, WhereThereIsNone){TOOL_TEST_BODY(none_in(GetParam()))}

// gate: its two, and those of the gate itself. try: the second order has no wait. reuse: a mutex
// that is initialised again is another one.
INSTANTIATE_TEST_SUITE_P(Orders, DeadlockNone,
                         testing::Values(Harmless{"same", 1}, Harmless{"gate", 4},
                                         Harmless{"try", 1}, Harmless{"reuse", 2},
                                         Harmless{"recursive", 2}, Harmless{"condition-free", 2}),
                         [](auto& info) {
                           std::string name = info.param.order;
                           std::erase(name, '-');
                           return name;
                         });

TOOL_TEST(Deadlock, MemoryThatIsUsedAgain) {
  auto [careless, same] = watch({"--order", "freed"});
  EXPECT_EQ(of_type(careless, "deadlock").size(), 1u) << "there is nothing to tell them apart";
  auto [report, truth] = watch({"--order", "freed"}, {"--free"});
  EXPECT_TRUE(of_type(report, "deadlock").empty());
  EXPECT_EQ(graph_of(report)["mutexes"].u64(), 3u);
}

TOOL_TEST(Deadlock, GraphForGraphviz) {
  auto file = std::filesystem::temp_directory_path() / ("deadlock-" + std::to_string(getpid()));
  watch({"--order", "cycle"}, {"--dump-graph", file.string()});
  std::stringstream text;
  text << std::ifstream(file).rdbuf();
  std::filesystem::remove(file);
  auto dot = text.str();
  EXPECT_TRUE(dot.starts_with("digraph")) << dot;
  EXPECT_TRUE(contains(dot, "M0 -> M1")) << dot;
  EXPECT_TRUE(contains(dot, "M1 -> M0")) << dot;
  EXPECT_TRUE(contains(dot, "color=red")) << dot;
}

TOOL_TEST(Deadlock, TextHasTheCycleAndItsStacks) {
  require_tool("deadlock");
  Workload workload("mutexes", {"--order", "cycle"}, kLinger);
  Tracer tracer("deadlock", {workload.id()});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  for (auto* part :
       {"Potential Deadlock Detected!", "Cycle in lock order graph: Mutex M0 (0x",
        "acquired here while holding", "previously acquired by the same Thread", "mutexes_take",
        "created by Thread", "1 potential deadlocks: 2 mutexes, taken in 2 orders"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
}

const DeclareTests kDeadlock{{
    .name = "deadlock",
    .events = {{}, "mutexes --order cycle"},
    .stress = {.workload = "mutexes --pairs {n}",
               .events = 300,
               .shown = [](const Json& line) -> std::uint64_t {
                 return line["type"].str() == "graph" ? line["order_count"].u64() : 0;
               },
               .truth = "pairs",
               .tiny = "--max-keys 16"},
    .long_run = {{.arguments = "PID"}},
}};

}  // namespace
}  // namespace coretap::tooltest
