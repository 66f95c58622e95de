// Memory cgroups of either version, with what the kernel counts of them.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

struct MemoryGroup {
  std::uint64_t id = 0;  ///< the kernel's; no other cgroup has it until the next boot
  std::string path;      ///< below the root of the hierarchy; "/": the root
  std::string stat;      ///< the text of memory.stat
};

/// All of them, in the hierarchy of version 2 if it has the memory controller, else in that of
/// version 1.
Result<std::vector<MemoryGroup>> memory_groups();
/// The directory of that hierarchy; empty: none is mounted.
std::string memory_hierarchy(std::string_view mountinfo);

}  // namespace coretap
