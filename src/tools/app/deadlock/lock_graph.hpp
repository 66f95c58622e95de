// The orders in which mutexes are taken, and the cycles among them. Pure.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "app/deadlock.h"

namespace coretap {

class LockGraph {
 public:
  /// A thread requested the second mutex while it held the first. Mutexes are numbered in order.
  struct Order {
    std::size_t first = 0, second = 0;
    deadlock_seen seen = {};

    bool guarded_by(std::uint64_t address) const;
  };
  /// Each order starts with the mutex with which the previous one ends.
  using Cycle = std::vector<const Order*>;

  /// Adds an order, or updates a known one.
  void add(const deadlock_order& order, const deadlock_seen& seen);

  /// Cycles that were not returned before. Not a cycle if all its orders are taken while one common
  /// mutex is held.
  std::vector<Cycle> new_cycles();

  const deadlock_mutex& mutex(std::size_t number) const { return mutexes_[number]; }
  std::size_t mutexes() const { return mutexes_.size(); }
  std::size_t orders() const { return orders_.size(); }
  std::size_t cycles() const { return known_.size(); }

  /// Graphviz output; orders of cycles in red.
  std::string dot() const;
  /// JSON as networkx.node_link_graph() reads it, without a line end.
  std::string node_link() const;

 private:
  using Key = std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>;

  std::size_t number_of(const deadlock_mutex& mutex);
  std::vector<std::size_t> shortest(std::size_t order,
                                    const std::vector<std::uint64_t>& without) const;
  std::vector<std::uint64_t> common_guards(const std::vector<std::size_t>& cycle) const;
  bool is_new(const std::vector<std::size_t>& cycle);

  std::vector<deadlock_mutex> mutexes_;
  std::map<Key, std::size_t> numbers_;
  std::vector<Order> orders_;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> by_ends_;
  std::vector<std::vector<std::size_t>> from_;  ///< by mutex: orders that start with it
  std::set<std::size_t> to_look_at_;            ///< orders that may have closed a cycle
  std::set<std::size_t> guarded_;               ///< the same, but a guard was held
  std::set<std::vector<std::size_t>> known_;    ///< cycles by mutexes, the lowest first
  std::set<std::size_t> in_cycles_;
};

}  // namespace coretap
