#include "stacks/stack_view.hpp"

#include "expect.hpp"

namespace coretap {
namespace {

std::vector<StackWord> path(const Words& user, const Words& kernel = {}) {
  std::vector<StackWord> all{{StackWord::task, false, "task"}};
  for (auto& name : user) all.push_back({StackWord::user, false, name});
  for (auto& name : kernel) all.push_back({StackWord::kernel, false, name});
  return all;
}

std::string taken(const StackPart& part, std::vector<StackWord> path) {
  static const StackReport kReport{"samples"};
  return part.take(path) ? StackLayout(kReport, {}).folded(path) : "-";
}

TEST(StackPart, CallersAndCallees) {
  auto recursive = path({"main", "f", "g", "f", "leaf"}, {"read"});
  EXPECT_EQ(taken({}, recursive), "task;main;f;g;f;leaf;read");
  EXPECT_EQ(taken({.inverted = true}, recursive), "read;leaf;f;g;f;main;task");
  EXPECT_EQ(taken({.callees = "f"}, recursive), "f;g;f;leaf;read") << "from the outermost call on";
  EXPECT_EQ(taken({.callers = "f"}, recursive), "f;g;f;main;task");
  EXPECT_EQ(taken({.callers = "leaf", .callees = "g"}, recursive), "leaf;f;g");
  EXPECT_EQ(taken({.callees = "r*d"}, recursive), "read");
  EXPECT_EQ(taken({.callees = "other"}, recursive), "-");
  EXPECT_EQ(taken({.callees = "task"}, recursive), "-") << "the name of a task is no function";
}

TEST(StackPart, NamesOfFunctions) {
  StackWord word{StackWord::user, false, "a::b(int)+0x10"};
  FramePlace place{.function = "a::b(int)"};
  word.place = &place;
  for (auto* name : {"a::b", "a::b(int)", "a::*", "*::b"}) EXPECT_TRUE(is_function(word, name));
  for (auto* name : {"b", "a::b(long)", "a", "int"}) EXPECT_FALSE(is_function(word, name));
}

StackParty party(Frames kernel, Frames user) {
  StackParty p;
  p.kernel = std::move(kernel);
  p.user = std::move(user);
  return p;
}

TEST(FunctionTable, CountsAFunctionOnceInAStack) {
  FunctionTable table;
  table.add(party({}, {"f", "g", "f", "main"}), "", 10);
  table.add(party({"read"}, {"g", "main"}), "", 5);
  Words rows;
  for (auto& row : table.rows(false))
    rows.push_back(fmt::format("{} {} {} {}", row.function, row.object, row.self, row.total));
  EXPECT_EQ(rows, (Words{"f  10 10", "read [kernel] 5 5", "g  0 15", "main  0 15"}));
  EXPECT_EQ(table.rows(true).front().function, "g");
  EXPECT_EQ(table.total(), 15u);
}

TEST(FunctionTable, SeparatesFilesAndGroups) {
  FunctionTable table;
  std::vector<FramePlace> in_a{{.function = "run", .object = "/usr/lib/a.so"}},
      in_module{{.function = "run", .object = "ext4"}};
  auto user = party({}, {"run+0x4"});
  user.user_places = in_a;
  auto kernel = party({"run+0x4"}, {});
  kernel.kernel_places = in_module;
  table.add(user, "x", 3);
  table.add(user, "y", 2);
  table.add(kernel, "x", 1);
  Words rows;
  for (auto& row : table.rows(false))
    rows.push_back(fmt::format("{} {} {} {}", row.group, row.object, row.function, row.self));
  EXPECT_EQ(rows, (Words{"x a.so run 3", "y a.so run 2", "x [ext4] run 1"}));
}

FlameGraph tree() {
  FlameGraph graph;
  graph.add(path({"main", "f"}), 60);
  graph.add(path({"main", "f", "leaf"}), 20);
  graph.add(path({"main", "g", "leaf"}), 19);
  graph.add(path({"main", "rare\x1b[2J"}), 1);
  return graph;
}

TEST(CallTree, LargestBranchesFirst) {
  EXPECT_EQ(call_tree(tree(), 2),
            (Words{"100.00   0.00  task", "100.00   0.00  main", " 80.00  60.00    f",
                   " 20.00  20.00      leaf", " 19.00   0.00    g", " 19.00  19.00    leaf",
                   "               (1 branch below 2 %: --least)"}));
  EXPECT_EQ(call_tree(tree(), 0).back(), "  1.00   1.00    rare\\x1b[2J");
}

TEST(CallGraph, RecursionCountsOnce) {
  FlameGraph graph;
  graph.add(path({"f", "g", "f", "g"}), 4);
  auto dot = call_graph(graph, "a \"title\"", 0);
  for (auto* part :
       {R"(label="a \"title\"")", R"("f\n0.00 % of 100.00 %")", R"("g\n100.00 % of 100.00 %")"})
    EXPECT_NE(dot.find(part), std::string::npos) << part << " in " << dot;
  EXPECT_EQ(std::ranges::count(dot, '>'), 3) << "task to f, f to g, g to f: " << dot;
}

}  // namespace
}  // namespace coretap
