// From facts to findings: a pure function.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "why/facts.hpp"
#include "why/rules.hpp"

namespace coretap::why {

/// When lost time is a finding. Shares are of 1.
struct Thresholds {
  double share = 0.10;     ///< of the busy time
  double pressure = 0.05;  ///< of the time of one thread
};

struct Finding {
  const Rule* rule = nullptr;
  double share = 0;  ///< of the busy time
  std::uint64_t lost_ns = 0;
  bool below = false;                    ///< the thresholds: only with --all
  std::vector<std::string> losers = {};  ///< the processes whose time it is, with their shares
  std::vector<Evidence> evidence = {};
  std::vector<Culprit> culprits = {};
  std::string command = {};                    ///< without "coretap"
  std::vector<std::string_view> through = {};  ///< findings that are effects of this one
};

struct Noted {
  const Note* note;
  double count;         ///< by how much its counters grew
  std::string command;  ///< without "coretap"
};

struct Answer {
  double threads = 0;   ///< of the target, on average
  bool certain = true;  ///< false: 1 % of the time or more is in no known state
  std::uint64_t time_ns = 0, busy_ns = 0, cpu_ns = 0;  ///< of all its threads
  std::vector<Finding> findings = {};                  ///< the first is the likeliest cause
  std::vector<Noted> notes = {};
  /// Without findings: why there are none.
  std::string silent = {};
};

Answer rank(const Facts& facts, const Thresholds& thresholds, bool all = false);

}  // namespace coretap::why
