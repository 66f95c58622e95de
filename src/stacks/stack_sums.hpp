// Sums by stack, as a kernel program keeps them ("stack_counts" of bpf/lib/stack.bpf.h).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/shared.h"
#include "program/session.hpp"

namespace coretap {

class StackSums {
 public:
  struct Entry {
    stack_sum sum;
    std::vector<stack_party> parties;
  };
  using Sums = std::unordered_map<std::uint64_t, stack_sum>;  ///< by key

  /// Since tracing began.
  static std::vector<Entry> read(const Session& s) { return read(s, nullptr, nullptr); }
  /// Since *before, which becomes what is now.
  static std::vector<Entry> read_since(const Session& s, Sums& before) {
    return read(s, &before, nullptr);
  }
  /// Since the last call of this function.
  std::vector<Entry> read_since_last(const Session& s);

  /// For tools that run for days, in which threads come and go: each has sums of its own, and half
  /// of the room may be full. Then those are taken out to which nothing was added between the last
  /// two calls of read_since_last(), and stacks that only they had. Readings since another moment
  /// than the last call lack them.
  void forget_idle(Session& s);
  /// Of what was taken out.
  const stack_sum& forgotten() const { return forgotten_; }

 private:
  static std::vector<Entry> read(const Session& s, Sums* before, std::vector<std::uint64_t>* idle);

  Sums before_;
  std::vector<std::uint64_t> idle_;
  stack_sum forgotten_{};
};

}  // namespace coretap
