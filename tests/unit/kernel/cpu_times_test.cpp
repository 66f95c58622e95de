#include "coretap/cpu_times.hpp"

#include <gtest/gtest.h>

namespace coretap {
namespace {

TEST(CpuTimes, Parses) {
  auto all = parse_cpu_times(
      "cpu  10 2 3 4 5 6 7 8 1 2\ncpu0 10 2 3 4 5 6 7 8 1 2\ncpu12 1 1 1 1 1 1 1 1 0 0\nintr 5\n");
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].cpu, -1);
  EXPECT_EQ((*all)[0].guest_nice, 2u);
  EXPECT_EQ((*all)[0].steal, 8u);
  EXPECT_EQ((*all)[2].cpu, 12);
  EXPECT_EQ((*all)[2].softirq, 1u);
}

TEST(CpuTimes, RefusesOtherText) {
  for (auto* text :
       {"", "intr 5\n", "cpu0 1 2 3 4 5 6 7 8 9 10\n", "cpu  1 2 3\n", "cpu  1 2 3 4 5 6 7 8 9 x\n",
        "cpu  1 2 3 4 5 6 7 8 9 10\ncpux 1 2 3 4 5 6 7 8 9 10\n"})
    EXPECT_FALSE(parse_cpu_times(text)) << text;
}

TEST(CpuTimes, OfThisMachine) {
  auto all = cpu_times();
  ASSERT_TRUE(all);
  EXPECT_GE(all->size(), 2u);
  EXPECT_GT((*all)[0].user, 0u);
}

}  // namespace
}  // namespace coretap
