// Reports of a tool. The library reads, writes and flushes; a tool only declares them.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/histogram.hpp"
#include "coretap/object_names.hpp"
#include "coretap/result.hpp"
#include "coretap/when.hpp"

namespace coretap {

class Config;
class ReportKind;

template <class Key, class Value>
struct Row {
  Key key;
  Value value;
};

/// A member of the key or the value of a Row: of_key<Line,
/// &Key::cpu>("cpu", ...). For a struct extreme, the largest value.
template <class Line, auto Member>
Field of_key(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  return {key, title, format, doc, [](const void* row, const FieldContext&) {
            return detail::to_value(static_cast<const Line*>(row)->key.*Member);
          }};
}
template <class Line, auto Member>
Field of_value(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  constexpr bool kExtreme =
      std::is_same_v<std::remove_cvref_t<decltype(std::declval<Line>().value.*Member)>, extreme>;
  Field field{key, title, format, doc, [](const void* row, const FieldContext&) {
                auto& member = static_cast<const Line*>(row)->value.*Member;
                if constexpr (kExtreme)
                  return detail::to_value(member.slots[0]);
                else
                  return detail::to_value(member);
              }};
  field.role = kExtreme ? Role::derived : Role::counter;
  return field;
}

/// An element of an array of counters in the value.
template <class Line, auto Member, std::size_t Index>
Field of_element(std::string_view key, std::string_view title, Format format,
                 std::string_view doc) {
  Field field{
      key, title, format, doc, [](const void* row, const FieldContext&) {
        return Value(detail::to_value((static_cast<const Line*>(row)->value.*Member)[Index]));
      }};
  return field.counter();
}
/// One counter of the value divided by another; where that is 0, 0 or nothing.
template <class Line, auto Sum, auto Count, bool Or0 = false>
Field mean_of(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  Field field{key, title, format, doc, [](const void* row, const FieldContext&) {
                auto& value = static_cast<const Line*>(row)->value;
                std::uint64_t count = value.*Count;
                return value_if(count || Or0, value.*Sum / std::max<std::uint64_t>(count, 1));
              }};
  return field.no_metric();
}
/// A member of the value, per second of the report.
template <class Line, auto Member>
Field rate_of(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  Field field{key, title, format, doc, [](const void* row, const FieldContext& context) {
                auto count = static_cast<double>(static_cast<const Line*>(row)->value.*Member);
                return value_if(context.seconds > 0, count / context.seconds);
              }};
  field.role = Role::derived;
  return field;
}
/// A member of the key that is an index of words, as in named.
template <class Line, auto Member, const auto& Words>
Field named_key(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  Field field{key, title, format, doc, [](const void* row, const FieldContext&) {
                return detail::word_at(Words, static_cast<const Line*>(row)->key.*Member);
              }};
  return field.bounded();
}

/// Stacks in the key of a Row, by their keys in the map `stacks`
/// (bpf/lib/stack/stack.bpf.h); for a user stack also its process.
template <class Line, auto Member>
Field kernel_stack_of() {
  return {"kernel_stack", "", as::stack, "kernel stack",
          [](const void* row, const FieldContext& context) -> Value {
            return context.frames_of(static_cast<const Line*>(row)->key.*Member, std::nullopt);
          }};
}
template <class Line, auto Member, auto Process>
Field user_stack_of() {
  return {"user_stack", "", as::stack, "user stack",
          [](const void* row, const FieldContext& context) -> Value {
            auto& key = static_cast<const Line*>(row)->key;
            return context.frames_of(key.*Member, key.*Process);
          }};
}

/// Keys -> values that a kernel program sums (bpf/lib/aggregate/aggregate.bpf.h), in one of several
/// layouts. Values are 64-bit counters that only grow; a report shows the difference to the
/// previous one.
struct AggregateReport {
  enum Layout {
    histograms,          ///< one histogram for each set of keys
    table,               ///< rows by key, largest first
    interval,            ///< one row without a key
    lines,               ///< rows by key, each with its time; the titles only once
    screen,              ///< a table that is redrawn on a terminal; otherwise a table
    bars,                ///< in text a bar per row: a number and its amount; otherwise rows
    percentile_columns,  ///< rows by key: include/coretap/percentiles.hpp
  };
  Layout layout = table;
  /// The kernel program's; its per-CPU slots are NAME_cpus. Without keys these slots.
  MapName map;
  std::vector<Field> fields;  ///< of a Row: keys and values
  std::vector<ColumnOrder> orders = {};
  std::size_t key_size = 0;
  std::size_t value_at = 0;  ///< offset of the value in the row
  std::size_t value_size = 0;
  std::size_t event_counters = 1;  ///< counters at the start of the value that count events
  /// Offset in the value of a struct extreme, the largest value of the
  /// interval; the map is a CPU_TABLE. In a row, its first slot has the value.
  std::vector<std::size_t> largest = {};

  /// Keys are in use only if this condition holds; empty: always. Otherwise values are
  /// read from per-CPU slots: one value, or as many as fit, with their index as key.
  When keyed_when = {};
  bool keyless = false;  ///< never any keys
  /// Why rows are not owned by tasks; empty: --by can
  /// request their owners (bpf/lib/aggregate/aggregate.bpf.h).
  std::string_view no_owner = {};

  // table, screen
  std::string_view sort = {};  ///< keys of fields, largest first; "total_ns,count": then count
  std::uint64_t top = 0;       ///< maximum rows of text without --top; 0: all

  bool callers = false;  ///< kernel stacks start with the caller of a lock (bpf/cpu/lock.bpf.h)

  bool largest_last = false;  ///< without --sort, on terminals
  When header_when = {};      ///< option that adds the time to text; empty: always

  /// Keys that other tools have for --sort: the key here, or the options that replace it.
  std::vector<std::pair<std::string_view, std::string_view>> sort_words = {};
  /// Filter in the loader; rejected rows count as filtered. nullptr: all.
  bool (*wanted)(const void* row, const FieldContext& context) = nullptr;

  /// Rows with equal results are merged into the first. nullptr: each is a row.
  Value (*one_row_for)(const void* row, const FieldContext& context) = nullptr;

  /// Rows with the same result form a group: FieldContext::groups. nullptr: no groups.
  std::uint64_t (*group_of)(const void* row) = nullptr;

  /// A line of text below the rows, computed from the sum of their counters.
  std::string (*total)(const void* counters) = nullptr;

  // interval, lines
  /// Option that adds the time of day to lines of text; empty: always.
  When time_when = "timestamp";

  std::vector<int> (*numbers)() = nullptr;  ///< for bars: those that always have a row

  // histograms
  std::string_view what = {};  ///< "latency": name of the values; for bars: "CPU"
  HistogramScale scale = {};
  std::string_view extension = {};  ///< option that adds the line avg/total/count
  bool averages = false;            ///< or always
  /// Counters next to them, since the start of tracing: "TITLE: 3/10" in text.
  MapName totals_map = {};
  std::string_view totals_title = {};
  std::vector<Field> totals = {};
  std::size_t totals_size = 0;

  // percentile_columns
  std::size_t bucket_at = 0;                   ///< in the key
  std::vector<double> usual_percentiles = {};  ///< without --percentiles

  /// Program in section run/each_cpu that is run on each CPU when all programs
  /// are attached, and at the end of each interval before the counters are read.
  ProgramName at_intervals = {};

  AggregateReport runs_at_intervals(ProgramName program) && {
    return set(&AggregateReport::at_intervals, program);
  }

  /// Program of kind iter that writes no records: it runs over all objects when tracing begins, and
  /// at the end of each interval before the counters are read.
  ProgramName pass = {};

  AggregateReport passes(ProgramName iterator) && { return set(&AggregateReport::pass, iterator); }
  /// A row: key, value, and room for its owner (struct task_id).
  std::size_t owner_at() const { return value_at + value_size; }
  std::size_t row_size() const { return owner_at() + sizeof(task_id); }

  /// "they are of interrupts": there is then no --by for owners.
  AggregateReport without_owner(std::string_view why) && {
    return set(&AggregateReport::no_owner, why);
  }
  AggregateReport in_milliseconds() && {
    scale.step = 1'000'000;
    return std::move(*this);
  }
  /// Unit and width of the histograms' slots.
  AggregateReport scaled(HistogramScale slots) && { return set(&AggregateReport::scale, slots); }
  /// Number of counters at the start of the value that count events.
  AggregateReport counted_by(std::size_t counters) && {
    return set(&AggregateReport::event_counters, counters);
  }
  template <auto Member>
  AggregateReport with_largest() && {
    largest.push_back(static_cast<std::size_t>(std::bit_cast<std::ptrdiff_t>(Member)));
    return std::move(*this);
  }
  template <class Record>
  AggregateReport with_totals(MapName slots, std::string_view title,
                              std::vector<Field> counters) && {
    totals_map = slots;
    totals_title = title;
    totals = std::move(counters);
    totals_size = sizeof(Record);
    return std::move(*this);
  }
  AggregateReport with_averages() && { return set(&AggregateReport::averages, true); }
  AggregateReport always_timed() && { return set(&AggregateReport::time_when, When()); }
  template <class Value, std::string (*Words)(const Value&)>
  AggregateReport with_total() && {
    total = [](const void* counters) { return Words(*static_cast<const Value*>(counters)); };
    return std::move(*this);
  }
  /// Keys are small numbers: values are in per-CPU slots, with their index as key.
  AggregateReport by_slots() && { return set(&AggregateReport::keyless, true); }
  AggregateReport with_callers() && { return set(&AggregateReport::callers, true); }
  AggregateReport ascending() && { return set(&AggregateReport::largest_last, true); }
  AggregateReport timed_with(When option) && { return set(&AggregateReport::header_when, option); }
  AggregateReport sorted_also_by(
      std::vector<std::pair<std::string_view, std::string_view>> words) && {
    return set(&AggregateReport::sort_words, std::move(words));
  }
  template <class Line, bool (*Wanted)(const Line&, const FieldContext&)>
  AggregateReport only() && {
    wanted = [](const void* row, const FieldContext& context) {
      return Wanted(*static_cast<const Line*>(row), context);
    };
    return std::move(*this);
  }
  template <class Line, Value (*What)(const Line&, const FieldContext&)>
  AggregateReport one_row_for_each() && {
    one_row_for = [](const void* row, const FieldContext& context) {
      return What(*static_cast<const Line*>(row), context);
    };
    return std::move(*this);
  }
  template <class Line, std::uint64_t (*Group)(const Line&)>
  AggregateReport grouped_by() && {
    group_of = [](const void* row) { return Group(*static_cast<const Line*>(row)); };
    return std::move(*this);
  }
  /// In text the first field is the number, which orders the rows, the second
  /// one the bar (for milliseconds: whole ones); `of`: "CPU". Numbers in `every`
  /// have rows even without events. The key starts with the number, 32 bits.
  AggregateReport as_bars(std::string_view of, std::vector<int> (*every)()) && {
    layout = bars;
    what = of;
    numbers = every;
    return std::move(*this);
  }
  AggregateReport on_screen() && { return set(&AggregateReport::layout, screen); }
  AggregateReport as_lines() && { return set(&AggregateReport::layout, lines); }
  AggregateReport columns(std::vector<ColumnOrder> of_table) && {
    return set(&AggregateReport::orders, std::move(of_table));
  }

 private:
  template <class T>
  AggregateReport set(T AggregateReport::*member, T value) {
    this->*member = std::move(value);
    return std::move(*this);
  }
};

/// Histograms by key: HISTOGRAM(map, Key) of the kernel program. Keys whose
/// option is not given are omitted; without any there is one histogram.
template <class Key>
AggregateReport histogram(MapName map, std::string_view what, FieldList keys,
                          std::string_view extension = {}) {
  AggregateReport r{.layout = AggregateReport::histograms, .map = map, .fields = std::move(keys)};
  r.key_size = sizeof(Key);
  r.value_at = (sizeof(Key) + 7) / 8 * 8;
  r.value_size = sizeof(hist);
  r.event_counters = HIST_SLOTS;
  r.what = what;
  r.extension = extension;
  r.keyless = r.fields.empty();
  return r;
}

/// One row per interval from per-CPU counters: SUMS(map, Record).
template <class Record>
AggregateReport sums(MapName map, FieldList fields) {
  static_assert(sizeof(Record) % 8 == 0);
  AggregateReport r{.layout = AggregateReport::interval, .map = map, .fields = std::move(fields)};
  r.value_size = sizeof(Record);
  r.keyless = true;
  return r;
}

/// Rows by key: TABLE(map, Key, Value).
template <class Key, class Value>
AggregateReport table(MapName map, FieldList fields, std::string_view sort, std::uint64_t top = 0,
                      When keyed_when = {}) {
  static_assert(sizeof(Value) % 8 == 0);
  AggregateReport r{.layout = AggregateReport::table, .map = map, .fields = std::move(fields)};
  r.key_size = sizeof(Key);
  r.value_at = (sizeof(Key) + 7) / 8 * 8;
  r.value_size = sizeof(Value);
  r.sort = sort;
  r.top = top;
  r.keyed_when = keyed_when;
  return r;
}

/// Times before a table's columns; always in JSON and CSV.
struct TimeColumn {
  enum Kind {
    since_start,   ///< seconds since the start of tracing
    milliseconds,  ///< the same in whole milliseconds
    wall,          ///< local time of day
    utc,           ///< time of day in UTC
  } kind = since_start;
  std::string_view title = "TIME(s)";
  int width = 14;
  When when = "timestamp";
  std::string_view unless = {};  ///< not with this option
};

/// One line per record from the ring buffer (bpf/lib/core/emit.bpf.h). Records start with struct
/// event_head.
struct EventReport {
  std::vector<Field> fields;
  std::size_t record_size = 0;  ///< bytes, without the stack
  When stack_when = {};         ///< option that adds a struct stack to the record
  std::vector<TimeColumn> times = {TimeColumn{}};
  std::size_t columns_before_times = 0;
  std::vector<ColumnOrder> orders = {};
  /// Filter in the loader; rejected records count as filtered. nullptr: all.
  bool (*wanted)(const Config&, const void* record) = nullptr;
  /// Option that prints after each line the user stack whose
  /// key (bpf/lib/stack/stack.bpf.h) and process are in the record.
  When callers_when = {};
  std::uint64_t (*callers)(const void* record) = nullptr;
  std::uint32_t (*callers_of)(const void* record) = nullptr;
  bool high_rate_events = false;
  bool names_user_functions = false;
  /// Key of the field that has how long the event took, for traces; the record's time is its end,
  /// or with `from_begin` its begin. Without such a field an event is a moment.
  std::string_view span = "latency_ns";
  bool from_begin = false;
  std::string_view type = {};  ///< name of the struct

  EventReport spanning(std::string_view key) && {
    span = key;
    return std::move(*this);
  }
  /// The record's time is when the event began.
  EventReport timed_at_begin() && {
    from_begin = true;
    return std::move(*this);
  }
  EventReport timed(std::vector<TimeColumn> columns, std::size_t after = 0) && {
    times = std::move(columns);
    columns_before_times = after;
    return std::move(*this);
  }
  EventReport columns(std::vector<ColumnOrder> of_table) && {
    orders = std::move(of_table);
    return std::move(*this);
  }
  EventReport only(bool (*condition)(const Config&, const void*)) && {
    wanted = condition;
    return std::move(*this);
  }
  template <auto Stack, auto Who>
  EventReport with_callers(When when) && {
    using Record = typename detail::member_of<decltype(Stack)>::record;
    callers_when = when;
    callers = [](const void* r) { return std::uint64_t{static_cast<const Record*>(r)->*Stack}; };
    callers_of = [](const void* r) {
      return std::uint32_t{(static_cast<const Record*>(r)->*Who).pid};
    };
    return std::move(*this);
  }
  /// It has a user_function<>; the kernel program sends such records by emit_end_now().
  EventReport with_user_functions() && {
    names_user_functions = true;
    return std::move(*this);
  }
  /// One process can cause hundreds of thousands of events per second: use a larger ring.
  EventReport high_rate() && {
    high_rate_events = true;
    return std::move(*this);
  }
};

template <class Record>
EventReport events(FieldList fields, When stack_when = {}) {
  EventReport report{std::move(fields), sizeof(Record), stack_when};
  report.type = detail::name_of_type<Record>();
  return report;
}

/// Sums by kernel and user stack (bpf/lib/stack/stack.bpf.h).
struct StackReport {
  enum Measure {
    time,
    samples,
    bytes,  ///< the kernel program sums bytes instead of times
  };
  enum Layout {
    alone,  ///< a task and its stacks
    waker,  ///< its waker with stacks; only the name of the task
    chain,  ///< a task with stacks, its waker, that one's waker, ...
  };
  std::string_view value_title;  ///< "microseconds off the CPU"
  Measure measure = time;
  Layout layout = alone;
  /// User stacks are recorded if this holds.
  When user_stacks_when = "!kernel-stacks-only";
  /// An iterator program that adds waits in progress when tracing ends; empty: none.
  ProgramName waits_by = {};
  /// The reason of a wait, by its kernel stack, is its innermost frame if this holds; empty: never.
  When reasons_when = {};

  /// Each report has the differences to the previous one, instead of one report at the end.
  bool deltas = false;
  /// Samples are of this perf event unless options name others (stack_party::event). Those of a
  /// clock account for the time until the next one. Empty: no samples.
  std::string_view event = {};
  /// With it, the ratio of two events is shown.
  When ratio_when = {};

  StackReport of_event(std::string_view name) const { return changed(&StackReport::event, name); }
  StackReport with_ratio(When options) const { return changed(&StackReport::ratio_when, options); }
  StackReport at_intervals() const { return changed(&StackReport::deltas, true); }
  /// bpf/lib/sched/still_waiting.bpf.h; the tool has the hook waits_under_way().
  StackReport with_waits() const {
    return changed(&StackReport::waits_by, ProgramName("on_waiting"));
  }
  /// The tool has the option shared::reasons().
  StackReport with_reasons() const { return changed(&StackReport::reasons_when, When("reasons")); }
  /// Rows by task name have no process to look up functions in, unless this option is given.
  StackReport user_stacks_with(When option) const {
    return changed(&StackReport::user_stacks_when, option);
  }

 private:
  template <class T>
  StackReport changed(T StackReport::*member, T value) const {
    auto report = *this;
    report.*member = value;
    return report;
  }
};

struct Session;
class Counting;

/// Current state instead of events: shown at once, and again at each interval. The
/// loader reads it without loading or attaching programs, or an iterator program does.
struct SnapshotReport {
  /// Records of one type; valid as long as `owner`.
  struct Reading {
    std::shared_ptr<const void> owner;
    std::vector<const void*> records;
  };
  /// A record's array of numbers whose length depends on the system: an array in JSON, in
  /// CSV a column for each, named by the key and an index from 0. Without a key: none.
  struct Series {
    std::string_view key = {};  ///< of the array
    Field element = {};         ///< key, format and doc of one element
    std::vector<Value> (*read)(const void* record) = nullptr;
    std::string_view metric = {};  ///< exporters' name for one element: "unusable_ratio"
  };
  /// Data above all rows, a separate record; without fields: none.
  struct Head {
    std::string_view type = {};  ///< of its JSON line; CSV has its fields in each row
    std::vector<Field> fields = {};
    /// Computed from all records of the iterator program.
    Result<std::shared_ptr<const void>> (*read)(const std::vector<const void*>& records) = nullptr;
    std::string (*text)(const void* head) = nullptr;  ///< after the time
    std::shared_ptr<const void> prototype = {};
  };
  template <class Top, std::string (*Text)(const Top&)>
  static Head head_of(std::string_view type, std::vector<Field> fields) {
    Head head{.type = type, .fields = std::move(fields)};
    head.text = [](const void* top) { return Text(*static_cast<const Top*>(top)); };
    head.prototype = std::make_shared<const Top>();
    return head;
  }
  std::string_view source;  ///< "/proc/buddyinfo"
  std::vector<Field> fields;
  Series series = {};
  Result<Reading> (*read)(const Config&) = nullptr;
  /// A line in the layout of the file `format_of`; nullptr: a table of the fields.
  std::string (*text)(const void* record) = nullptr;
  std::string_view format_of = {};        ///< "/sys/kernel/debug/extfrag/unusable_index"
  std::shared_ptr<const void> prototype;  ///< an empty record, for the types of its fields

  ProgramName program = {};     ///< of kind iter; empty: none
  std::size_t record_size = 0;  ///< of the program's records
  std::size_t key_size = 0;     ///< rows are Group<Key>; 0: they are the program's records
  std::string_view sort = {};   ///< key of a field, largest first
  Head head = {};
  /// Instead of `read`: reports of what was counted since the previous one.
  std::unique_ptr<Counting> (*counting)(const Config&) = nullptr;
  bool perf_events = false;  ///< the loader opens some
  /// All that is read are files about the machine, by read_file(), or answers (base/recall.hpp);
  /// else its runs cannot be recorded.
  bool recordable = true;
  std::string_view type = {};  ///< name of the struct of the program's records

  /// Instead of `read`: the records of this program of kind iter.
  template <class Record>
  SnapshotReport read_by(ProgramName iterator) && {
    program = iterator;
    record_size = sizeof(Record);
    type = detail::name_of_type<Record>();
    return std::move(*this);
  }
  /// Records that start with equal keys are one row.
  template <class Key>
  SnapshotReport grouped() && {
    key_size = sizeof(Key);
    return std::move(*this);
  }
  SnapshotReport sorted_by(std::string_view key) && {
    sort = key;
    return std::move(*this);
  }
  template <class Record, class Top, Result<Top> (*Read)(const std::vector<const Record*>&),
            std::string (*Text)(const Top&)>
  SnapshotReport headed(std::string_view type, std::vector<Field> head_fields) && {
    head = head_of<Top, Text>(type, std::move(head_fields));
    head.read = [](const std::vector<const void*>& records) -> Result<std::shared_ptr<const void>> {
      std::vector<const Record*> all;
      all.reserve(records.size());
      for (auto* r : records) all.push_back(static_cast<const Record*>(r));
      auto top = Read(all);
      if (!top) return top.error();
      return std::shared_ptr<const void>(std::make_shared<const Top>(std::move(*top)));
    };
    return std::move(*this);
  }
  /// The loader counts; `make` makes the object that does.
  SnapshotReport counted_by(std::unique_ptr<Counting> (*make)(const Config&)) && {
    counting = make;
    return std::move(*this);
  }
  /// The same, and it also makes the head.
  template <class Top, std::string (*Text)(const Top&)>
  SnapshotReport counted_by(std::unique_ptr<Counting> (*make)(const Config&), std::string_view type,
                            std::vector<Field> head_fields) && {
    counting = make;
    head = head_of<Top, Text>(type, std::move(head_fields));
    return std::move(*this);
  }
  SnapshotReport not_recorded() && {
    recordable = false;
    return std::move(*this);
  }
  SnapshotReport with_perf_events() && {
    perf_events = true;
    return std::move(*this);
  }
};

/// Counting by the loader itself, without a kernel program.
class Counting {
 public:
  virtual ~Counting() = default;
  /// Begins, before a command starts (Session::command).
  virtual Result<void> start(Session& session) = 0;
  struct Since {
    SnapshotReport::Reading rows;
    std::shared_ptr<const void> head = {};  ///< SnapshotReport::Head
  };
  /// The counts since the start or the last call.
  virtual Result<Since> next() = 0;
};

/// Number of records with this key.
template <class Key>
using Group = Row<Key, std::uint64_t>;

template <class Record>
SnapshotReport snapshot(std::string_view source, FieldList fields,
                        Result<SnapshotReport::Reading> (*read)(const Config&) = nullptr,
                        SnapshotReport::Series series = {},
                        std::string (*text)(const void* record) = nullptr,
                        std::string_view format_of = {}) {
  SnapshotReport r{.source = source, .fields = std::move(fields), .series = series, .read = read};
  r.text = text;
  r.format_of = format_of;
  r.prototype = std::make_shared<const Record>();
  return r;
}

template <class Record>
SnapshotReport::Reading reading(std::vector<Record> records) {
  auto owner = std::make_shared<const std::vector<Record>>(std::move(records));
  SnapshotReport::Reading all{owner, {}};
  for (auto& record : *owner) all.records.push_back(&record);
  return all;
}

std::shared_ptr<const ReportKind> make_kind(AggregateReport report);
std::shared_ptr<const ReportKind> make_kind(EventReport report);
std::shared_ptr<const ReportKind> make_kind(StackReport report);
std::shared_ptr<const ReportKind> make_kind(SnapshotReport report);

}  // namespace coretap

#include "coretap/report_kind.hpp"
