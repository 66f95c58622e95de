#include "kernel/nodes.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "base/files.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

std::vector<int> nodes_of_cpus(int cpus, const std::string& directory) {
  std::vector<int> nodes(static_cast<std::size_t>(cpus), -1);
  auto online = read_file(directory + "/online");
  // A kernel that is built without NUMA has no such directory, and all CPUs on one node.
  if (!online) nodes.assign(nodes.size(), 0);
  for (int node : parse_cpus(online.value_or("")))
    for (std::size_t cpu = 0; cpu < nodes.size(); cpu++)
      if (access(fmt::format("{}/node{}/cpu{}", directory, node, cpu).c_str(), F_OK) == 0)
        nodes[cpu] = node;
  return nodes;
}

}  // namespace coretap
