// NUMA nodes of the machine's CPUs.
#pragma once
#include <string>
#include <vector>

namespace coretap {

/// The node of each CPU, including offline CPUs; -1: not known.
std::vector<int> nodes_of_cpus(int cpus, const std::string& directory = "/sys/devices/system/node");

}  // namespace coretap
