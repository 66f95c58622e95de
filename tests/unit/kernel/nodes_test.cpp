#include "kernel/nodes.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernel/kernel.hpp"

namespace coretap {
namespace {

TEST(Nodes, OfADirectory) {
  std::filesystem::path top = testing::TempDir() + "/nodes";
  for (auto* link : {"node0/cpu0", "node0/cpu2", "node3/cpu1"})
    std::filesystem::create_directories(top / link);
  std::ofstream(top / "online") << "0,3\n";
  EXPECT_EQ(nodes_of_cpus(4, top.string()), (std::vector{0, 3, 0, -1}));
  std::filesystem::remove_all(top);
  EXPECT_EQ(nodes_of_cpus(3, top.string()), (std::vector{0, 0, 0}));
}

TEST(Nodes, OfThisMachine) {
  auto nodes = nodes_of_cpus(possible_cpus());
  for (int cpu : online_cpus()) EXPECT_GE(nodes[static_cast<std::size_t>(cpu)], 0);
}

}  // namespace
}  // namespace coretap
