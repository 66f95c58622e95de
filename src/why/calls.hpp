// System calls of the target, from the lines of the tool that counts them.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "why/facts.hpp"

namespace coretap::why {

class Calls {
 public:
  /// A line of JSON of all calls, or only of those that failed.
  void take(std::string_view line, bool failed);
  /// Adds the counters "calls.all" and "calls.failed", scaled to the run of the facts, and the
  /// settings "calls.most" and "calls.failed.most": the most frequent ones.
  void add_to(Facts& facts, double seconds) const;

 private:
  std::map<std::string, std::uint64_t> counts_[2];
};

}  // namespace coretap::why
