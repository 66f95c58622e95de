#include "tools/memory/extfrag/zone_state.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

constexpr char kTypes[] =
    "Page block order: 9\nPages per block:  512\n\n"
    "Free pages count per migrate type at order       0      1      2 \n"
    "Node    0, zone   Normal, type    Unmovable      7      0      2 \n"
    "Node    0, zone   Normal, type      Movable      0      0 >100000 \n"
    "Node    1, zone   Normal, type    Unmovable      7      0      0 \n"
    "Node    1, zone   Normal, type      Movable      1      0      5 \n"
    "Node    2, zone   Normal, type    Unmovable      0      1      0 \n"
    "Node    2, zone   Normal, type      Movable      0      0      0 \n"
    "\nNumber of blocks type     Unmovable      Movable \nNode 0, zone   Normal            1   2 \n";

TEST(Pagetypeinfo, BlocksAndTheMark) {
  auto all = parse_pagetypeinfo(kTypes);
  ASSERT_TRUE(all);
  ASSERT_EQ(all->size(), 6u);
  std::vector<std::uint32_t> alone;
  for (auto& row : *all) alone.push_back(row.alone_below);
  EXPECT_EQ(alone, (std::vector<std::uint32_t>{2, 0, 0, 0, 3, 0}));
  EXPECT_EQ(all->at(1).type, "Movable");
  EXPECT_EQ(all->at(1).blocks, (std::vector<__u64>{0, 0, 100000}));
  EXPECT_EQ(all->at(1).more, (std::vector<bool>{false, false, true}));
  EXPECT_EQ(all->at(2).name.node, 1u);
}

TEST(Pagetypeinfo, RefusesWhatIsNotOfThatForm) {
  for (auto* bad : {"", "Node 0, zone Normal\n", "Node 0, zone Normal, type\n",
                    "Node 0, zone Normal, type Movable\n", "Node 0, zone Normal, type Movable x\n",
                    "Node 0, zone Normal, type Movable 1\nNode 0, zone Normal, type Other 1 2\n",
                    "Node x, zone Normal, type Movable 1\n", "Node 0, zone , type Movable 1\n"})
    EXPECT_FALSE(parse_pagetypeinfo(bad)) << bad;
}

TEST(WatermarksOf, ZonesWithMemory) {
  auto all = parse_watermarks(
      "Node 0, zone      DMA\n  per-node stats\n      nr_inactive_anon 914186\n"
      "  pages free     3840\n        boost    0\n        min      21\n        low      26\n"
      "        high     31\n        promo    36\n        spanned  4095\n        present  3998\n"
      "        protection: (0, 3019)\n      nr_free_pages 3840\n  pagesets\n    cpu: 0\n"
      "              count:    0\n              high:     14\n              batch:    1\n"
      "              high_min: 0\n  node_unreclaimable:  0\n  start_pfn:           1\n"
      "Node 0, zone  Movable\n  pages free     0\n        min      32\n        low      32\n"
      "        high     32\n        spanned  0\n        present  0\n"
      "Node 1, zone   Normal\n  pages free     50\n        min      40\n        low      60\n"
      "        high     80\n        present  100\n");
  ASSERT_TRUE(all);
  std::string text;
  for (auto& z : *all)
    text += std::to_string(z.name.node) + z.name.zone + " " + std::to_string(z.free) + " " +
            std::to_string(z.min) + " " + std::to_string(z.low) + " " + std::to_string(z.high) +
            "; ";
  EXPECT_EQ(text, "0DMA 3840 21 26 31; 1Normal 50 40 60 80; ");
  const std::string zone = "Node 0, zone DMA\n  pages free 9\n        min 1\n        low 2\n";
  EXPECT_EQ(parse_watermarks(zone + "        high 3\n        present 8\n")->size(), 1u);
  EXPECT_TRUE(parse_watermarks(zone + "        high 3\n        present 0\n")->empty());
  for (auto* rest : {"        present 8\n", "        high x\n        present 8\n"})
    EXPECT_FALSE(parse_watermarks(zone + rest)) << rest;
}

std::string steps(std::uint64_t free, const std::vector<__u64>& blocks,
                  std::optional<std::int64_t> threshold) {
  return in_ranges(steps_of({{}, free, 100, 125, 150}, blocks, threshold));
}

// Worked out by hand from the kernel's rules; the indices of 5000 single pages are 1000 - (1000 +
// 5000000 / 2^order) / 5000: order 4 937, order 5 968.
TEST(Steps, OfEachOrder) {
  const std::vector<__u64> single{5000, 0, 0, 0, 0, 0}, few{140, 0, 0, 0, 0, 0},
      large{0, 0, 0, 0, 0, 10};
  EXPECT_EQ(steps(5000, single, 500), "0 enough, 1-5 compact");
  EXPECT_EQ(steps(5000, single, 940), "0 enough, 1-3 compact, 4 reclaim, 5 compact");
  EXPECT_EQ(steps(5000, single, {}), "0 enough, 1-5 reclaim");
  EXPECT_EQ(steps(320, large, 500), "0-5 enough");
  EXPECT_EQ(steps(120, large, 500), "0-4 kswapd, 5 reclaim");
  EXPECT_EQ(steps(90, large, 500), "0-5 reclaim");
  // 2 << order pages must be left for the copies: 140 > 100 + 32 for order 3 only by 116.
  EXPECT_EQ(steps(140, few, 500), "0 enough, 1-3 compact, 4-5 reclaim");
  EXPECT_EQ(steps(0, {}, 500), "");
}

}  // namespace
}  // namespace coretap
