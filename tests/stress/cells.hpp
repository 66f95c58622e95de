// A tool in trouble is still to tell the truth: what it shows and what it counts as not shown are
// all that its workloads say they did. A row for each tool, a cell for each kind of trouble.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "tools/harness.hpp"

namespace coretap::stress {

/// What a ledger's causes are called that stand for events which are not shown.
inline constexpr const char* kNotShown[] = {"lost", "untracked", "unmatched", "overwritten"};

struct Outcome {
  std::string tool, trouble, result, reason;
  std::uint64_t truth = 0, shown = 0, missed = 0;
  std::map<std::string, std::uint64_t> not_shown;
  int attempts = 1;
  double seconds = 0;

  std::uint64_t seen() const;
  std::string sum() const;  ///< "40000 = 39000 + 1000 lost"
};

}  // namespace coretap::stress
