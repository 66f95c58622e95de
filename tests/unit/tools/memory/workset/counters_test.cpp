#include "tools/memory/workset/counters.hpp"

#include <gtest/gtest.h>

namespace coretap::workset {
namespace {

TEST(WorksetCounters, OfTheMachine) {
  auto c = parse_counters(
      "nr_free_pages 5\nworkingset_nodes 9\nworkingset_refault_anon 1\nworkingset_refault_file 2\n"
      "workingset_activate_anon 3\nworkingset_activate_file 4\nworkingset_restore_anon 5\n"
      "workingset_restore_file 6\nworkingset_nodereclaim 7\npgsteal_kswapd 100\npgsteal_anon 8\n"
      "pgsteal_file 9\n");
  EXPECT_EQ(c, (Counters{1, 2, 3, 4, 5, 6, 8, 9, 17, 7}));
}

TEST(WorksetCounters, BeforeLinux59) {
  auto c = parse_counters("workingset_refault 2\nworkingset_activate 3\nworkingset_restore 4\n");
  EXPECT_EQ(c[refaulted_file], 2u);
  EXPECT_EQ(c[activated_file], 3u);
  EXPECT_EQ(c[restored_file], 4u);
  EXPECT_FALSE(c[refaulted_anon]);
  EXPECT_FALSE(c[evicted]);
}

// Of version 1: a cgroup's own counts, and those with the cgroups below it.
TEST(WorksetCounters, OfACgroup) {
  auto first = parse_counters(
      "total_workingset_refault_file 50\nworkingset_refault_anon 1\nworkingset_refault_file 2\n"
      "total_workingset_refault_anon 40\n");
  EXPECT_EQ(first[refaulted_anon], 40u);
  EXPECT_EQ(first[refaulted_file], 50u);
  EXPECT_FALSE(first[evicted]);
  EXPECT_EQ(parse_counters("pgsteal 7\n")[evicted], 7u);
}

TEST(WorksetCounters, Nonsense) {
  auto c = parse_counters("workingset_refault_file\nworkingset_refault_anon x\n\n pgsteal 1");
  EXPECT_EQ(c, Counters{});
}

TEST(WorksetCounters, Growth) {
  Counters before{}, now{};
  before[refaulted_file] = 10;
  now[refaulted_file] = 15;
  now[refaulted_anon] = 3;  // not known before
  before[evicted] = 9;
  now[evicted] = 8;  // sums over CPUs are not exact
  auto added = growth(now, &before);
  EXPECT_EQ(added[refaulted_file], 5u);
  EXPECT_FALSE(added[refaulted_anon]);
  EXPECT_EQ(added[evicted], 0u);
  EXPECT_TRUE(any(added));
  EXPECT_FALSE(any(growth(now, &now)));
  EXPECT_EQ(growth(now, nullptr)[refaulted_file], 15u);
}

}  // namespace
}  // namespace coretap::workset
