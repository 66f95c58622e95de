#include "kernel/fragmentation.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace coretap {
namespace {

// Free blocks by order, as in tests/unit/data/buddyinfo.txt.
using Blocks = std::vector<__u64>;
const Blocks kDma{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3};
const Blocks kDma32{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
const Blocks kScattered{100, 50, 20, 0, 0, 0, 0, 0, 0, 0, 0};
const Blocks kLarge{12842, 14709, 10749, 6228, 2410, 803, 364, 238, 57, 0, 0};
const Blocks kEmpty(11);

std::int64_t index(const Blocks& blocks, int order) {
  return fragmentation_index(blocks.data(), static_cast<int>(blocks.size()), order);
}

// Expected values are worked out by hand: 1000 - (1000 + pages * 1000 / 2^order) / blocks, each
// division rounded down.
TEST(Fragmentation, SucceedsWhereABlockIsLargeEnough) {
  for (int order = 0; order <= 10; order++) EXPECT_EQ(index(kDma, order), -1000) << order;
}

TEST(Fragmentation, LackOfMemory) {
  EXPECT_EQ(index(kDma32, 0), -1000);
  EXPECT_EQ(index(kDma32, 1), 167);   // 1000 - 2500 / 3
  EXPECT_EQ(index(kDma32, 2), 417);   // 1000 - 1750 / 3
  EXPECT_EQ(index(kDma32, 10), 666);  // 1000 - 1002 / 3
}

TEST(Fragmentation, ScatteredMemory) {
  // 280 pages in 170 blocks
  EXPECT_EQ(index(kScattered, 2), -1000);
  EXPECT_EQ(index(kScattered, 3), 789);   // 1000 - 36000 / 170
  EXPECT_EQ(index(kScattered, 4), 892);   // 1000 - 18500 / 170
  EXPECT_EQ(index(kScattered, 9), 991);   // 1000 - 1546 / 170
  EXPECT_EQ(index(kScattered, 10), 993);  // 1000 - 1273 / 170
}

TEST(Fragmentation, ALargeZone) {
  // 267688 pages in 48400 blocks
  EXPECT_EQ(index(kLarge, 8), -1000);
  EXPECT_EQ(index(kLarge, 9), 990);   // 1000 - 523828 / 48400
  EXPECT_EQ(index(kLarge, 10), 995);  // 1000 - 262414 / 48400
}

TEST(Fragmentation, EmptyZone) {
  for (int order = 0; order <= 10; order++) EXPECT_EQ(index(kEmpty, order), 0) << order;
}

TEST(Fragmentation, OnePageIsBelowTheScale) {
  const __u64 free[] = {1, 0};
  EXPECT_EQ(fragmentation_index(free, 2, 1), -500);  // as the kernel computes it
}

TEST(Fragmentation, OrdersThatThereAreNot) {
  const __u64 free[] = {5, 5};
  EXPECT_EQ(fragmentation_index(free, 2, -1), 0);
  EXPECT_EQ(fragmentation_index(free, 2, 2), 0);
  EXPECT_EQ(fragmentation_index(free, 2, INT32_MAX), 0);
  EXPECT_EQ(fragmentation_index(free, 2, INT32_MIN), 0);
  EXPECT_EQ(fragmentation_index(nullptr, 0, 0), 0);
}

TEST(Fragmentation, NumbersThatNoMemoryHasDoNoHarm) {
  const __u64 most[] = {UINT64_MAX, UINT64_MAX, 0}, top[] = {0, 0, 1ULL << 63};
  for (int order = -1; order <= 3; order++)
    for (auto* blocks : {most, top}) (void)fragmentation_index(blocks, 3, order);
}

TEST(ZoneName, AsTheKernelsEnum) {
  EXPECT_EQ(zone_name("Normal"), "ZONE_NORMAL");
  EXPECT_EQ(zone_name("DMA32"), "ZONE_DMA32");
  EXPECT_EQ(zone_name("HighMem"), "ZONE_HIGHMEM");
  EXPECT_EQ(zone_name(""), "ZONE_");
  EXPECT_EQ(zone_name("\xc3\xa9{"), "ZONE_\xc3\xa9{");
}

}  // namespace
}  // namespace coretap
