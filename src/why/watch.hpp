// Facts of a running system: the tool that accounts for time runs as a process, and counters are
// read before and after.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/result.hpp"
#include "why/facts.hpp"

namespace coretap::why {

/// The tasks that `why` is about; everything empty: the machine.
struct Target {
  std::vector<std::uint32_t> pids = {};
  std::vector<std::string> comms = {};
  std::string cgroup = {};

  bool named() const { return !pids.empty() || !comms.empty() || !cgroup.empty(); }
  std::string options() const;          ///< "-p 1,2"
  Result<std::string> subject() const;  ///< in words; fails if there is no such process
  bool has(const Account& account) const;
};

/// Ends early at SIGINT or SIGTERM, with the facts until then.
Result<Facts> watch(const Target& target, double seconds);

}  // namespace coretap::why
