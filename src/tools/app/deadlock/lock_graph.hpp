// In which orders mutexes are taken, and the cycles among them. Pure.
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
  /// The second mutex was wanted while the first one was held. They are numbered as they come.
  struct Order {
    std::size_t first = 0, second = 0;
    deadlock_seen seen = {};

    bool guarded_by(std::uint64_t address) const;
  };
  /// Orders, each of which begins with the mutex with which the one before ends.
  using Cycle = std::vector<const Order*>;

  /// Or what is known by now of an order that is there.
  void add(const deadlock_order& order, const deadlock_seen& seen);

  /// Those that were not returned before. A cycle whose orders are all taken under one and the same
  /// other mutex is none.
  std::vector<Cycle> new_cycles();

  const deadlock_mutex& mutex(std::size_t number) const { return mutexes_[number]; }
  std::size_t mutexes() const { return mutexes_.size(); }
  std::size_t orders() const { return orders_.size(); }
  std::size_t cycles() const { return known_.size(); }

  /// For Graphviz; orders of cycles in red.
  std::string dot() const;

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
  std::vector<std::vector<std::size_t>> from_;  ///< by mutex: orders that begin with it
  std::set<std::size_t> to_look_at_;            ///< orders that may have closed a cycle
  std::set<std::size_t> guarded_;               ///< the same, but that a guard was there
  std::set<std::vector<std::size_t>> known_;    ///< cycles by their mutexes, the lowest first
  std::set<std::size_t> in_cycles_;
};

}  // namespace coretap
