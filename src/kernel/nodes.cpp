#include "kernel/nodes.hpp"

#include <unistd.h>

#include <fmt/format.h>

#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

std::vector<int> nodes_of_cpus(int cpus, const std::string& directory) {
  std::vector<int> nodes(static_cast<std::size_t>(cpus), -1);
  auto online = read_file(directory + "/online");
  // Kernels without NUMA lack this directory; all CPUs are on one node then.
  if (!online) nodes.assign(nodes.size(), 0);
  for (int node : parse_cpus(online.value_or("")))
    for (std::size_t cpu = 0; cpu < nodes.size(); cpu++)
      if (access(fmt::format("{}/node{}/cpu{}", directory, node, cpu).c_str(), F_OK) == 0)
        nodes[cpu] = node;
  return nodes;
}

}  // namespace coretap
