#include "tools/memory/extfrag/buddyinfo.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

std::vector<FreeBlocks> zones_of(const std::string& file) {
  auto parsed = parse_buddyinfo(places::data_text(file));
  EXPECT_TRUE(parsed) << file;
  return parsed.value_or(std::vector<FreeBlocks>());
}

std::int64_t unusable(const FreeBlocks& zone, int order) {
  return unusable_index(zone.blocks.data(), static_cast<int>(zone.blocks.size()), order);
}

// (free pages - those in blocks of the order and above) * 1000 / free pages, rounded down.
TEST(Unusable, OfEachOrder) {
  auto all = zones_of("buddyinfo.txt");
  for (auto [zone, order, expected] : {std::tuple{0, 8, 0},
                                       {0, 9, 66},    // 256000 / 3840
                                       {0, 10, 200},  // 768000 / 3840
                                       {1, 0, 0},
                                       {1, 1, 1000},
                                       {1, 10, 1000},
                                       {2, 1, 357},  // 100000 / 280
                                       {2, 2, 714},  // 200000 / 280
                                       {2, 3, 1000},
                                       {3, 1, 47},   // 12842000 / 267688
                                       {3, 4, 504},  // 135080000 / 267688
                                       {3, 8, 945},  // 253096000 / 267688
                                       {3, 9, 1000},
                                       {4, 0, 1000},  // without free pages 1000
                                       {4, 10, 1000}})
    EXPECT_EQ(unusable(all.at(static_cast<std::size_t>(zone)), order), expected)
        << zone << " " << order;
}

TEST(Unusable, OrdersThatThereAreNot) {
  const __u64 free[] = {5, 5};
  for (int order : {-1, 2, INT32_MAX, INT32_MIN}) EXPECT_EQ(unusable_index(free, 2, order), 0);
  EXPECT_EQ(unusable_index(nullptr, 0, 0), 0);
}

TEST(Unusable, NumbersThatNoMemoryHasDoNoHarm) {
  const __u64 most[] = {UINT64_MAX, UINT64_MAX, 0}, top[] = {0, 0, 1ULL << 63};
  for (int order = -1; order <= 3; order++)
    for (auto* blocks : {most, top}) (void)unusable_index(blocks, 3, order);
}

TEST(Buddyinfo, NodesZonesAndBlocks) {
  auto all = zones_of("buddyinfo.txt");
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].name.node, 0u);
  EXPECT_EQ(all[0].name.zone, "DMA");
  EXPECT_EQ(all[0].blocks, (std::vector<__u64>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 3}));
  EXPECT_EQ(all[3].name.node, 1u);
  EXPECT_EQ(all[3].name.zone, "Normal");
  EXPECT_EQ(all[3].blocks[0], 12842u);
  EXPECT_EQ(all[4].name.zone, "Movable");
}

TEST(Buddyinfo, AsManyOrdersAsThereAre) {
  auto few = parse_buddyinfo("Node 0, zone DMA 1 2\nNode 12, zone  Device 3 4");
  ASSERT_TRUE(few);
  EXPECT_EQ(few->at(1).name.node, 12u);
  EXPECT_EQ(few->at(1).blocks, (std::vector<__u64>{3, 4}));
  EXPECT_TRUE(parse_buddyinfo("")->empty());
}

TEST(Buddyinfo, RefusesWhatIsNotOfThatForm) {
  auto text = places::data_text("buddyinfo_damaged.txt");
  EXPECT_FALSE(parse_buddyinfo(text));
  std::size_t good = 0;
  for (auto& line : lines_of(text)) {
    bool numbers = line.ends_with("0 0 ") || line.ends_with("9223372036854775808 ");
    EXPECT_EQ(parse_buddyinfo(line).has_value(), numbers) << line;
    good += numbers;
  }
  EXPECT_EQ(good, 2u);
  for (auto* bad : {"\n", "Node 0, zone DMA 1\n\n", "Node 0, zone DMA 1\nNode 0, zone DMA 1 2\n",
                    "Node 0, zone DMA 18446744073709551616\n", "Node x, zone DMA 1\n",
                    "Node 0 zone DMA 1\n", "Node 0, zone DMA 1\t2\n"})
    EXPECT_FALSE(parse_buddyinfo(bad)) << bad;
  std::string many = "Node 0, zone DMA";
  for (int i = 0; i < 65; i++) many += " 0";
  EXPECT_FALSE(parse_buddyinfo(many));
}

}  // namespace
}  // namespace coretap
