#include "coretap/fragmentation.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

// Free blocks by order, as in tests/unit/data/buddyinfo.txt.
using Blocks = std::vector<__u64>;
const Blocks kDma{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3};
const Blocks kDma32{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
const Blocks kScattered{100, 50, 20, 0, 0, 0, 0, 0, 0, 0, 0};
const Blocks kLarge{12842, 14709, 10749, 6228, 2410, 803, 364, 238, 57, 0, 0};
const Blocks kEmpty(11);

/// Of each order.
std::vector<int> indices(const Blocks& blocks, std::initializer_list<int> orders) {
  std::vector<int> all;
  for (int order : orders)
    all.push_back(static_cast<int>(
        fragmentation_index(blocks.data(), static_cast<int>(blocks.size()), order)));
  return all;
}

// Expected values are worked out by hand: 1000 - (1000 + pages * 1000 / 2^order) / blocks, each
// division rounded down.
TEST(Fragmentation, OfZones) {
  using Indices = std::vector<int>;
  const auto every = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(indices(kDma, every), Indices(11, -1000)) << "there is a block that is large enough";
  EXPECT_EQ(indices(kEmpty, every), Indices(11, 0));
  // 1000 - 2500 / 3, 1000 - 1750 / 3, 1000 - 1002 / 3
  EXPECT_EQ(indices(kDma32, {0, 1, 2, 10}), (Indices{-1000, 167, 417, 666})) << "a lack of memory";
  // 280 pages in 170 blocks: 36000, 18500, 1546, 1273 / 170
  EXPECT_EQ(indices(kScattered, {2, 3, 4, 9, 10}), (Indices{-1000, 789, 892, 991, 993}));
  // 267688 pages in 48400 blocks: 523828, 262414 / 48400
  EXPECT_EQ(indices(kLarge, {8, 9, 10}), (Indices{-1000, 990, 995}));
}

TEST(Fragmentation, OnePageIsBelowTheScaleAndThereAreNoOtherOrders) {
  const __u64 one[] = {1, 0}, free[] = {5, 5};
  EXPECT_EQ(fragmentation_index(one, 2, 1), -500);  // as the kernel computes it
  for (int order : {-1, 2, INT32_MAX, INT32_MIN}) EXPECT_EQ(fragmentation_index(free, 2, order), 0);
  EXPECT_EQ(fragmentation_index(nullptr, 0, 0), 0);
}

TEST(Fragmentation, NumbersThatNoMemoryHasDoNoHarm) {
  const __u64 most[] = {UINT64_MAX, UINT64_MAX, 0}, top[] = {0, 0, 1ULL << 63};
  for (int order = -1; order <= 3; order++)
    for (auto* blocks : {most, top}) (void)fragmentation_index(blocks, 3, order);
}

TEST(ZoneName, AsTheKernelsEnum) {
  expect_each(zone_name, {"Normal => ZONE_NORMAL", "DMA32 => ZONE_DMA32", "HighMem => ZONE_HIGHMEM",
                          " => ZONE_", "\xc3\xa9{ => ZONE_\xc3\xa9{"});
}

}  // namespace
}  // namespace coretap
