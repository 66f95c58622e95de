// Rows of counters by key: order, top, and what one interval has beyond the last.
#include "reports/aggregate_rows.hpp"
#include "cli/config.hpp"
#include "expect.hpp"
#include "lib/shared.h"
#include "program/live_source.hpp"
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
      "rows",
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

struct WithLargest {
  std::uint64_t count;
  extreme longest;
};

/// As a kernel program leaves it that saw this value in this interval.
std::uint64_t extreme_slot(std::uint32_t interval, std::uint64_t value) {
  return std::uint64_t{interval & 0xffff} << EXTREME_BITS | value;
}

TEST(TableRows, LargestIsOfAllCpusAndOfItsInterval) {
  using LargestLine = Row<Key, WithLargest>;
  auto r = table<Key, WithLargest>(
               "rows",
               {of_value<LargestLine, &WithLargest::longest>("max_ns", "MAX", as::number, "most")},
               "max_ns")
               .with_largest<&WithLargest::longest>();
  AggregateRows rows(r);
  const std::uint32_t interval = 0x10003;  // beyond the 16 bits that a slot has of it
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

TEST_F(Table, IntervalsAreDifferences) {
  EXPECT_EQ(seen(rows, {{key(1), {5, 50}}}), (Seen{{1, 5, 50}}));
  EXPECT_EQ(seen(rows, {{key(1), {5, 50}}, {key(2), {2, 3}}}), (Seen{{2, 2, 3}}));
  EXPECT_EQ(seen(rows, {{key(1), {9, 51}}, {key(2), {2, 3}}}), (Seen{{1, 4, 1}}));
  EXPECT_EQ(seen(rows, {{key(1), {9, 51}}, {key(2), {2, 3}}}), Seen{});
  EXPECT_EQ(rows.events(), 11u);
}

// The kernel counts an event before it adds its time, and a reading may fall between the two.
TEST_F(Table, TimeThatComesAfterItsEventIsNotLost) {
  EXPECT_EQ(seen(rows, {{key(1), {1, 10}}, {key(2), {0, 4}}}), (Seen{{1, 1, 10}}));
  EXPECT_EQ(seen(rows, {{key(1), {1, 30}}, {key(2), {0, 4}}}), Seen{});
  EXPECT_EQ(seen(rows, {{key(1), {2, 40}}, {key(2), {1, 4}}}), (Seen{{1, 1, 30}, {2, 1, 4}}));
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

}  // namespace
}  // namespace coretap
