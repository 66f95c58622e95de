// Other readings of sums by stack: the part of each stack that counts, tables of functions and of
// groups, call trees and call graphs. Pure: names in, rows and text out.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "coretap/json.hpp"
#include "stacks/flamegraph.hpp"
#include "stacks/stack_layout.hpp"

namespace coretap {

/// The part of each stack that counts, and the end from which it is read.
struct StackPart {
  std::string callers = {};  ///< only what calls this function, the nearest first; empty: all
  std::string callees = {};  ///< only what this function calls; empty: all
  bool inverted = false;     ///< the innermost frame first

  bool whole() const { return callers.empty() && callees.empty() && !inverted; }
  /// Changes a path as StackLayout::path() returns it. False: it does not have the function.
  bool take(std::vector<StackWord>& path) const;
};

/// Is it the function of this name? `*` in the name is any text; names of C++ functions match
/// without their parameters, too.
bool is_function(const StackWord& word, const std::string& name);

/// Time, samples or bytes by function: in the function itself, and with all that it calls.
class FunctionTable {
 public:
  struct Row {
    std::string group, object, function;
    bool kernel = false;
    std::uint64_t self = 0, total = 0;
  };

  /// The frames are in StackParty with their places. A function counts once for each stack.
  void add(const StackParty& party, const std::string& group, std::uint64_t value);
  /// The largest first.
  std::vector<Row> rows(bool by_total) const;
  /// The same function's row in this table; null: it has none.
  const Row* like(const Row& row) const;
  std::uint64_t total() const { return total_; }

 private:
  std::map<std::tuple<std::string, std::string, std::string, bool>, Row> rows_;
  std::uint64_t total_ = 0;
};

/// "task", "user", "kernel" or "mark".
std::string_view kind_of(StackWord::Kind kind);

/// The lines of a call tree: share of everything, own share, and the name, indented. Branches below
/// `least` per cent are left out; a last line says how many.
std::vector<std::string> call_tree(const FlameGraph& tree, double least);
std::vector<std::string> call_tree_json(const FlameGraph& tree, std::string_view tool,
                                        std::string_view suffix,
                                        const std::function<void(JsonLine&)>& first = {});

/// A call graph in the language of Graphviz. Recursive calls count once.
std::string call_graph(const FlameGraph& tree, const std::string& title, double least);

}  // namespace coretap
