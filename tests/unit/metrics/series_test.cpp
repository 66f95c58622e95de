// A bounded number of series: no event is lost as names come and go.
#include "metrics/series.hpp"

#include "expect.hpp"

namespace coretap::metrics {
namespace {

using Labels = SeriesTable::Labels;

/// Counts n events for each name.
void count(SeriesTable& table, std::uint64_t n, const Words& names) {
  for (auto& name : names) table.add({name}, Numbers{n}, n);
}

/// Counts one event for each of this many names.
void crowd(SeriesTable& table, int names, const std::string& prefix) {
  for (int i = 0; i < names; i++) count(table, 1, {prefix + std::to_string(i)});
}

std::uint64_t value(const SeriesTable& table, const Labels& labels) {
  auto found = table.all().find(labels);
  return found == table.all().end() ? 0 : found->second.values[0];
}

TEST(SeriesTable, EachLabelSetHasItsOwn) {
  SeriesTable table({false}, 2, 10);
  table.add({"a"}, Numbers{1, 5}, 1);
  table.add({"b"}, Numbers{2, 7}, 2);
  table.add({"a"}, Numbers{3, 1}, 3);
  EXPECT_EQ(table.all().at({"a"}).values, (Numbers{4, 6}));
  EXPECT_EQ(table.all().at({"b"}).values, (Numbers{2, 7}));
  EXPECT_EQ(table.folded(), 0u);
}

// Afterwards the room is the same as before.
TEST(SeriesTable, ClearLeavesNothing) {
  SeriesTable table({true}, 1, 8);
  crowd(table, 100, "");
  auto series = table.all().size();
  table.clear();
  EXPECT_TRUE(table.all().empty());
  crowd(table, 100, "again ");
  EXPECT_EQ(table.all().size(), series);
  for (auto& [labels, s] : table.all())
    EXPECT_TRUE(labels[0] == "other" || labels[0].starts_with("again ")) << labels[0];
  EXPECT_EQ(value(table, {"other"}), 100 - (series - 1));
}

// Only capped labels become "other": the operation stays correct.
TEST(SeriesTable, OtherKeepsBoundedLabels) {
  SeriesTable table({true, false}, 1, 16);
  for (int i = 0; i < 100; i++)
    table.add({"name" + std::to_string(i), i % 2 ? "read" : "write"}, Numbers{1}, 1);
  EXPECT_LE(table.all().size(), 16u);
  EXPECT_EQ(value(table, {"other", "read"}) + value(table, {"other", "write"}), table.folded());
  EXPECT_GT(value(table, {"other", "read"}), 0u);
  EXPECT_GT(value(table, {"other", "write"}), 0u);
}

TEST(SeriesTable, WithoutRoomForTheBoundedOnesAllAreOther) {
  SeriesTable table({true, false}, 1, 4), capped({true}, 1, 4);
  for (int i = 0; i < 50; i++)
    table.add({"x" + std::to_string(i), "op" + std::to_string(i)}, Numbers{1}, 1);
  EXPECT_LE(table.all().size(), 4u);
  EXPECT_GT(value(table, {"other", "other"}), 0u);
  // A real name "other" does not make a second series.
  crowd(capped, 20, "x");
  auto before = value(capped, {"other"});
  count(capped, 5, {"other"});
  EXPECT_EQ(value(capped, {"other"}), before + 5);
}

/// The increase of all series between two pages equals the added events.
TEST(SeriesTable, SumsAreExact) {
  for (unsigned seed = 0; seed < 20; seed++) {
    std::mt19937 random(seed);
    SeriesTable table({true, false}, 1, 50);
    std::map<Labels, std::uint64_t> before;
    std::uint64_t now = 0;
    for (int page = 0; page < 100; page++) {
      std::uint64_t added = 0;
      for (int i = 0; i < 500; i++) {
        auto n = random() % 5 + 1;
        // Some names often, many others rarely.
        auto name = random() % 3 ? random() % 40 : random() % 100'000;
        table.add({"comm" + std::to_string(name), "op" + std::to_string(random() % 3)}, Numbers{n},
                  n);
        added += n;
      }
      std::uint64_t increase = 0;
      for (auto& [labels, s] : table.all()) increase += s.values[0] - before[labels];
      EXPECT_EQ(increase, added) << "seed " << seed << ", page " << page;
      EXPECT_LE(table.all().size(), 50u);
      now += 17;
      table.turn(now);
      before.clear();
      for (auto& [labels, s] : table.all()) before[labels] = s.values[0];
    }
  }
}

// The first names get the places; a minute later the names with most events have them.
TEST(SeriesTable, TheLargestGetAPlace) {
  SeriesTable table({true}, 1, 10);
  crowd(table, 100, "rare");
  for (int i = 0; i < 1000; i++) count(table, 1, {"frequent"});
  EXPECT_EQ(value(table, {"frequent"}), 0u);
  table.turn(61);
  table.add({"frequent"}, Numbers{7}, 7);
  EXPECT_EQ(value(table, {"frequent"}), 7u);
  EXPECT_LE(table.all().size(), 10u);
}

// It waited for a place, and got one when another left: at the next change it is not a candidate.
TEST(SeriesTable, WhoHasAPlaceKeepsItsValue) {
  SeriesTable table({true}, 1, 4);
  table.turn(3600);
  count(table, 1, {"leaves", "stays", "last"});
  table.turn(3601);
  table.turn(7199);
  count(table, 100, {"stays", "last"});
  count(table, 50, {"waits"});
  EXPECT_EQ(value(table, {"waits"}), 0u);
  table.turn(7202);
  table.add({"waits"}, Numbers{3}, 3);
  ASSERT_EQ(value(table, {"waits"}), 3u);
  table.turn(7300);
  EXPECT_EQ(value(table, {"waits"}), 3u);
}

TEST(SeriesTable, IdleOnesLeave) {
  SeriesTable table({true}, 1, 10);
  count(table, 1, {"once", "again"});
  table.turn(0);
  table.add({"again"}, Numbers{1}, 1);
  table.turn(3000);
  table.turn(3700);
  EXPECT_FALSE(table.all().contains({"once"}));
  EXPECT_EQ(value(table, {"again"}), 2u);
}

TEST(SeriesTable, AHundredThousandLabelSets) {
  SeriesTable table({true}, 30, 17);
  Numbers values(30, 1);
  for (int i = 0; i < 100'000; i++) table.add({"n" + std::to_string(i)}, values, 1);
  EXPECT_LE(table.all().size(), 17u);
  std::uint64_t sum = 0;
  for (auto& [labels, s] : table.all()) sum += s.values[29];
  EXPECT_EQ(sum, 100'000u);
}

}  // namespace
}  // namespace coretap::metrics
