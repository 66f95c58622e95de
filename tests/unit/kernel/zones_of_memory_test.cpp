// Memory zones and their fragmentation.
#include "coretap/fragmentation.hpp"
#include "expect.hpp"
#include "kernel/zones.hpp"
#include "places.hpp"

namespace coretap {
namespace {

Zone zone(std::uint32_t node, const char* name, std::uint64_t first, std::uint64_t end) {
  return {{node, name}, first, end};
}

/// "0DMA 1Normal - ", by page frames.
std::string at(const Zones& zones, std::initializer_list<std::uint64_t> frames) {
  std::string text;
  for (auto frame : frames) {
    auto* z = zones.of(frame);
    text += (z ? std::to_string(z->name.node) + z->name.zone : "-") + " ";
  }
  return text;
}

std::string in_words(const std::vector<pfn_range>& ranges) {
  std::string text;
  for (auto& r : ranges) text += std::to_string(r.first) + "-" + std::to_string(r.end) + " ";
  return text;
}

TEST(ZoneLine, Name) {
  std::string_view line = "Node 0, zone   Normal      1";
  auto name = take_zone(line);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->node, 0u);
  EXPECT_EQ(name->zone, "Normal");
  EXPECT_EQ(line, "      1");
  line = "Node    1, zone DMA, type";  // /proc/pagetypeinfo
  name = take_zone(line);
  ASSERT_TRUE(name);
  EXPECT_EQ(name->node, 1u);
  for (std::string_view bad :
       {"", "Node", "Node , zone DMA", "Node -1, zone DMA", "node 0, zone DMA", "Node 0, zone ",
        "Node 0, zone", "Node 4294967296, zone DMA"}) {
    auto rest = bad;
    EXPECT_FALSE(take_zone(rest)) << bad;
    EXPECT_EQ(rest, bad);
  }
}

TEST(Zoneinfo, ZonesThatHaveMemory) {
  auto all = parse_zoneinfo(places::data_text("zoneinfo.txt"));
  ASSERT_TRUE(all);
  std::string text;
  for (auto& z : *all)
    text += std::to_string(z.name.node) + z.name.zone + " " + std::to_string(z.first) + "-" +
            std::to_string(z.end) + "; ";
  EXPECT_EQ(text, "0DMA 1-4096; 0DMA32 4096-262109; 1Normal 1048576-1572864; ");
}

TEST(Zoneinfo, RefusesWhatIsNotOfThatForm) {
  const std::string good = "Node 0, zone DMA\n        spanned  10\n  start_pfn:           1\n";
  EXPECT_EQ(parse_zoneinfo(good)->size(), 1u);
  EXPECT_TRUE(parse_zoneinfo("")->empty());
  for (auto* bad :
       {"Node 0, zone\n", "Node 0, zone DMA 7\n", "        spanned  10\n",
        "  start_pfn:           1\n", "Node 0, zone DMA\n        spanned  x\n",
        "Node 0, zone DMA\n        spanned  -1\n", "Node 0, zone DMA\n        spanned  1 2\n",
        "Node 0, zone DMA\n        spanned  18446744073709551616\n",
        "Node 0, zone DMA\n        spanned  10\n  start_pfn:           18446744073709551615\n",
        "Node 0, zone DMA\n        spanned  10\n  start_pfn:\n"})
    EXPECT_FALSE(parse_zoneinfo(bad)) << bad;
}

TEST(Zones, OfAPageFrame) {
  Zones zones({zone(0, "DMA", 1, 4096), zone(0, "Normal", 8192, 9000)});
  EXPECT_EQ(at(zones, {0, 1, 4095, 4096, 8191, 8192, 8999, 9000, UINT64_MAX}),
            "- 0DMA 0DMA - - 0Normal 0Normal - - ");
  EXPECT_EQ(at(Zones({}), {7}), "- ");
}

// Interleaved nodes: one spans the other.
TEST(Zones, SpannedByAnother) {
  Zones zones({zone(0, "Normal", 100, 400), zone(1, "Normal", 200, 300)});
  EXPECT_EQ(at(zones, {100, 199, 200, 299, 300, 400}),
            "0Normal 0Normal 1Normal 1Normal 0Normal - ");
  EXPECT_EQ(in_words(zones.ranges(0, "")), "100-200 300-400 ");
  EXPECT_EQ(in_words(zones.ranges(1, "")), "200-300 ");
  EXPECT_EQ(in_words(zones.ranges({}, "Normal")), "100-400 ");
}

TEST(Zones, Ranges) {
  Zones zones({zone(0, "DMA", 1, 10), zone(0, "Normal", 10, 20), zone(1, "Normal", 20, 30),
               zone(1, "Movable", 40, 50)});
  EXPECT_EQ(in_words(zones.ranges(0, "")), "1-20 ") << "what meets is one";
  EXPECT_EQ(in_words(zones.ranges(1, "")), "20-30 40-50 ");
  EXPECT_EQ(in_words(zones.ranges({}, "Normal")), "10-30 ");
  EXPECT_EQ(in_words(zones.ranges(1, "Normal")), "20-30 ");
  EXPECT_EQ(in_words(zones.ranges({}, "")), "1-30 40-50 ");
  EXPECT_EQ(in_words(zones.ranges(2, "")), "");
  EXPECT_EQ(in_words(zones.ranges(0, "Movable")), "");
}

TEST(Zones, OfThisMachine) {
  ASSERT_TRUE(zones());
  ASSERT_FALSE((*zones()).all().empty());
  for (auto& z : (*zones()).all()) EXPECT_LT(z.first, z.end) << z.name.zone;
}

// Free blocks by order, as in tests/unit/data/buddyinfo.txt.
using Blocks = std::vector<__u64>;
const Blocks kDma{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3};
const Blocks kDma32{3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
const Blocks kScattered{100, 50, 20, 0, 0, 0, 0, 0, 0, 0, 0};
const Blocks kLarge{12842, 14709, 10749, 6228, 2410, 803, 364, 238, 57, 0, 0};
const Blocks kEmpty(11);

/// For each order.
std::vector<int> indices(const Blocks& blocks, std::initializer_list<int> orders) {
  std::vector<int> all;
  for (int order : orders)
    all.push_back(static_cast<int>(
        fragmentation_index(blocks.data(), static_cast<int>(blocks.size()), order)));
  return all;
}

// Expected values are computed by hand: 1000 - (1000 + pages * 1000 / 2^order) / blocks, each
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
