// Fields of a record: one list defines table columns, JSON and CSV keys, and a man page section.
#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "coretap/when.hpp"

struct stack;  // bpf/lib/core/shared.h
struct user_code;

namespace coretap {

/// Names of a stack's frames, innermost first.
using Frames = std::vector<std::string>;

/// A list of words: an array in JSON, one line in tables and CSV.
struct TextList {
  std::vector<std::string> each;
  std::string line;

  // clang-tidy 14 takes a 0 in defaulted code for a pointer.
  auto operator<=>(const TextList&) const = default;  // NOLINT(modernize-use-nullptr)
};

/// The value of a field, before formatting. Text comes from outside and is untrusted.
using Value = std::variant<std::monostate, std::uint64_t, std::int64_t, double, std::string, bool,
                           Frames, TextList>;

/// How a field is shown. JSON and CSV have the raw value, with the unit in the key.
class Config;

/// Names of a cgroup other than its id.
enum class CgroupName { path, container, container_id, pod, unit };

/// Text for rows of an aggregate, by the bytes of their keys (bpf/lib/paths/row_text.bpf.h).
using RowTexts = std::map<std::string, std::string, std::less<>>;

/// Additional inputs for reading a field of a record.
struct FieldContext {
  const Config* config = nullptr;  ///< the command line; always set while a tool runs
  std::size_t owner_at = 0;        ///< offset of the owner in an aggregate's row; 0: none
  double seconds = 0;              ///< covered by the record, in interval reports; 0: not known
  const RowTexts* texts = nullptr;

  /// The text for the row with this key; nullptr: not known.
  template <class Key>
  const std::string* row_text(const Key& key) const {
    if (!texts) return nullptr;
    auto found = texts->find(std::string_view(reinterpret_cast<const char*>(&key), sizeof key));
    return found == texts->end() ? nullptr : &found->second;
  }

  /// For groups of rows in the report
  /// (AggregateReport::grouped_by): their first counters.
  struct Group {
    std::uint64_t sum = 0, most = 0;
  };
  std::map<std::uint64_t, Group> groups = {};

  /// The frames of the stack with this key in the map `stacks`: a kernel stack,
  /// or a process's user stack; not set for documentation (use frames_of).
  std::function<Frames(std::uint64_t id, std::optional<std::uint32_t> process)> stack_of = {};
  /// The frames of a kernel stack; not set for documentation (use frames_of).
  std::function<Frames(const stack&)> kernel_frames = {};

  /// Empty if not known; not set for documentation.
  std::function<std::string(std::uint64_t cgroup, CgroupName which)> cgroup_name = {};

  /// The name of a function of a process; not set for documentation.
  std::function<std::string(const user_code&)> user_function = {};

  /// Call before the reports that own these are destroyed.
  void return_borrowed() {
    texts = nullptr;
    stack_of = {};
    kernel_frames = {};
    user_function = {};
  }

  Frames frames_of(std::uint64_t id, std::optional<std::uint32_t> process) const {
    return stack_of ? stack_of(id, process) : Frames();
  }
  Frames frames_of(const stack& kernel) const {
    return kernel_frames ? kernel_frames(kernel) : Frames();
  }
};

struct Format {
  enum Kind {
    number,
    pointer,  ///< hexadecimal; kernel addresses only for users permitted to see them
    octal,    ///< with at least `digits` digits
    text,
    error,         ///< errno, by name; 0: no error
    milliseconds,  ///< value in ns, shown as ms with `digits` decimals
    microseconds,  ///< the same as us
    kilobytes,     ///< value in bytes, shown in whole KB
    percent,       ///< ratio 0..1, shown as 99.99: the title has the %
    thousandths,   ///< value in thousandths, shown with three decimals
    disk,          ///< device number, shown and written as a name
    enumerator,    ///< value of a kernel enum, by name on this kernel
    symbol,        ///< address of a kernel function, by name
    gfp,           ///< page allocation flags
    block_flags,   ///< operation and flags of a block request
    target,        ///< target number, by the target's name
    syscall,       ///< index of a system call (CALLS in bpf/lib/core/shared.h), by name
    rwbs,          ///< the same as letters, like the kernel's own trace output
    stack,         ///< frames: in tables on separate lines below the row
  } kind = number;
  int width = 0;                 ///< columns; negative: left-aligned
  std::string_view type = {};    ///< kernel enum for enumerator
  std::string_view prefix = {};  ///< prefix of its enumerators, omitted when shown
  int digits = 2;
  int wide = 0;  ///< columns with --wide; 0: no change
};

namespace as {
inline constexpr Format number{Format::number, 10};
inline constexpr Format pages{Format::number, 8};
inline constexpr Format pid{Format::number, -7};
inline constexpr Format small{Format::number, 5};
inline constexpr Format symbol{Format::symbol, -28};
inline constexpr Format pointer{Format::pointer, 18};
inline constexpr Format comm{Format::text, -16};
inline constexpr Format text{Format::text, -12};
inline constexpr Format rest{Format::text, 0};  ///< the last column
inline constexpr Format microseconds{Format::microseconds, 9, {}, {}, 3};
inline constexpr Format whole_microseconds{Format::microseconds, 11, {}, {}, 0};
inline constexpr Format milliseconds{Format::milliseconds, 9};
inline constexpr Format kilobytes{Format::kilobytes, 5};
inline constexpr Format error{Format::error, -8};
inline constexpr Format percent{Format::percent, 9};
inline constexpr Format thousandths{Format::thousandths, 8};
inline constexpr Format address{Format::text, -15, {}, {}, 2, -39};
inline constexpr Format endpoint{Format::text, -21, {}, {}, 2, -47};
inline constexpr Format port{Format::number, -5};
inline constexpr Format disk{Format::disk, -7};
inline constexpr Format gfp{Format::gfp, -20};
inline constexpr Format block_flags{Format::block_flags, -20};
inline constexpr Format target{Format::target, -36};
inline constexpr Format syscall{Format::syscall, -22};
inline constexpr Format rwbs{Format::rwbs, -4};
inline constexpr Format stack{Format::stack};
constexpr Format enumerator(std::string_view type, std::string_view prefix, int width) {
  return {Format::enumerator, width, type, prefix};
}
constexpr Format octal(int digits, int width) { return {Format::octal, width, {}, {}, digits}; }
constexpr Format wide(Format f, int width) {
  f.width = width;
  return f;
}
constexpr Format precise(Format f, int digits) {
  f.digits = digits;
  return f;
}
}  // namespace as

/// How exporters (src/metrics) treat a field.
enum class Role : std::uint8_t {
  plain,    ///< a label or nothing; in events and single-row counter reports, a number
  counter,  ///< grows with events: values of several rows can be summed
  gauge,    ///< a current state
  derived,  ///< computed from others, such as averages: not exported
};

/// The number of possible values of a field as a label.
enum class Values : std::uint8_t {
  by_format,  ///< values of kernel enums, errors, disks, system calls: few; others: unlimited
  bounded,    ///< few, and users cannot add any
  capped,     ///< names that any user can create: only on request, and up to a limit
  unbounded,  ///< never a label
};

/// Field::only_with for fields that exist only if --by names them.
inline constexpr When kNamedByOnly = "by";

struct Field {
  std::string_view key;    ///< snake_case, unit in the name: "latency_ns"
  std::string_view title;  ///< established column title: "LAT(ms)"
  Format format;
  std::string_view doc;
  Value (*read)(const void* record, const FieldContext& context) = nullptr;
  When shown_with = {};  ///< in tables only with this option; always in JSON and CSV
  When only_with = {};   ///< only exists with this option
  std::string_view millisecond_title = {};  ///< if --milliseconds shows microseconds as such
  std::string_view nanosecond_title = {};   ///< if --nanoseconds shows them as nanoseconds

  bool table_only = false;  ///< other fields contain its data
  /// May `read` ask the system, so that it must be called for each record of a run that is
  /// recorded?
  bool asks = true;
  bool nullable = false;  ///< may be empty, though it is not for an all-zero record
  Role role = Role::plain;
  Values values = Values::by_format;

  bool is_stack() const { return format.kind == Format::stack; }

  Field counter() const { return changed(&Field::role, Role::counter); }
  Field gauge() const { return changed(&Field::role, Role::gauge); }
  /// Computed from the key of a row, not from its counters.
  Field key_part() const { return changed(&Field::role, Role::plain); }
  /// A number whose sums are meaningless.
  Field no_metric() const { return changed(&Field::role, Role::derived); }
  Field bounded() const { return changed(&Field::values, Values::bounded); }
  Field asking() const { return changed(&Field::asks, true); }
  Field capped() const { return changed(&Field::values, Values::capped); }
  Field unbounded() const { return changed(&Field::values, Values::unbounded); }
  Field or_null() const { return changed(&Field::nullable, true); }
  Field in_text() const { return changed(&Field::table_only, true); }
  Field with(When option) const { return changed(&Field::shown_with, option); }
  Field only(When option) const { return changed(&Field::only_with, option); }
  Field milliseconds(std::string_view title_then) const {
    return changed(&Field::millisecond_title, title_then);
  }
  Field nanoseconds(std::string_view title_then) const {
    return changed(&Field::nanosecond_title, title_then);
  }

 private:
  template <class T>
  Field changed(T Field::*member, T value) const {
    Field f = *this;
    f.*member = value;
    return f;
  }
};

/// The number of possible values; resolves Values::by_format.
Values values_of(const Field& field);
/// For a row of an aggregate: is the field part of its key, not of its counters?
bool is_key(const Field& field);

/// Fields in order: single ones, or groups as a vector.
class FieldList {
 public:
  struct Part {
    Part(Field field) : fields{field} {}
    Part(std::vector<Field> several) : fields(std::move(several)) {}
    std::vector<Field> fields;
  };
  FieldList(std::initializer_list<Part> parts) {
    for (auto& part : parts) all_.insert(all_.end(), part.fields.begin(), part.fields.end());
  }
  operator std::vector<Field>() && { return std::move(all_); }

 private:
  std::vector<Field> all_;
};

/// A table's order of columns, where it is not that of the fields in JSON and CSV: first the fields
/// with these keys ("pid,comm"), in this order.
struct ColumnOrder {
  std::string_view keys;
  When when = {};  ///< only with this option
};
/// The fields in the first of these orders whose option is given.
std::vector<Field> in_columns(std::vector<Field> fields, const std::vector<ColumnOrder>& orders,
                              const Config& config);

/// Several fields that tables show only with an option: with("json", {...}).
inline std::vector<Field> with(When option, FieldList list) {
  std::vector<Field> fields = std::move(list);
  for (auto& field : fields) field.shown_with = option;
  return fields;
}

/// The text in an array of characters, up to its terminator.
template <std::size_t Size>
std::string text_in(const char (&chars)[Size]) {
  return {chars, strnlen(chars, Size)};
}

namespace detail {
// A text that a reader has made is moved.
inline Value to_value(std::string&& v) { return std::move(v); }
inline Value to_value(Value&& v) { return std::move(v); }
inline Value to_value(Frames&& v) { return std::move(v); }
inline Value to_value(TextList&& v) { return std::move(v); }
template <class T>
Value to_value(const T& v) {
  if constexpr (std::is_array_v<T>) {
    return text_in(v);
  } else if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, double> ||
                       std::is_same_v<T, Value> || std::is_same_v<T, bool> ||
                       std::is_same_v<T, Frames> || std::is_same_v<T, TextList>) {
    return v;
  } else if constexpr (std::is_signed_v<T>) {
    return static_cast<std::int64_t>(v);
  } else {
    return static_cast<std::uint64_t>(v);
  }
}
Value word_at(const auto& words, std::size_t n) {
  return n < std::size(words) ? std::string(words[n]) : std::to_string(n);
}
/// "opensnoop_event"
template <class Struct>
constexpr std::string_view name_of_type() {
  std::string_view words = __PRETTY_FUNCTION__;  // "... [with Struct = opensnoop_event; ...]"
  words.remove_prefix(words.find("Struct = ") + 9);
  return words.substr(0, words.find_first_of(";]"));
}
template <class T>
struct member_of;
template <class Record, class T>
struct member_of<T Record::*> {
  using record = Record;
};
}  // namespace detail

/// A field that is a member of the record: field<&event::pid>("pid", "PID", as::pid, "...").
template <auto Member>
Field field(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  using Record = typename detail::member_of<decltype(Member)>::record;
  Field field{key, title, format, doc, [](const void* record, const FieldContext&) {
                return detail::to_value(static_cast<const Record*>(record)->*Member);
              }};
  field.asks = false;
  return field;
}

/// Bytes of the records that are being read. Kernel programs set offsets of texts correctly;
/// a recording may have any, and a text beyond the record's end is empty.
inline std::size_t record_bytes = SIZE_MAX;

/// Text of any length after the record (struct text in bpf/lib/core/shared.h).
template <class Record, class Text>
std::string_view text_of(const Record& record, const Text& text) {
  if (text.at > record_bytes || text.bytes > record_bytes - text.at) return {};
  return {reinterpret_cast<const char*>(&record) + text.at, text.bytes};
}

/// A path from the components that bpf/lib/paths/path.bpf.h stores: last first,
/// each with a terminator. Cut: components towards the root are missing.
std::string path_of(std::string_view components, bool cut);
/// The same for the result of file_path() in bpf/lib/paths/path.bpf.h; `kind`: enum path_kind.
std::string file_path(std::string_view text, std::uint32_t kind);
/// "R" for a regular file, "S" for a socket, "O" for all others.
std::string file_type(std::uint32_t mode);
/// The path of a file; if it is not in a directory, as in /proc/PID/fd: "socket:[123]".
std::string file_name(std::uint32_t mode, std::uint64_t inode, std::string_view path);

/// A field that is text of any length after the record (struct text in bpf/lib/core/shared.h).
template <auto Member>
Field text_field(std::string_view key, std::string_view title, Format format,
                 std::string_view doc) {
  using Record = typename detail::member_of<decltype(Member)>::record;
  Field field{key, title, format, doc, [](const void* record, const FieldContext&) -> Value {
                auto& r = *static_cast<const Record*>(record);
                return std::string(text_of(r, r.*Member));
              }};
  field.asks = false;
  return field;
}

/// A computed field: derived<Record, ratio>("hit_ratio", ...); the function takes the record, and a
/// FieldContext if it needs one. A function that asks the system in another way (read_file) needs
/// Field::asking().
template <class Record, auto Function>
Field derived(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  Field field{
      key, title, format, doc, [](const void* record, const FieldContext& context) {
        auto& r = *static_cast<const Record*>(record);
        if constexpr (std::is_invocable_v<decltype(Function), const Record&, const FieldContext&>)
          return detail::to_value(Function(r, context));
        else
          return detail::to_value(Function(r));
      }};
  field.asks = std::is_invocable_v<decltype(Function), const Record&, const FieldContext&>;
  field.role = Role::derived;
  return field;
}

/// A function of the record, per second of the report; empty if the time is not known.
template <class Record, auto Function>
Field rate(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  Field field{
      key, title, format, doc, [](const void* record, const FieldContext& context) -> Value {
        if (context.seconds <= 0) return {};
        return static_cast<double>(Function(*static_cast<const Record*>(record))) / context.seconds;
      }};
  field.role = Role::derived;
  return field;
}

/// A field that is a kernel stack (struct stack): kernel_stack_field<&event::stack>().
template <auto Member>
Field kernel_stack_field() {
  using Record = typename detail::member_of<decltype(Member)>::record;
  return {"kernel_stack", "", as::stack, "kernel stack",
          [](const void* record, const FieldContext& context) -> Value {
            return context.frames_of(static_cast<const Record*>(record)->*Member);
          }};
}

/// A field that is a function of a process (struct user_code): its name, else its address.
template <auto Member>
Field user_function(std::string_view key, std::string_view title, Format format,
                    std::string_view doc) {
  using Record = typename detail::member_of<decltype(Member)>::record;
  Field field{key, title, format, doc,
              [](const void* record, const FieldContext& context) -> Value {
                auto& code = static_cast<const Record*>(record)->*Member;
                if (!code.address || !context.user_function) return {};
                return context.user_function(code);
              }};
  return field.capped();
}

/// A member that is an index of words: named<&Event::kind, kKinds>("kind",
/// "KIND", ...). An index out of range is shown as a number.
template <auto Member, const auto& Words>
Field named(std::string_view key, std::string_view title, Format format, std::string_view doc) {
  using Record = typename detail::member_of<decltype(Member)>::record;
  Field field{key, title, format, doc, [](const void* record, const FieldContext&) {
                return detail::word_at(Words, static_cast<const Record*>(record)->*Member);
              }};
  return field.bounded();
}

/// The value if this holds, else nothing: value_if(e.known, e.pid).
template <class T>
Value value_if(bool holds, const T& value) {
  return holds ? Value(detail::to_value(value)) : Value();
}
/// Nothing for 0.
template <class T>
Value unless_0(const T& value) {
  return value_if(value != 0, value);
}
/// The errno of a result as the kernel returns it; nothing: no error.
inline Value errno_of(std::int64_t result) {
  return value_if(result < 0 && result >= -4095, -result);
}
/// The error of such a result: failure<&Event::ret>("error by name; null: it succeeded").
template <auto Result>
Field failure(std::string_view doc) {
  using Record = typename detail::member_of<decltype(Result)>::record;
  Field field{"error", "ERROR", as::error, doc, [](const void* record, const FieldContext&) {
                return errno_of(static_cast<const Record*>(record)->*Result);
              }};
  return field.no_metric();
}

/// A word for each number that has one.
template <class Number>
using NumberedWord = std::pair<Number, std::string_view>;
/// The word for a number in such a table, or `otherwise`.
template <class Table, class Number>
std::string word_of(const Table& table, Number number, std::string otherwise) {
  for (auto& [known, word] : table)
    if (known == number) return std::string(word);
  return otherwise;
}

}  // namespace coretap
