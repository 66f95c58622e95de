// Cgroups that have a separate recorder.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

struct RecordedCgroup {
  std::uint64_t id = 0;
  std::string name;         ///< as given, or a path below that
  std::uint32_t level = 0;  ///< depth below the root of the mount
};

/// Looks up the cgroups on the command line; `recursive`: adds their descendants.
Result<void> find_cgroups(std::vector<RecordedCgroup>& cgroups, bool recursive);

/// Their depths without duplicates, the deepest first. In a cgroup namespace the depth of its root
/// is unknown: returns all depths.
std::vector<std::uint32_t> cgroup_levels(const std::vector<RecordedCgroup>& cgroups);

}  // namespace coretap
