#include "tools/app/deadlock/lock_graph.hpp"

#include <algorithm>
#include <deque>
#include <iterator>

#include <fmt/format.h>

#include "coretap/json.hpp"
#include "text/names.hpp"

namespace coretap {

namespace {

constexpr auto kNone = static_cast<std::size_t>(-1);

/// Command names may contain any characters.
std::string quoted(const char* text, std::size_t room) {
  std::string out;
  for (std::size_t i = 0; i < room && text[i]; i++) {
    auto c = static_cast<unsigned char>(text[i]);
    if (c == '"' || c == '\\') out += '\\';
    out += c < ' ' || c >= 0x7f ? '?' : text[i];
  }
  return out;
}

}  // namespace

bool LockGraph::Order::guarded_by(std::uint64_t address) const {
  return std::find(std::begin(seen.guards), std::end(seen.guards), address) !=
         std::end(seen.guards);
}

std::size_t LockGraph::number_of(const deadlock_mutex& mutex) {
  auto [at, is_new] =
      numbers_.emplace(Key(mutex.owner, mutex.address, mutex.life), mutexes_.size());
  if (is_new) {
    mutexes_.push_back(mutex);
    from_.emplace_back();
  }
  return at->second;
}

void LockGraph::add(const deadlock_order& order, const deadlock_seen& seen) {
  auto first = number_of(order.first), second = number_of(order.second);
  auto [at, is_new] = by_ends_.emplace(std::pair(first, second), orders_.size());
  if (is_new) {
    orders_.push_back({first, second, seen});
    from_[first].push_back(at->second);
    to_look_at_.insert(at->second);
    return;
  }
  auto& known = orders_[at->second].seen;
  if (!std::equal(std::begin(known.guards), std::end(known.guards), std::begin(seen.guards))) {
    to_look_at_.insert(guarded_.begin(), guarded_.end());
    guarded_.clear();
  }
  known = seen;
}

/// The shortest cycle that starts with this order, using no order that one of these mutexes guards;
/// empty: there is none.
std::vector<std::size_t> LockGraph::shortest(std::size_t order,
                                             const std::vector<std::uint64_t>& without) const {
  auto goal = orders_[order].first;
  std::vector<std::size_t> came_by(mutexes_.size(), kNone);
  std::deque<std::size_t> next{orders_[order].second};
  auto barred = [&](const Order& o) {
    return std::any_of(without.begin(), without.end(), [&](auto g) { return o.guarded_by(g); });
  };
  if (orders_[order].second == goal) return {order};
  while (!next.empty()) {
    auto at = next.front();
    next.pop_front();
    for (auto o : from_[at]) {
      auto to = orders_[o].second;
      if (to == orders_[order].second || came_by[to] != kNone || barred(orders_[o])) continue;
      came_by[to] = o;
      if (to != goal) {
        next.push_back(to);
        continue;
      }
      std::vector<std::size_t> back;
      for (auto m = goal; m != orders_[order].second; m = orders_[came_by[m]].first)
        back.push_back(came_by[m]);
      back.push_back(order);
      std::reverse(back.begin(), back.end());
      return back;
    }
  }
  return {};
}

std::vector<std::uint64_t> LockGraph::common_guards(const std::vector<std::size_t>& cycle) const {
  std::vector<std::uint64_t> common;
  for (auto g : orders_[cycle.front()].seen.guards)
    if (g &&
        std::all_of(cycle.begin(), cycle.end(), [&](auto o) { return orders_[o].guarded_by(g); }))
      common.push_back(g);
  return common;
}

bool LockGraph::is_new(const std::vector<std::size_t>& cycle) {
  std::vector<std::size_t> by_mutex(cycle.size());
  std::transform(cycle.begin(), cycle.end(), by_mutex.begin(),
                 [&](auto o) { return orders_[o].first; });
  std::rotate(by_mutex.begin(), std::min_element(by_mutex.begin(), by_mutex.end()), by_mutex.end());
  return known_.insert(std::move(by_mutex)).second;
}

std::vector<LockGraph::Cycle> LockGraph::new_cycles() {
  std::vector<Cycle> found;
  for (auto order : to_look_at_) {
    auto cycle = shortest(order, {});
    if (cycle.empty()) continue;
    if (auto guards = common_guards(cycle); !guards.empty()) {
      // There may be another cycle that they do not guard.
      guarded_.insert(order);
      cycle = shortest(order, guards);
      if (cycle.empty() || !common_guards(cycle).empty()) continue;
    }
    if (!is_new(cycle)) continue;
    in_cycles_.insert(cycle.begin(), cycle.end());
    // Starts with the mutex that has the lowest number.
    std::rotate(
        cycle.begin(),
        std::min_element(cycle.begin(), cycle.end(),
                         [&](auto a, auto b) { return orders_[a].first < orders_[b].first; }),
        cycle.end());
    Cycle orders;
    for (auto o : cycle) orders.push_back(&orders_[o]);
    found.push_back(std::move(orders));
  }
  to_look_at_.clear();
  return found;
}

std::string LockGraph::dot() const {
  std::string text = "digraph locks {\n";
  for (std::size_t i = 0; i < mutexes_.size(); i++)
    text += fmt::format("  M{} [label=\"M{}\\n{:#x}\"];\n", i, i, mutexes_[i].address);
  for (std::size_t i = 0; i < orders_.size(); i++) {
    auto& o = orders_[i];
    text += fmt::format("  M{} -> M{} [label=\"{} {}\"{}];\n", o.first, o.second,
                        quoted(o.seen.comm, sizeof o.seen.comm), o.seen.tid,
                        in_cycles_.contains(i) ? ", color=red" : "");
  }
  return text + "}\n";
}

std::string LockGraph::node_link() const {
  JsonLine all;
  all.boolean("directed", true).boolean("multigraph", false);
  all.key("graph").begin_object().end_object();
  all.key("nodes").begin_array();
  for (std::size_t i = 0; i < mutexes_.size(); i++)
    all.begin_object()
        .text("id", fmt::format("M{}", i))
        .number("address", mutexes_[i].address)
        .end_object();
  all.end_array().key("links").begin_array();
  for (std::size_t i = 0; i < orders_.size(); i++) {
    auto& [first, second, seen] = orders_[i];
    all.begin_object()
        .text("source", fmt::format("M{}", first))
        .text("target", fmt::format("M{}", second))
        .number("thread_pid", seen.tid)
        .text("thread_comm", text_in(seen.comm))
        .boolean("in_cycle", in_cycles_.contains(i))
        .end_object();
  }
  return std::string(all.end_array().finish());
}

}  // namespace coretap
