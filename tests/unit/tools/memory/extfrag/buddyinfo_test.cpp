#include "tools/memory/extfrag/buddyinfo.hpp"
#include "expect.hpp"

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

// Nodes that take turns: one spans the other.
TEST(Zones, SpannedByAnother) {
  Zones zones({zone(0, "Normal", 100, 400), zone(1, "Normal", 200, 300)});
  EXPECT_EQ(at(zones, {100, 199, 200, 299, 300, 400}),
            "0Normal 0Normal 1Normal 1Normal 0Normal - ");
  EXPECT_EQ(in_words(zones.ranges({0, ""})), "100-200 300-400 ");
  EXPECT_EQ(in_words(zones.ranges({1, ""})), "200-300 ");
  EXPECT_EQ(in_words(zones.ranges({{}, "Normal"})), "100-400 ");
}

TEST(Zones, Ranges) {
  Zones zones({zone(0, "DMA", 1, 10), zone(0, "Normal", 10, 20), zone(1, "Normal", 20, 30),
               zone(1, "Movable", 40, 50)});
  EXPECT_EQ(in_words(zones.ranges({0, ""})), "1-20 ") << "what meets is one";
  EXPECT_EQ(in_words(zones.ranges({1, ""})), "20-30 40-50 ");
  EXPECT_EQ(in_words(zones.ranges({{}, "Normal"})), "10-30 ");
  EXPECT_EQ(in_words(zones.ranges({1, "Normal"})), "20-30 ");
  EXPECT_EQ(in_words(zones.ranges({{}, ""})), "1-30 40-50 ");
  EXPECT_EQ(in_words(zones.ranges({2, ""})), "");
  EXPECT_EQ(in_words(zones.ranges({0, "Movable"})), "");
}

TEST(Zones, OfThisMachine) {
  ASSERT_TRUE(zones());
  ASSERT_FALSE((*zones()).all().empty());
  for (auto& z : (*zones()).all()) EXPECT_LT(z.first, z.end) << z.name.zone;
}

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
