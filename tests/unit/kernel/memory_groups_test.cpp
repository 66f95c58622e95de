#include "coretap/memory_groups.hpp"

#include <gtest/gtest.h>

namespace coretap {
namespace {

constexpr char kFirst[] =
    "31 30 0:28 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
    "32 30 0:29 / /sys/fs/cgroup/memory rw,relatime shared:5 - cgroup cgroup rw,memory\n"
    "33 30 0:30 / /no/such/unified rw - cgroup2 cgroup2 rw\n";

TEST(MemoryGroups, VersionOneBesideTwo) {
  EXPECT_EQ(memory_hierarchy(kFirst), "/sys/fs/cgroup/memory");
}

TEST(MemoryGroups, None) {
  EXPECT_EQ(memory_hierarchy(""), "");
  EXPECT_EQ(memory_hierarchy("1 2 0:3 / /sys/fs/cgroup/x rw - cgroup cgroup rw,memory_not\n"), "");
  EXPECT_EQ(memory_hierarchy("no mount"), "");
}

// For any hierarchy: the root comes first.
TEST(MemoryGroups, OfThisMachine) {
  auto groups = memory_groups();
  if (!groups) GTEST_SKIP() << groups.error().why;
  EXPECT_EQ((*groups)[0].path, "/");
  for (auto& g : *groups) EXPECT_NE(g.id, 0u);
}

}  // namespace
}  // namespace coretap
