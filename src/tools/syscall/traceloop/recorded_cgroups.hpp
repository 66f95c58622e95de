// Cgroups that have their own recorder.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

struct RecordedCgroup {
  std::uint64_t id = 0;
  std::string name;         ///< as given, or below one that was
  std::uint32_t level = 0;  ///< below the root of the mount
};

/// Looks up those that the command line names; `recursive`: adds those below them.
Result<void> find_cgroups(std::vector<RecordedCgroup>& cgroups, bool recursive);

/// Their depths, each once, the deepest first. In a cgroup namespace of its own it is not known how
/// deep that lies: all are tried.
std::vector<std::uint32_t> cgroup_levels(const std::vector<RecordedCgroup>& cgroups);

}  // namespace coretap
