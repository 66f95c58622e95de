// deadlock against programs that take mutexes in orders that can deadlock or cannot.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

struct Watched {
  Json truth, graph;
  std::vector<Json> deadlocks;
};

Watched watch(const std::string& order, const Strings& options = {}) {
  auto seen =
      observe("deadlock --all --json --strict" + options + "{pid}", "mutexes --order " + order);
  auto report = seen.report();
  EXPECT_EQ(report.body.back()["type"].str(), "graph");
  return {seen.truth, line_with(report.body, {{"type", "graph"}}),
          lines_with(report.body, {{"type", "deadlock"}})};
}

/// One cycle is found: the orders form a chain that ends where it starts.
Watched cycle_of(const std::string& order, std::size_t length) {
  auto seen = watch(order);
  EXPECT_EQ(seen.deadlocks.size(), 1u);
  auto orders = seen.deadlocks.at(0)["orders"].items();
  EXPECT_EQ(orders.size(), length);
  for (std::size_t i = 0; i < orders.size(); i++)
    EXPECT_EQ(orders[i]["second_address"].u64(),
              orders[(i + 1) % orders.size()]["first_address"].u64());
  return seen;
}

TOOL_TEST(Deadlock, TwoThreadsTwoOrders) {
  auto [truth, graph, found] = cycle_of("cycle", 2);
  expect_fields(found[0], {{"one_thread", false}, {"timed", false}});
  auto tids = truth["tids"].items();
  std::set<std::uint64_t> threads, mutexes;
  for (auto& order : found[0]["orders"].items()) {
    threads.insert(order["tid"].u64());
    mutexes.insert(order["first_address"].u64());
    expect_fields(order, {{"comm", "mutexes"}, {"created_by", truth["pid"].u64()}});
    for (auto* stack : {"first_stack", "second_stack"})
      for (auto* function : {"mutexes_take", "mutexes_both", "mutexes_thread"})
        EXPECT_TRUE(has_frame(order, stack, function)) << stack << ": " << function;
    EXPECT_TRUE(has_frame(order, "creation_stack", "main"));
  }
  EXPECT_EQ(threads, (std::set{tids[0].u64(), tids[1].u64()}));
  EXPECT_EQ(mutexes, (std::set{truth["a"].u64(), truth["b"].u64()}));
  expect_fields(graph, {{"mutexes", 2}, {"order_count", 2}, {"deadlocks", 1}});
}

TOOL_TEST(Deadlock, AConditionTakesItsMutexAgain) {
  auto found = cycle_of("condition", 2).deadlocks[0];
  expect_fields(found, {{"one_thread", true}});
  bool waits = false;
  for (auto& order : found["orders"].items())
    waits |= has_frame(order, "second_stack", "pthread_cond_timedwait");
  EXPECT_TRUE(waits);
}

TOOL_TEST(Deadlock, WhereThereIsNone) {
  // gate: two orders, and the gate's own. try: the second order has no wait. reuse: a mutex that is
  // initialised again is a new one.
  for (auto& [order, orders] : {std::pair("same", 1),
                                {"gate", 4},
                                {"try", 1},
                                {"reuse", 2},
                                {"recursive", 2},
                                {"condition-free", 2}}) {
    SCOPED_TRACE(order);
    auto seen = watch(order);
    EXPECT_TRUE(seen.deadlocks.empty());
    expect_fields(seen.graph, {{"order_count", orders}, {"deadlocks", 0}});
  }
}

TOOL_TEST(Deadlock, MemoryThatIsUsedAgain) {
  EXPECT_EQ(watch("freed").deadlocks.size(), 1u) << "there is nothing to tell them apart";
  auto seen = watch("freed", "--free");
  EXPECT_TRUE(seen.deadlocks.empty());
  expect_fields(seen.graph, {{"mutexes", 3}});
}

TOOL_TEST(Deadlock, OtherCycles) {
  cycle_of("three", 3);
  cycle_of("hang", 2);  // blocks forever
  expect_fields(cycle_of("timed", 2).deadlocks[0], {{"timed", true}});
}

TOOL_TEST(Deadlock, IsShownFromARecordingAsPrinted) {
  TemporaryDirectory directory;
  auto file = directory.path() + "/one.ctr";
  for (auto* form : {"--csv", "--all"}) {
    SCOPED_TRACE(form);
    auto live =
        observe("deadlock {pid} --record " + file + " " + form, "mutexes --order cycle").text();
    auto shown = run(Strings{tool_path("coretap"), "show", file} +
                     Strings(std::string(form) == "--csv" ? form : ""));
    EXPECT_EQ(shown.status, 1) << shown.err;
    EXPECT_EQ(shown.out, live);
  }
}

TOOL_TEST(Deadlock, TextAndGraph) {
  TemporaryDirectory directory;
  auto file = directory.path() + "/graph";
  auto seen = observe("deadlock --all {pid} --dump-graph " + file + ".gv", "mutexes --order cycle");
  expect_contains(
      seen.text(),
      {"Potential Deadlock Detected!", "Cycle in lock order graph: Mutex M0 (0x",
       "acquired here while holding", "previously acquired by the same Thread", "mutexes_take",
       "created by Thread", "1 potential deadlock: 2 mutexes, taken in 2 orders"});
  expect_contains(slurp(file + ".gv"), {"digraph", "M0 -> M1", "M1 -> M0", "color=red"});
  observe("deadlock --all {pid} --dump-graph " + file, "mutexes --order cycle").text();
  auto graph = Json::parse(slurp(file));
  EXPECT_EQ(graph["nodes"].items().size(), 2u);
  expect_fields(graph["links"].items().at(0), {{"source", "M0"}, {"target", "M1"}});
}

TESTS_OF(deadlock, .events = {{"--all"}, "mutexes --order cycle"},
         .stress = {.workload = "mutexes --pairs {n}",
                    .events = 300,
                    .shown = [](const Json& line) -> std::uint64_t {
                      return line["type"].str() == "graph" ? line["order_count"].u64() : 0;
                    },
                    .truth = "pairs",
                    .tiny = "--max-keys 16"},
         .long_run = {{.arguments = "PID"}});

}  // namespace
}  // namespace coretap::tooltest
