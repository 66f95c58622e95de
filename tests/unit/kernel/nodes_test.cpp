#include "kernel/nodes.hpp"

#include "../symbols/test_files.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"

namespace coretap {
TEST(Nodes, OfADirectory) {
  ScratchDirectory top;
  for (auto* link : {"node0/cpu0/x", "node0/cpu2/x", "node3/cpu1/x"}) top.write(link, "");
  EXPECT_EQ(nodes_of_cpus(3, top.path()), (std::vector{0, 0, 0})) << "nobody says which there are";
  top.write("online", "0,3\n");
  EXPECT_EQ(nodes_of_cpus(4, top.path()), (std::vector{0, 3, 0, -1}));
}

TEST(Nodes, OfThisMachine) {
  auto nodes = nodes_of_cpus(possible_cpus());
  for (int cpu : online_cpus()) EXPECT_GE(nodes[static_cast<std::size_t>(cpu)], 0);
}

}  // namespace coretap
