#include "tools/cpu/neighbours/losses.hpp"

#include <gtest/gtest.h>

#include "tools/cpu/neighbours/pressure.hpp"

namespace coretap::neighbours {
namespace {

std::string name(std::uint64_t cgroup) {
  if (cgroup == NEIGHBOUR(KERNEL)) return "[kernel]";
  return cgroup == 7 || cgroup == 8 ? "/pod" : "/" + std::to_string(cgroup);
}

TEST(NeighboursLosses, PartsOfOneVictim) {
  auto rows = victims({{{5, NEIGHBOUR(RAN)}, {100, 0}},
                       {{5, NEIGHBOUR(RAN_IRQ)}, {10, 0}},
                       {{5, NEIGHBOUR(UNUSED)}, {9, 0}},
                       {{5, NEIGHBOUR(LIMIT)}, {20, 1}},
                       {{5, NEIGHBOUR(IRQ)}, {3, 0}},
                       {{5, NEIGHBOUR(IDLE)}, {4, 2}},
                       {{5, NEIGHBOUR(UNKNOWN)}, {2, 0}},
                       {{5, NEIGHBOUR(KERNEL)}, {6, 0}},
                       {{5, NEIGHBOUR(RECLAIM_OWN)}, {11, 1}},
                       {{5, NEIGHBOUR(RECLAIM_MACHINE)}, {12, 1}},
                       {{5, 5}, {30, 0}},
                       {{5, 6}, {40, 1}},
                       {{5, 6 | NEIGHBOUR_RT}, {50, 0}}},
                      name);
  ASSERT_EQ(rows.size(), 1u);
  auto& v = rows[0];
  EXPECT_EQ(v.name, "/5");
  EXPECT_EQ(v.ns, (std::array<std::uint64_t, kParts>{90, 20, 30, 40, 50, 6, 13, 4, 2}));
  EXPECT_EQ(v.wanted_ns(), 255u);
  EXPECT_EQ(v.lost_ns(), 165u);
  EXPECT_EQ(v.wait_ns, 155u) << "without interrupts while it ran";
  EXPECT_EQ(v.waits, 4u);
  EXPECT_EQ(v.unused_ns, 9u);
  EXPECT_EQ(v.reclaim_own_ns, 11u);
  EXPECT_EQ(v.reclaim_machine_ns, 12u);
  ASSERT_EQ(v.culprits.size(), 4u);
  EXPECT_EQ(v.culprits[0].name, "/6");
  EXPECT_EQ(v.culprits[0].kind, kRealTime);
  EXPECT_EQ(v.culprits[1].ns, 40u);
}

TEST(NeighboursLosses, CgroupsOfOneNameAreOne) {
  auto rows = victims({{{7, 8}, {5, 1}},
                       {{7, 8 | NEIGHBOUR_RT}, {6, 0}},
                       {{7, 9}, {1, 0}},
                       {{8, NEIGHBOUR(RAN)}, {100, 0}},
                       {{9, 7}, {1000, 1}},
                       {{9, 8}, {1, 0}},
                       {{NEIGHBOUR(KERNEL), NEIGHBOUR(KERNEL)}, {2, 1}}},
                      name);
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].name, "/9") << "it lost the most";
  ASSERT_EQ(rows[0].culprits.size(), 1u);
  EXPECT_EQ(rows[0].culprits[0].ns, 1001u);
  EXPECT_EQ(rows[1].name, "/pod");
  EXPECT_EQ(rows[1].ns[kItself], 11u);
  EXPECT_EQ(rows[1].ns[kOthers], 1u);
  EXPECT_EQ(rows[1].cgroups.size(), 2u);
  EXPECT_EQ(rows[2].ns[kItself], 2u) << "threads of the kernel are one";
}

TEST(NeighboursPressure, Totals) {
  EXPECT_EQ(some_total("some avg10=0.00 avg60=1.20 avg300=0.00 total=1234\nfull avg10=0 total=5\n"),
            1234000u);
  EXPECT_EQ(some_total("full avg10=0.00 avg60=0.00 avg300=0.00 total=5"), std::nullopt);
  EXPECT_EQ(some_total("some avg10=0.00"), std::nullopt);
  EXPECT_EQ(some_total("some total=x"), std::nullopt);
  EXPECT_EQ(some_total(""), std::nullopt);
}

}  // namespace
}  // namespace coretap::neighbours
