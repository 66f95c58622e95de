// Properties of the machine in /proc and sysfs: its load, the nodes of its CPUs.
#include "coretap/load_averages.hpp"
#include "expect.hpp"
#include "kernel/kernel.hpp"

namespace coretap {
namespace {

Result<LoadAverages> read(const std::string& text) {
  const ScratchDirectory scratch;
  return load_averages(scratch.write("loadavg", text));
}

TEST(LoadAverages, OfAFile) {
  auto a = read("0.52 1.41 12.38 3/456 7890\n");
  ASSERT_TRUE(a);
  EXPECT_EQ(a->one, 0.52);
  EXPECT_EQ(a->five, 1.41);
  EXPECT_EQ(a->fifteen, 12.38);
  EXPECT_EQ(a->running, 3u);
  EXPECT_EQ(a->total, 456u);
  EXPECT_EQ(load_line(*a), "load averages: 0.52 1.41 12.38");
  a->runnable = 4;
  a->uninterruptible = 3;
  EXPECT_EQ(load_summary(*a), "load averages: 0.52 1.41 12.38 runnable: 4 uninterruptible: 3");
}

TEST(LoadAverages, OfThisMachine) { EXPECT_TRUE(load_averages()); }

TEST(LoadAverages, OfDamagedFiles) {
  for (auto* text : {"", "0.52", "0.52 1.41 12.38", "0.52 1.41 12.38 3", "a b c d/e"}) {
    auto a = read(text);
    ASSERT_FALSE(a) << text;
    EXPECT_EQ(a.error().status, kUnsupported);
  }
  EXPECT_FALSE(load_averages("/proc/no/such/file"));
}

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

}  // namespace
}  // namespace coretap
