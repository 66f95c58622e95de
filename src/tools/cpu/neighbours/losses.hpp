// Sums of time by victim and by what it was lost to, and the rows that these make.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "cpu/neighbours.h"

namespace coretap::neighbours {

/// The parts of the time in which a cgroup wants to run: it runs, or loses the time.
enum Part { kRun, kLimit, kItself, kOthers, kRealTime, kKernel, kIrq, kIdle, kUnknown, kParts };

struct PartName {
  std::string_view key, title, doc;
};
const std::array<PartName, kParts>& parts();

using Losses = std::map<std::pair<std::uint64_t, std::uint64_t>, neighbour_sum>;  ///< victim, to

/// A cgroup, or those of a container or unit.
struct Victim {
  std::string name;
  std::set<std::uint64_t> cgroups;
  std::array<std::uint64_t, kParts> ns{};
  std::uint64_t waits = 0, wait_ns = 0;
  std::uint64_t unused_ns = 0;  ///< part of the waits
  std::uint64_t reclaim_own_ns = 0, reclaim_machine_ns = 0;
  /// Those that had the CPU, by name and kind, the largest first.
  struct Culprit {
    std::string name;
    Part kind = kOthers;
    std::uint64_t ns = 0;
  };
  std::vector<Culprit> culprits;

  std::uint64_t wanted_ns() const;
  std::uint64_t lost_ns() const { return wanted_ns() - ns[kRun]; }
};

/// The names of cgroups, and of groups of them.
using NameOf = std::function<std::string(std::uint64_t cgroup)>;

/// The victims that waited or ran, those that lost the most first.
std::vector<Victim> victims(const Losses& losses, const NameOf& name);

}  // namespace coretap::neighbours
