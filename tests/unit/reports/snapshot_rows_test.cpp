#include "reports/snapshot_rows.hpp"
#include "expect.hpp"

namespace coretap {
namespace {

struct NumberedName {
  std::uint32_t number;
  char name[8];
};
struct NumberedRecord {
  NumberedName key;
  std::uint64_t other;
};

std::string bytes_of(const std::vector<NumberedRecord>& records) {
  std::string bytes;
  for (auto& r : records) bytes.append(reinterpret_cast<const char*>(&r), sizeof r);
  return bytes;
}

struct KeyCount {
  std::uint32_t number;
  std::string name;
  std::uint64_t count;
  bool operator==(const KeyCount&) const = default;
};
std::vector<KeyCount> counts_of(const SnapshotReport::Reading& rows) {
  std::vector<KeyCount> all;
  for (auto* row : rows.records) {
    auto& group = *static_cast<const Group<NumberedName>*>(row);
    all.push_back({group.key.number, group.key.name, group.value});
  }
  return all;
}

TEST(SnapshotRows, RecordsAsTheyAre) {
  auto rows = records_of(bytes_of({{{1, "a"}, 10}, {{2, "b"}, 20}}), sizeof(NumberedRecord));
  ASSERT_EQ(rows.records.size(), 2u);
  EXPECT_EQ(static_cast<const NumberedRecord*>(rows.records[0])->other, 10u);
  EXPECT_STREQ(static_cast<const NumberedRecord*>(rows.records[1])->key.name, "b");
  EXPECT_TRUE(records_of({}, sizeof(NumberedRecord)).records.empty());
  EXPECT_TRUE(records_of("short", sizeof(NumberedRecord)).records.empty());
}

TEST(SnapshotRows, GroupsByWholeKeys) {
  static_assert(sizeof(NumberedName) % 8, "the count is aligned behind it");
  auto records = records_of(bytes_of({{{1, "a"}, 1},
                                      {{2, "a"}, 2},
                                      {{1, "a"}, 3},
                                      {{1, "b"}, 4},
                                      {{2, "a"}, 5},
                                      {{1, "a"}, 6}}),
                            sizeof(NumberedRecord));
  EXPECT_EQ(counts_of(groups_of(records, sizeof(NumberedName))),
            (std::vector<KeyCount>{{1, "a", 3}, {2, "a", 2}, {1, "b", 1}}));
  EXPECT_TRUE(groups_of({}, sizeof(NumberedName)).records.empty());
}

TEST(SnapshotRows, GroupsOutliveTheirRecords) {
  auto rows = groups_of(records_of(bytes_of({{{7, "x"}, 0}}), sizeof(NumberedRecord)),
                        sizeof(NumberedName));
  EXPECT_EQ(counts_of(rows), (std::vector<KeyCount>{{7, "x", 1}}));
}

Value other_of(const NumberedRecord& r) { return r.other ? Value(r.other) : Value(); }

TEST(SnapshotRows, LargestFirst) {
  auto rows = records_of(bytes_of({{{1, "a"}, 5}, {{2, "b"}, 9}, {{3, "c"}, 0}, {{4, "d"}, 9}}),
                         sizeof(NumberedRecord));
  auto other = derived<NumberedRecord, other_of>("other", "", as::number, "a number");
  sort_by(rows, other, {});
  std::string order;
  for (auto* row : rows.records) order += static_cast<const NumberedRecord*>(row)->key.name;
  EXPECT_EQ(order, "bdac") << "equal ones as they were, the unknown last";
}

}  // namespace
}  // namespace coretap
