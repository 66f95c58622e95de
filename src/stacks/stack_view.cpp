#include "stacks/stack_view.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/figures.hpp"
#include "coretap/sanitize.hpp"

namespace coretap {

namespace {

bool is_frame(const StackWord& word) {
  return word.kind == StackWord::user || word.kind == StackWord::kernel;
}

std::string_view function_of(const StackWord& word) {
  return word.place && !word.place->function.empty() ? std::string_view(word.place->function)
                                                     : std::string_view(word.text);
}

/// A string of Graphviz; `below` is the label's second line.
std::string quoted(std::string_view text, std::string_view below = {}) {
  std::string out = "\"";
  for (char c : printable(text)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  if (!below.empty()) out += fmt::format("\\n{}", below);
  return out + '"';
}

}  // namespace

std::string_view kind_of(StackWord::Kind kind) {
  switch (kind) {
    case StackWord::task:
      return "task";
    case StackWord::user:
      return "user";
    case StackWord::kernel:
      return "kernel";
    default:
      return "mark";
  }
}

bool is_function(const StackWord& word, const std::string& name) {
  if (!is_frame(word)) return false;
  std::string function(function_of(word));
  auto matches = [&] { return ::fnmatch(name.c_str(), function.c_str(), 0) == 0; };
  if (matches()) return true;
  auto parameters = function.find('(');
  if (parameters == std::string::npos || !parameters || name.find('(') != std::string::npos)
    return false;
  function.resize(parameters);
  return matches();
}

bool StackPart::take(std::vector<StackWord>& path) const {
  auto found = [](const std::string& name) {
    return [&name](const StackWord& word) { return is_function(word, name); };
  };
  if (!callees.empty()) {
    // The outermost call, so that recursive calls are part of it.
    auto first = std::ranges::find_if(path, found(callees));
    if (first == path.end()) return false;
    path.erase(path.begin(), first);
  }
  if (!callers.empty()) {
    auto last = std::find_if(path.rbegin(), path.rend(), found(callers));
    if (last == path.rend()) return false;
    path.erase(last.base(), path.end());
  }
  if (inverted || !callers.empty()) std::ranges::reverse(path);
  return true;
}

void FunctionTable::add(const StackParty& p, const std::string& group, std::uint64_t value) {
  std::set<Row*> counted;
  total_ += value;
  bool innermost = true;
  auto frames = [&](const Frames& names, std::span<const FramePlace> places, bool kernel) {
    for (std::size_t i = 0; i < names.size(); i++) {
      static const FramePlace kNone;
      auto& place = i < places.size() ? places[i] : kNone;
      auto& function = place.function.empty() ? names[i] : place.function;
      auto object = object_of(place, kernel);
      auto& row = rows_[{group, object, function, kernel}];
      if (row.function.empty()) row = {group, std::move(object), function, kernel};
      if (innermost) row.self += value;
      innermost = false;
      if (counted.insert(&row).second) row.total += value;
    }
  };
  frames(p.kernel, p.kernel_places, true);
  frames(p.user, p.user_places, false);
}

const FunctionTable::Row* FunctionTable::like(const Row& row) const {
  auto found = rows_.find({row.group, row.object, row.function, row.kernel});
  return found == rows_.end() ? nullptr : &found->second;
}

std::vector<FunctionTable::Row> FunctionTable::rows(bool by_total) const {
  std::vector<Row> all;
  all.reserve(rows_.size());
  for (auto& [key, row] : rows_) all.push_back(row);
  std::ranges::stable_sort(all, [&](auto& a, auto& b) {
    auto x = std::pair(a.self, a.total), y = std::pair(b.self, b.total);
    if (by_total) std::swap(x.first, x.second), std::swap(y.first, y.second);
    return x > y;
  });
  return all;
}

std::vector<std::string> call_tree(const FlameGraph& tree, double least) {
  std::vector<std::string> out;
  std::uint64_t left_out = 0;
  const auto all = tree.total();
  struct Open {
    std::uint64_t total;
    int indent;
  };
  std::vector<Open> around;
  tree.walk(true, [&](const FlameGraph::Branch& b) {
    if (percent(b.total, all) < least) {
      left_out++;
      return false;
    }
    // Frames that call only one other stay in one column, so that deep stacks fit.
    around.resize(b.level);
    const bool forks = !around.empty() && b.total < around.back().total;
    const int indent = around.empty() ? 0 : around.back().indent + (forks ? 2 : 0);
    around.push_back({b.total, indent});
    out.push_back(fmt::format("{:6.2f} {:6.2f}  {:{}}{}", percent(b.total, all),
                              percent(b.own, all), "", indent, printable(b.name)));
    return true;
  });
  if (left_out)
    out.push_back(fmt::format("{:13}  ({} {} below {} %: --least)", "", left_out,
                              left_out == 1 ? "branch" : "branches", least));
  return out;
}

std::vector<std::string> call_tree_json(const FlameGraph& tree, std::string_view tool,
                                        std::string_view suffix,
                                        const std::function<void(JsonLine&)>& first) {
  std::vector<std::string> out;
  const std::string own = fmt::format("self{}", suffix), total = fmt::format("total{}", suffix);
  tree.walk(true, [&](const FlameGraph::Branch& b) {
    JsonLine line("branch", tool);
    if (first) first(line);
    line.number("level", b.level).text("kind", kind_of(b.kind)).text("name", b.name);
    line.number(own, b.own).number(total, b.total);
    out.emplace_back(line.finish());
    return true;
  });
  return out;
}

std::string call_graph(const FlameGraph& tree, const std::string& title, double least) {
  struct Sum {
    std::uint64_t own = 0, total = 0;
  };
  using Name = std::pair<std::string, StackWord::Kind>;
  std::map<Name, Sum> functions;
  std::map<std::pair<Name, Name>, std::uint64_t> calls;
  std::vector<Name> path;
  tree.walk(false, [&](const FlameGraph::Branch& b) {
    path.resize(b.level);
    Name name{std::string(b.name), b.kind};
    auto& sum = functions[name];
    sum.own += b.own;
    if (!std::ranges::count(path, name)) sum.total += b.total;
    if (!path.empty()) {
      // A call within itself is part of the outer one.
      bool known = false;
      for (std::size_t i = 1; i < path.size(); i++)
        known |= path[i - 1] == path.back() && path[i] == name;
      if (!known) calls[{path.back(), name}] += b.total;
    }
    path.push_back(std::move(name));
    return true;
  });

  const auto all = tree.total();
  std::map<Name, std::size_t> shown;
  std::string out = fmt::format(
      "digraph {{\n  label={};\n  node [shape=box, style=filled, fontname=\"sans-serif\"];\n",
      quoted(title));
  for (auto& [name, sum] : functions) {
    if (percent(sum.total, all) < least) continue;
    auto id = shown.emplace(name, shown.size()).first->second;
    // Warmer colours and larger letters for a larger own share.
    out += fmt::format("  n{} [label={}, fillcolor=\"0.{:02} {:.2f} 1.0\", fontsize={:.0f}];\n", id,
                       quoted(name.first, fmt::format("{:.2f} % of {:.2f} %", percent(sum.own, all),
                                                      percent(sum.total, all))),
                       name.second == StackWord::kernel ? 57 : 8,
                       0.05 + percent(sum.own, all) / 125, 10 + percent(sum.own, all) / 5);
  }
  for (auto& [call, total] : calls) {
    auto from = shown.find(call.first), to = shown.find(call.second);
    if (from == shown.end() || to == shown.end() || percent(total, all) < least) continue;
    out += fmt::format("  n{} -> n{} [label=\"{:.2f} %\", penwidth={:.1f}];\n", from->second,
                       to->second, percent(total, all), 1 + percent(total, all) / 20);
  }
  return out + "}\n";
}

}  // namespace coretap
