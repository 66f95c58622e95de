#include "tools/general/funcslower/call_trees.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace coretap {

namespace {

/// Sorts the calls by their start, finds the caller of each, as an index plus one, and computes the
/// time outside of inner calls.
void connect(CallTree& calls) {
  std::ranges::sort(calls, [](auto& a, auto& b) {
    return std::tuple(a.start(), a.node.depth) < std::tuple(b.start(), b.node.depth);
  });
  std::vector<std::size_t> path;
  for (std::size_t i = 0; i < calls.size(); i++) {
    auto& call = calls[i];
    while (!path.empty() && calls[path.back()].node.depth >= call.node.depth) path.pop_back();
    if (!path.empty()) {
      auto& outer = calls[path.back()];
      if (outer.node.depth + 1 == call.node.depth &&
          (!call.node.caller || call.node.caller == outer.start())) {
        call.caller = path.back() + 1;
        outer.has_calls = true;
      }
    }
    path.push_back(i);
  }
  // Inner calls first.
  std::vector<std::uint64_t> inner(calls.size());
  for (auto i = calls.size(); i-- > 0;) {
    auto& call = calls[i];
    auto& time = call.node.call.latency_ns;
    auto within = std::max<std::uint64_t>(call.node.inner_ns, inner[i] + call.node.hidden_ns);
    call.self_ns = time - std::min<std::uint64_t>(time, within);
    if (!call.caller || !call.timed()) continue;
    inner[call.caller - 1] += time;
    // A call that ended by a jump to this one lasts as long, though its return is seen before.
    auto& outer = calls[call.caller - 1];
    if (outer.timed() && call.start() + time > outer.start() + outer.node.call.latency_ns)
      outer.node.call.latency_ns = call.start() + time - outer.start();
  }
}

}  // namespace

void CallTrees::add(Growing& tree, const funcslower_node& node) const {
  const std::size_t depth = std::min<std::size_t>(node.depth, CALL_LEVELS - 1);
  auto start = std::uint64_t{node.call.head.time_ns};
  auto omitted = std::exchange(tree.omitted[depth + 1], 0);
  // Calls around one that is kept are kept: their number is limited by their depth.
  const bool holds_kept = tree.last_kept[depth + 1] >= start;
  if (tree.calls.size() >= most_ && !holds_kept && depth) {
    tree.omitted[depth] += omitted + 1;
    return;
  }
  tree.last_kept[depth] = start;
  tree.calls.push_back({.node = node, .omitted = omitted});
}

CallTree CallTrees::take(ByThread::iterator tree) {
  auto calls = std::move(tree->second.calls);
  held_ -= calls.size();
  growing_.erase(tree);
  connect(calls);
  return calls;
}

std::vector<CallTree> CallTrees::add(const funcslower_node& node) {
  std::vector<CallTree> complete;
  auto tree = growing_.find(node.task);
  if (tree != growing_.end() && tree->second.number != node.tree) {
    complete.push_back(take(tree));
    tree = growing_.end();
  }
  if (tree == growing_.end()) {
    tree = growing_.try_emplace(node.task).first;
    tree->second.number = node.tree;
  }
  auto before = tree->second.calls.size();
  add(tree->second, node);
  held_ += tree->second.calls.size() - before;
  tree->second.touched = node.call.head.time_ns + node.call.latency_ns;
  if (node.last) complete.push_back(take(tree));
  // The last record of a tree may be lost.
  while (held_ > kMostHeld)
    complete.push_back(take(
        std::ranges::min_element(growing_, {}, [](auto& each) { return each.second.touched; })));
  return complete;
}

std::vector<CallTree> CallTrees::rest() {
  std::vector<CallTree> all;
  while (!growing_.empty()) all.push_back(take(growing_.begin()));
  std::ranges::sort(all, {}, [](auto& tree) { return tree.empty() ? 0 : tree.front().start(); });
  return all;
}

}  // namespace coretap
