// Sums by stack, as a kernel program stores them ("stack_counts" of bpf/lib/stack/stack.bpf.h).
#pragma once
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "lib/core/shared.h"
#include "program/session.hpp"

namespace coretap {

class StackSums {
 public:
  struct Entry {
    stack_sum sum;
    std::vector<stack_party> parties;
    std::uint32_t event = 0;  ///< number of the event that was sampled
  };
  using Sums = std::unordered_map<std::uint64_t, stack_sum>;  ///< by key

  /// Since tracing started.
  static std::vector<Entry> read(const Session& s) { return read(s, nullptr, nullptr); }
  /// Since *before, which is then set to the current sums.
  static std::vector<Entry> read_since(const Session& s, Sums& before) {
    return read(s, &before, nullptr);
  }
  /// Since the last call of this function.
  std::vector<Entry> read_since_last(const Session& s);

  /// For tools that run for days while threads, each with its own sums, come and go. If half of the
  /// room is used, removes sums that did not change between the last two calls of
  /// read_since_last(), and stacks that only these sums used. Readings since another time than the
  /// last call do not include them.
  void forget_idle(Session& s);
  /// Total of the removed sums.
  const stack_sum& forgotten() const { return forgotten_; }

 private:
  static std::vector<Entry> read(const Session& s, Sums* before, std::vector<std::uint64_t>* idle);

  Sums before_;
  std::vector<std::uint64_t> idle_;
  stack_sum forgotten_{};
};

}  // namespace coretap
