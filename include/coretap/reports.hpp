// What a tool shows. The library reads, writes and flushes; a tool only says what there is.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/result.hpp"

namespace coretap {

class Config;

/// log2 histograms of durations (bpf/lib/hist.bpf.h), one for each set of keys.
struct HistogramReport {
  std::string_view what;     ///< "latency": names the values in JSON
  std::vector<Field> keys;   ///< fields of the key; those whose option is given tell reports apart
  std::size_t key_size = 0;  ///< bytes of the kernel's key
  std::string_view extension = {};  ///< option that adds the avg/total/count line
  std::uint64_t unit_ns = 1'000;    ///< where --milliseconds does not ask for another
  /// Counters beside it (CPU_SLOTS sums), since tracing began: "TITLE: 3/10" in text.
  std::string_view totals_title = {};
  std::vector<Field> totals = {};
  std::size_t totals_size = 0;

  HistogramReport in_milliseconds() && {
    unit_ns = 1'000'000;
    return std::move(*this);
  }
  template <class Record>
  HistogramReport with_totals(std::string_view title, std::vector<Field> fields) && {
    totals_title = title;
    totals = std::move(fields);
    totals_size = sizeof(Record);
    return std::move(*this);
  }
};

/// Times before a table's columns; JSON and CSV have them always.
struct TimeColumn {
  enum Kind {
    since_start,  ///< seconds since tracing began
    wall,         ///< local time of day
  } kind = since_start;
  std::string_view title = "TIME(s)";
  int width = 14;
  std::string_view when = "timestamp";
};

/// One line per record from the ring buffer (bpf/lib/emit.bpf.h). Records start with struct
/// event_head.
struct EventReport {
  std::vector<Field> fields;
  std::size_t record_size = 0;       ///< bytes, without the stack
  std::string_view stack_when = {};  ///< option under which a struct stack follows the record
  std::vector<TimeColumn> times = {TimeColumn{}};
  /// What no kernel program can judge; records that it refuses count as filtered. nullptr: all.
  bool (*wanted)(const Config&, const void* record) = nullptr;
  /// Option under which each line is followed by the user stack whose key (bpf/lib/stack.bpf.h) is
  /// in the record, and the process that it is of.
  std::string_view callers_when = {};
  std::uint64_t (*callers)(const void* record) = nullptr;
  std::uint32_t (*callers_of)(const void* record) = nullptr;
  bool frequent = false;  ///< a single process makes hundreds of thousands a second: a larger ring

  EventReport timed(std::vector<TimeColumn> columns) && {
    times = std::move(columns);
    return std::move(*this);
  }
  EventReport only(bool (*condition)(const Config&, const void*)) && {
    wanted = condition;
    return std::move(*this);
  }
  template <auto Stack, auto Pid>
  EventReport with_callers(std::string_view when) && {
    using Record = typename detail::member_of<decltype(Stack)>::record;
    callers_when = when;
    callers = [](const void* r) { return std::uint64_t{static_cast<const Record*>(r)->*Stack}; };
    callers_of = [](const void* r) { return std::uint32_t{static_cast<const Record*>(r)->*Pid}; };
    return std::move(*this);
  }
  EventReport often() && {
    frequent = true;
    return std::move(*this);
  }
};

/// Sums by kernel and user stack (bpf/lib/stack.bpf.h).
struct StackReport {
  enum Measure {
    time,
    samples,
    held,  ///< bytes that were taken and not given back (bpf/lib/held.bpf.h), every interval
  };
  enum Layout {
    alone,  ///< a task and its stacks
    waker,  ///< who woke it and in which stack; of the task only the name
    chain,  ///< a task and its stacks, who woke it, who woke that one, ...
  };
  std::string_view value_title;  ///< "microseconds off the CPU"
  Measure measure = time;
  Layout layout = alone;
};

/// Per-CPU counters (CPU_SLOTS sums), summed and subtracted: one row per interval.
struct SumReport {
  std::vector<Field> fields;
  std::size_t record_size = 0;
  /// Option under which lines of text begin with the time of day; empty: always.
  std::string_view time_when = "timestamp";

  SumReport always_timed() && {
    time_when = {};
    return std::move(*this);
  }
};

/// Counters for each of many keys, shown as rows: those of a hash map (bpf/lib/table.bpf.h), or
/// of per-CPU slots where the key is a small number.
struct TableReport {
  std::vector<Field> fields;  ///< of a Row
  std::size_t key_size = 0;
  std::size_t value_at = 0;    ///< where in the row the counters begin
  std::size_t value_size = 0;  ///< 64-bit counters that only grow; the first counts events
  std::string_view sort;       ///< keys of the fields that rows come by, the largest first:
                               ///< "total_ns,count" is by count where the first is equal
  std::uint64_t top = 0;       ///< rows in text where --top does not say; 0: all
  /// Without this option keys are numbers and counters lie in slots; empty: never.
  std::string_view keyed_when = {};
  /// Without --sort the largest come last, where a terminal shows them.
  bool largest_last = false;
  std::string_view time_when = {};  ///< option under which text has the time; empty: always

  TableReport by_slots() && {
    keyed_when = kNever;
    return std::move(*this);
  }
  TableReport ascending() && {
    largest_last = true;
    return std::move(*this);
  }
  TableReport timed(std::string_view option) && {
    time_when = option;
    return std::move(*this);
  }
  /// Its keys are always numbers.
  static constexpr std::string_view kNever = "!";
};

/// System calls out of flight recorders (bpf/lib/record.bpf.h): one for each cgroup of the command
/// line, or one for all that is traced.
struct CallReport {
  std::uint64_t slots = 8192;              ///< for each CPU, where --size does not say
  bool (*keeps)(const Config&) = nullptr;  ///< shows calls when asked to, not as they come
  std::string_view under_way;  ///< the program, of kind iter, that tells of calls without an end
};

template <class Key, class Value>
struct Row {
  Key key;
  Value value;
};

/// What the loader reads by itself: nothing is loaded or attached, and no rights are needed. Shown
/// at once, and again at each interval.
struct SnapshotReport {
  /// Records of one type; they live as long as `owner`.
  struct Reading {
    std::shared_ptr<const void> owner;
    std::vector<const void*> records;
  };
  /// Numbers of which a record has as many as the machine asks for: in JSON an array, in CSV a
  /// column for each, its key and a number from 0.
  struct Series {
    std::string_view key;  ///< the array's
    Field element;         ///< key, format and what one of them means
    std::vector<Value> (*read)(const void* record) = nullptr;
  };
  std::string_view source;  ///< "/proc/buddyinfo"
  std::vector<Field> fields;
  Series series;
  Result<Reading> (*read)(const Config&) = nullptr;
  std::string (*text)(const void* record) = nullptr;  ///< a line, as readers of `likeness` know it
  std::string_view likeness;            ///< "/sys/kernel/debug/extfrag/unusable_index"
  std::shared_ptr<const void> nothing;  ///< a record without contents, which tells types
};

template <class Record>
SnapshotReport snapshot(std::string_view source, std::vector<Field> fields,
                        SnapshotReport::Series series,
                        Result<SnapshotReport::Reading> (*read)(const Config&),
                        std::string (*text)(const void* record), std::string_view likeness) {
  return {
      source, std::move(fields), series, read, text, likeness, std::make_shared<const Record>()};
}

template <class Record>
SnapshotReport::Reading reading(std::vector<Record> records) {
  auto owner = std::make_shared<const std::vector<Record>>(std::move(records));
  SnapshotReport::Reading all{owner, {}};
  for (auto& record : *owner) all.records.push_back(&record);
  return all;
}

using Report = std::variant<HistogramReport, EventReport, StackReport, SumReport, TableReport,
                            SnapshotReport, CallReport>;

template <class Key>
HistogramReport histogram(std::string_view what, std::vector<Field> keys,
                          std::string_view extension = {}) {
  return {what, std::move(keys), sizeof(Key), extension};
}
template <class Record>
EventReport events(std::vector<Field> fields, std::string_view stack_when = {}) {
  return {std::move(fields), sizeof(Record), stack_when};
}
template <class Record>
SumReport sums(std::vector<Field> fields) {
  return {std::move(fields), sizeof(Record)};
}

template <class Key, class Value>
TableReport table(std::vector<Field> fields, std::string_view sort, std::uint64_t top = 0,
                  std::string_view keyed_when = {}) {
  static_assert(sizeof(Value) % 8 == 0);
  constexpr std::size_t kValueAt = (sizeof(Key) + 7) / 8 * 8;
  return {std::move(fields), sizeof(Key), kValueAt, sizeof(Value), sort, top, keyed_when};
}

}  // namespace coretap
