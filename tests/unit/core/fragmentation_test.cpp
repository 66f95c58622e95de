#include "core/fragmentation.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

namespace coretap {
namespace {

struct Zone {
  std::string name;
  std::vector<__u64> free;
};

/// /proc/buddyinfo: "Node N, zone NAME" and a count per order, as far as there are numbers.
std::vector<Zone> zones(const std::string& file) {
  std::ifstream in(CORETAP_TEST_DATA "/" + file);
  EXPECT_TRUE(in) << file;
  std::vector<Zone> all;
  for (std::string line, word; std::getline(in, line);) {
    std::istringstream words(line);
    Zone zone;
    words >> word >> word >> word >> zone.name;
    for (__u64 n; words >> n;) zone.free.push_back(n);
    all.push_back(zone);
  }
  return all;
}

std::int64_t index(const Zone& zone, int order) {
  return fragmentation_index(zone.free.data(), static_cast<int>(zone.free.size()), order);
}

// Expected values are worked out by hand: 1000 - (1000 + pages * 1000 / 2^order) / blocks, each
// division rounded down.
TEST(Fragmentation, SucceedsWhereABlockIsLargeEnough) {
  auto dma = zones("buddyinfo.txt").at(0);
  ASSERT_EQ(dma.free.size(), 11u);
  for (int order = 0; order <= 10; order++) EXPECT_EQ(index(dma, order), -1000) << order;
}

TEST(Fragmentation, LackOfMemory) {
  auto dma32 = zones("buddyinfo.txt").at(1);  // three single pages
  EXPECT_EQ(index(dma32, 0), -1000);
  EXPECT_EQ(index(dma32, 1), 167);   // 1000 - 2500 / 3
  EXPECT_EQ(index(dma32, 2), 417);   // 1000 - 1750 / 3
  EXPECT_EQ(index(dma32, 10), 666);  // 1000 - 1002 / 3
}

TEST(Fragmentation, ScatteredMemory) {
  auto normal = zones("buddyinfo.txt").at(2);  // 280 pages in 170 blocks, none above order 2
  EXPECT_EQ(index(normal, 2), -1000);
  EXPECT_EQ(index(normal, 3), 789);   // 1000 - 36000 / 170
  EXPECT_EQ(index(normal, 4), 892);   // 1000 - 18500 / 170
  EXPECT_EQ(index(normal, 9), 991);   // 1000 - 1546 / 170
  EXPECT_EQ(index(normal, 10), 993);  // 1000 - 1273 / 170
}

TEST(Fragmentation, ALargeZone) {
  auto normal = zones("buddyinfo.txt").at(3);  // 267688 pages in 48400 blocks, none above order 8
  EXPECT_EQ(index(normal, 8), -1000);
  EXPECT_EQ(index(normal, 9), 990);   // 1000 - 523828 / 48400
  EXPECT_EQ(index(normal, 10), 995);  // 1000 - 262414 / 48400
}

TEST(Fragmentation, EmptyZone) {
  auto movable = zones("buddyinfo.txt").at(4);
  for (int order = 0; order <= 10; order++) EXPECT_EQ(index(movable, order), 0) << order;
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

TEST(Fragmentation, DamagedNumbersDoNoHarm) {
  auto all = zones("buddyinfo_damaged.txt");
  ASSERT_EQ(all.size(), 7u);
  for (auto& zone : all)
    for (int order = -1; order <= 11; order++) (void)index(zone, order);
  EXPECT_EQ(index(all[1], 1), -1000);
  EXPECT_EQ(index(all[0], 0), 0) << "no numbers at all";
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
