// Rows of reports: counters by key, their growth, and snapshots.
#include "coretap/config.hpp"
#include "expect.hpp"
#include "lib/core/shared.h"
#include "program/live_source.hpp"
#include "reports/aggregate_rows.hpp"
#include "reports/counter_deltas.hpp"
#include "reports/snapshot_rows.hpp"
#include "text/columns.hpp"
#include "text/names.hpp"

namespace coretap {
namespace {

struct Key {
  std::uint32_t id;
};
struct Totals {
  std::uint64_t count, total_ns;
};
using Line = Row<Key, Totals>;

std::uint64_t id(const Line& l) { return l.key.id; }
std::uint64_t count(const Line& l) { return l.value.count; }
std::uint64_t total_ns(const Line& l) { return l.value.total_ns; }

AggregateReport report() {
  return table<Key, Totals>(
      MapName("rows"),
      {derived<Line, id>("id", "ID", as::small, "key"),
       derived<Line, count>("count", "COUNT", as::pages, "events"),
       derived<Line, total_ns>("total_ns", "TIME (us)", as::wide(as::microseconds, 16), "time")
           .only("latency")
           .milliseconds("TIME (ms)")},
      "total_ns,count");
}

std::string key(std::uint32_t id) { return {reinterpret_cast<const char*>(&id), sizeof id}; }

using Seen = std::vector<Numbers>;
Seen seen(AggregateRows& rows, const AggregateRows::Reading& now) {
  Seen all;
  for (auto& row : rows.since_last(now, {}, {})) {
    Line line;
    EXPECT_EQ(row.size(), report().row_size());
    memcpy(&line, row.data(), sizeof line);
    all.push_back({line.key.id, line.value.count, line.value.total_ns});
  }
  return all;
}

struct Table : testing::Test {
  Table() { rows.order(r.sort); }
  AggregateReport r = report();
  AggregateRows rows{r};
};

TEST_F(Table, RowsAreSorted) {
  EXPECT_EQ(seen(rows, {{key(1), {5, 10}}, {key(2), {1, 30}}, {key(3), {7, 10}}}),
            (Seen{{2, 1, 30}, {3, 7, 10}, {1, 5, 10}}));
  EXPECT_EQ(rows.events(), 13u);
  AggregateRows by_count(r);
  by_count.order("count");
  EXPECT_EQ(seen(by_count, {{key(1), {5, 10}}, {key(2), {1, 30}}, {key(3), {7, 10}}}),
            (Seen{{3, 7, 10}, {1, 5, 10}, {2, 1, 30}}));
}

std::string name(const Line& l) { return l.key.id == 3 ? "a" : "b"; }

TEST_F(Table, TextIsSortedFromAToZ) {
  r.fields.push_back(derived<Line, name>("name", "NAME", as::text, "name"));
  rows.order("name,count");
  const AggregateRows::Reading now = {{key(1), {5, 0}}, {key(2), {9, 0}}, {key(3), {1, 0}}};
  EXPECT_EQ(seen(rows, now), (Seen{{3, 1, 0}, {2, 9, 0}, {1, 5, 0}}));
  AggregateRows reversed(r);
  reversed.order("name,count");
  reversed.reverse(true);
  EXPECT_EQ(seen(reversed, now), (Seen{{1, 5, 0}, {2, 9, 0}, {3, 1, 0}}));
}

struct WithLargest {
  std::uint64_t count;
  extreme longest;
};

/// As left by a kernel program that had this value in this interval.
std::uint64_t extreme_slot(std::uint32_t interval, std::uint64_t value) {
  return std::uint64_t{interval & 0xffff} << EXTREME_BITS | value;
}

TEST(TableRows, LargestIsOfAllCpusAndOfItsInterval) {
  using LargestLine = Row<Key, WithLargest>;
  auto r = table<Key, WithLargest>(
               MapName("rows"),
               {of_value<LargestLine, &WithLargest::longest>("max_ns", "MAX", as::number, "most")},
               "max_ns")
               .with_largest<&WithLargest::longest>();
  AggregateRows rows(r);
  const std::uint32_t interval = 0x10003;  // longer than the 16 bits stored in a slot
  WithLargest cpus[3] = {
      {2, {{extreme_slot(interval + 1, 900), extreme_slot(interval, 7)}}},
      {1, {{0, extreme_slot(interval, 40)}}},
      {5, {{0, extreme_slot(interval - 2, 800)}}},
  };
  auto* value = reinterpret_cast<const char*>(cpus);
  const CounterShape shape{.value_size = sizeof(WithLargest), .largest = r.largest};
  EXPECT_EQ(largest_of_cpus(shape, value, 3, interval), (AggregateRows::Counters{40}));
  EXPECT_EQ(largest_of_cpus(shape, value, 3, interval + 1), (AggregateRows::Counters{900}));
  EXPECT_EQ(largest_of_cpus(shape, value, 3, interval + 2), (AggregateRows::Counters{0}));
  EXPECT_EQ(sum_of_cpus(shape, value, 3, 0), (AggregateRows::Counters{8, 0, 0}));

  auto all = rows.since_last({{key(1), sum_of_cpus(shape, value, 3, 0)}},
                             {{key(1), largest_of_cpus(shape, value, 3, interval)}}, {});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(r.fields[0].read(all[0].data(), {}), coretap::Value(std::uint64_t{40}));
}

// The header's titles, keys, a row and its CSV.
TEST(TableRows, FieldsThatDoNotExistAreNowhereAndMillisecondsAreForPeople) {
  Config config;
  auto shown = [&](bool csv) {
    Columns columns;
    columns.choose(config, report().fields);
    Line line{{7}, {3, 1234567}};
    return csv ? columns.keys() + "\n" + columns.csv(&line, {})
               : columns.titles() + "\n" + columns.row(&line, {});
  };
  config.format = OutputFormat::csv;
  EXPECT_EQ(shown(true), "id,count\n7,3");
  config.give("latency", "");
  EXPECT_EQ(shown(true), "id,count,total_ns\n7,3,1234567");
  config.format = OutputFormat::text;
  EXPECT_EQ(shown(false), "   ID    COUNT        TIME (us)\n    7        3         1234.567");
  config.give("milliseconds", "");
  EXPECT_EQ(shown(false), "   ID    COUNT        TIME (ms)\n    7        3            1.235");
  EXPECT_EQ(shown(true), "id,count,total_ns\n7,3,1234567");
}

TEST(ErrorNumbers, AreTakenByNameOrNumber) {
  EXPECT_EQ(error_number("ENOENT"), ENOENT);
  EXPECT_EQ(error_number("eintr"), EINTR);
  EXPECT_EQ(error_number("EWOULDBLOCK"), EAGAIN);
  EXPECT_EQ(error_number("9"), EBADF);
  for (auto* wrong : {"", "0", "-1", "4096", "ENOSUCH", "E", "\x1b"})
    EXPECT_FALSE(error_number(wrong)) << wrong;
}

TEST(SyscallNames, SayWhichTable) {
  Names names;
  EXPECT_EQ(names.name(as::syscall, 3 + CALLS_COMPAT), "read");
  EXPECT_TRUE(show(as::syscall, coretap::Value{std::uint64_t{3 + CALLS_COMPAT}}, names)
                  .starts_with("read ("));
}

using Reading = CounterDeltas::Reading;

TEST(CounterDeltas, OnlyWhatWasAdded) {
  CounterDeltas deltas;
  EXPECT_EQ(deltas.since_last({{"a", {2, 20}}, {"b", {1, 5}}}),
            (Reading{{"a", {2, 20}}, {"b", {1, 5}}}));
  EXPECT_EQ(deltas.since_last({{"a", {5, 50}}, {"b", {1, 5}}}), (Reading{{"a", {3, 30}}}));
  EXPECT_EQ(deltas.idle(), Words{"b"});
  EXPECT_EQ(deltas.keys(), 2u);
}

TEST(CounterDeltas, ReadingsThatLeftSomeOut) {
  CounterDeltas deltas;
  deltas.since_last({{"a", {5, 50}}});
  Reading now{{"b", {1, 1}}};
  deltas.complete(now);
  EXPECT_EQ(deltas.since_last(now), (Reading{{"b", {1, 1}}}));
  EXPECT_EQ(deltas.since_last({{"a", {6, 60}}, {"b", {1, 1}}}), (Reading{{"a", {1, 10}}}));
}

TEST(CounterDeltas, CountersThatComeLaterThanTheirEvent) {
  CounterDeltas deltas, many(2);
  // A key created at the moment of reading has no events yet; its first comes later.
  EXPECT_EQ(deltas.since_last({{"a", {0, 0}}}), Reading{});
  EXPECT_TRUE(deltas.idle().empty());
  EXPECT_EQ(deltas.since_last({{"a", {1, 0}}}), (Reading{{"a", {1, 0}}}));
  EXPECT_EQ(deltas.since_last({{"a", {1, 9}}}), Reading{});
  EXPECT_TRUE(deltas.idle().empty()) << "nine are not shown yet";
  EXPECT_EQ(deltas.since_last({{"a", {2, 12}}}), (Reading{{"a", {1, 12}}}));
  // Two of them count events.
  EXPECT_EQ(many.since_last({{"a", {0, 1, 4}}}), (Reading{{"a", {0, 1, 4}}}));
  EXPECT_EQ(many.since_last({{"a", {0, 2, 6}}}), (Reading{{"a", {0, 1, 2}}}));
}

// Increased between the reading and the deletion, seen again, and not seen again.
TEST(CounterDeltas, NothingIsLostOfKeysThatGo) {
  for (bool again : {false, true}) {
    CounterDeltas deltas;
    deltas.since_last({{"a", {2, 20}}, {"b", {1, 1}}});
    deltas.since_last({{"a", {2, 20}}, {"b", {1, 1}}});
    ASSERT_EQ(deltas.idle(), (Words{"a", "b"}));
    deltas.gone("a", {3, 29});
    deltas.gone("b", {1, 1});
    EXPECT_EQ(deltas.keys(), 0u);
    Reading now;
    if (again) now["a"] = {4, 40};
    EXPECT_EQ(deltas.since_last(now), again ? (Reading{{"a", {5, 49}}}) : (Reading{{"a", {1, 9}}}));
    if (again) now["a"] = {5, 45};
    EXPECT_EQ(deltas.since_last(now), again ? (Reading{{"a", {1, 5}}}) : Reading{});
  }
}

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

/// "1a 3": a key and its count.
Words counts_of(const SnapshotReport::Reading& rows) {
  Words all;
  for (auto* row : rows.records) {
    auto& group = *static_cast<const Group<NumberedName>*>(row);
    all.push_back(fmt::format("{}{} {}", group.key.number, group.key.name, group.value));
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
  EXPECT_EQ(counts_of(groups_of(records, sizeof(NumberedName))), (Words{"1a 3", "2a 2", "1b 1"}));
  EXPECT_TRUE(groups_of({}, sizeof(NumberedName)).records.empty());
  // They outlive their records.
  auto rows = groups_of(records_of(bytes_of({{{7, "x"}, 0}}), sizeof(NumberedRecord)),
                        sizeof(NumberedName));
  EXPECT_EQ(counts_of(rows), Words{"7x 1"});
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
