#include "docs/keys.hpp"

#include <rapidjson/document.h>

#include <array>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "text/ledger.hpp"
#include "text/names.hpp"

namespace coretap {

namespace {

constexpr char kTimeDoc[] = "wall clock, ISO 8601 with zone";
constexpr char kMonotonicDoc[] = "the kernel's monotonic clock";
constexpr char kStackDoc[] = "kernel stack, the innermost function first";
constexpr char kFoldedDoc[] = "kernel stack, outermost function first, joined by semicolons";

std::string unit_of(std::string_view key) {
  constexpr std::pair<std::string_view, std::string_view> kUnits[] = {
      {"_ns", "nanoseconds"}, {"_us", "microseconds"}, {"_ms", "milliseconds"},
      {"_bytes", "bytes"},    {"_kb", "KiB"},          {"_mb", "MiB"},
      {"_pages", "pages"},    {"_ratio", "0 to 1"},
  };
  for (auto& [suffix, unit] : kUnits)
    if (key.ends_with(suffix)) return std::string(unit);
  return {};
}

/// What the field's reader gives for an empty record tells its type.
std::string type_of(const Field& f, const Value& value) {
  if (names_things(f.format)) return "string";
  if (std::holds_alternative<std::string>(value)) return "string";
  if (std::holds_alternative<bool>(value)) return "boolean";
  if (std::holds_alternative<double>(value)) return "number";
  if (std::holds_alternative<std::int64_t>(value))
    return f.format.kind == Format::thousandths ? "number" : "integer";
  if (std::holds_alternative<std::uint64_t>(value))
    return f.format.kind == Format::pointer ? "integer or null" : "integer";
  switch (f.format.kind) {
    case Format::text:
      return "string or null";
    case Format::percent:
    case Format::thousandths:
      return "number or null";
    default:
      return "integer or null";
  }
}

Key key(std::string name, std::string type, std::string doc, std::string_view when = {},
        std::vector<Key> members = {}) {
  auto unit = unit_of(name);
  return {std::move(name),   std::move(type), std::move(unit), std::move(doc), when,
          std::move(members)};
}

Key key(const Field& f, std::size_t record_size, std::string_view when = {}) {
  std::vector<std::uint64_t> zeros(record_size / 8 + 1);
  return key(std::string(f.key), type_of(f, f.read(zeros.data())), std::string(f.doc), when);
}

Key type_key(const std::string& type) { return key("type", "string", fmt::format("\"{}\"", type)); }

JsonKind header(const Tool& tool) {
  return {
      "header",
      "first",
      {type_key("header"), key("tool", "string", fmt::format("\"{}\"", tool.name)),
       key("version", "string", "of coretap"), key("kernel", "string", "release, as of uname -r"),
       key("time", "string", kTimeDoc), key("monotonic_ns", "integer", kMonotonicDoc),
       key("options", "object", "options as given, by their long names"),
       key("hooks", "array of objects", "what was attached", {},
           {key("hook", "string", "its name"),
            key("attached", "array of strings", "attach points; empty if there was none")}),
       key("limits", "array of strings", "what this kernel takes away from the data")}};
}

std::string ledger_doc(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kDocs[] = {
      {"seen", "events: shown, filtered, lost, untracked and unmatched together"},
      {"shown", "events in the output"},
      {"filtered", "events that the filters did not want"},
      {"lost", "events for which the ring buffer had no room"},
      {"untracked", "events for which a map had no room"},
      {"unmatched", "ends whose begin was not seen"},
      {"truncated", "shown, but shortened"},
      {"stacks_failed", "shown, but without their stack"},
      {"stacks_truncated", "shown with a user stack that ends too early, and is marked"},
      {"stacks_guessed", "shown with frames of the user stack that only a frame pointer led to"},
      {"stacks_truncated_by", "the reasons for which user stacks end too early, how often each"},
      {"overwritten", "events that a flight recorder had no room to keep"},
      {"missed", "events for which the kernel skipped the program"},
      {"data_lost",
       "any of the above but filtered, stacks_truncated, stacks_guessed and overwritten: --strict "
       "ends with status 4"},
  };
  for (auto& [key, doc] : kDocs)
    if (key == name) return std::string(doc);
  return {};
}

/// Asked of the writer itself.
JsonKind ledger_kind() {
  JsonKind kind{"ledger", "last", {}};
  JsonLine line;
  Ledger{}.json(line);
  auto text = line.finish();
  rapidjson::Document written;
  written.Parse(text.data(), text.size());
  for (auto& member : written.GetObject()) {
    std::string name(member.name.GetString(), member.name.GetStringLength());
    kind.keys.push_back(name == "type" ? type_key("ledger")
                                       : key(name,
                                             member.value.IsBool()     ? "boolean"
                                             : member.value.IsObject() ? "object"
                                                                       : "integer",
                                             ledger_doc(name)));
  }
  return kind;
}

std::vector<Key> bounds() {
  return {key("from_ns", "integer", "least value that counts here"),
          key("below_ns", "integer", "least value that no longer does"),
          key("count", "integer", "values between them")};
}

JsonKind data(const HistogramReport& r) {
  JsonKind kind{"histogram",
                r.keys.empty() ? "one a report" : "one a report and set of keys",
                {type_key("histogram"), key("time", "string", kTimeDoc)}};
  for (auto& f : r.keys) kind.keys.push_back(key(f, r.key_size, f.when));
  for (auto& f : r.totals) kind.keys.push_back(key(f, r.totals_size));
  kind.keys.push_back(key("count", "integer", "values in all"));
  kind.keys.push_back(key("total_ns", "integer", "their sum"));
  kind.keys.push_back(
      key("histogram", "array of objects", "slots that are not empty", {}, bounds()));
  return kind;
}

std::vector<Key> user_stack() {
  return {key("user_stack", "array of strings", "user stack, the innermost function first"),
          key("user_stack_truncated", "string or null",
              "why the user stack ends too early, such as \"no mapping\"; null: it is whole"),
          key("user_stack_guessed", "integer",
              "frames of it that only a frame pointer led to, in code without unwind information")};
}

std::vector<Key> stacks_of_party() {
  auto all = user_stack();
  all.insert(all.begin(), key("kernel_stack", "array of strings", kStackDoc));
  return all;
}

JsonKind data(const EventReport& r) {
  JsonKind kind{"event",
                "one an event",
                {type_key("event"), key("time", "string", kTimeDoc),
                 key("monotonic_ns", "integer", kMonotonicDoc)}};
  for (auto& f : r.fields)
    if (!f.text_only) kind.keys.push_back(key(f, r.record_size));
  if (!r.stack_when.empty())
    kind.keys.push_back(key("kernel_stack", "array of strings", kStackDoc, r.stack_when));
  if (!r.callers_when.empty())
    for (auto k : user_stack()) {
      k.when = r.callers_when;
      kind.keys.push_back(std::move(k));
    }
  return kind;
}

std::vector<Key> fields_of(const SnapshotReport& r) {
  std::vector<Key> all;
  for (auto& f : r.fields)
    all.push_back(key(std::string(f.key), type_of(f, f.read(r.nothing.get())), std::string(f.doc)));
  return all;
}

std::vector<Key> stack_owner() {
  return {key("comm", "string", "command name"), key("pid", "integer", "process"),
          key("tid", "integer", "thread")};
}

std::vector<Key> held_sums() {
  return {key("exited", "boolean", "held until the process ended"),
          key("bytes", "integer", "not given back"),
          key("count", "integer", "allocations not given back")};
}

std::vector<Key> held_ages() {
  return {key("oldest_age_ns", "integer or null", "age of the oldest; null: not known"),
          key("newest_age_ns", "integer", "age of the newest")};
}

JsonKind held_data() {
  JsonKind kind{"stack",
                "one a stack and process of each report, the largest last",
                {type_key("stack"), key("time", "string", kTimeDoc),
                 key("comm", "string or null", "command name; null: several processes"),
                 key("pid", "integer or null", "process; null: several")}};
  auto add = [&](const std::vector<Key>& keys) {
    kind.keys.insert(kind.keys.end(), keys.begin(), keys.end());
  };
  add(held_sums());
  add({key("sample_rate", "integer",
           "sums are estimates from one of so many addresses; 1: they are exact")});
  add(held_ages());
  add(stacks_of_party());
  add({key("allocations", "array of objects", "each of them", "show-allocs",
           {key("address", "string or null", "hexadecimal; null: the kernel's, and not to be seen"),
            key("bytes", "integer", "its size"), key("age_ns", "integer", "its age")})});
  return kind;
}

JsonKind data(const StackReport& r) {
  if (r.measure == StackReport::held) return held_data();
  JsonKind kind{"stack", "one a stack and thread, the largest sum last", {type_key("stack")}};
  for (auto& k : stack_owner()) kind.keys.push_back(k);
  if (r.measure == StackReport::time)
    kind.keys.push_back(key("runnable", "boolean", "preempted rather than blocked"));
  for (auto& k : stacks_of_party()) kind.keys.push_back(k);
  if (r.layout != StackReport::alone) {
    std::vector<Key> waker = {
        key("context", "string", "task, or what is none: irq, softirq, idle")};
    for (auto& k : stack_owner()) waker.push_back(k);
    for (auto& k : stacks_of_party()) waker.push_back(k);
    kind.keys.push_back(key("wakers", "array of objects",
                            "who woke the task, who woke that one, ...", {}, std::move(waker)));
  }
  if (r.measure == StackReport::time)
    kind.keys.push_back(key("total_ns", "integer", "sum of the times"));
  kind.keys.push_back(key("count", "integer", "how often"));
  return kind;
}

JsonKind data(const SumReport& r) {
  JsonKind kind{
      "interval", "one a report", {type_key("interval"), key("time", "string", kTimeDoc)}};
  for (auto& f : r.fields)
    if (!f.text_only) kind.keys.push_back(key(f, r.record_size));
  return kind;
}

JsonKind data(const TableReport& r) {
  JsonKind kind{"row", "one a row", {type_key("row"), key("time", "string", kTimeDoc)}};
  for (auto& f : r.fields)
    if (!f.text_only) kind.keys.push_back(key(f, r.value_at + r.value_size, f.exists));
  return kind;
}

JsonKind data(const CallReport&) {
  return {"call",
          "one a call",
          {type_key("call"), key("time", "string", "wall clock when it began, ISO 8601 with zone"),
           key("monotonic_ns", "integer", kMonotonicDoc),
           key("cgroup", "string or null", "whose recorder it was in; null: there is one only"),
           key("cpu", "integer or null", "where it ended; null: it has not"),
           key("pid", "integer", "process"), key("tid", "integer", "thread"),
           key("comm", "string", "command name of the task"),
           key("syscall", "string", "name of the call"),
           key("abi", "string", "table that its number is of"),
           key("arguments", "object", "by name: strings as text, all others as numbers"),
           key("result", "integer or null", "null: it has not ended"),
           key("error", "string or null", "errno by its name; null: it did not fail"),
           key("latency_ns", "integer or null", "null: its begin or its end was not seen")}};
}

/// What comes before the calls that a recorder is asked for.
JsonKind dump_kind() {
  return {"dump",
          "before what a recorder held",
          {type_key("dump"), key("time", "string", kTimeDoc),
           key("monotonic_ns", "integer", kMonotonicDoc),
           key("cgroup", "string or null", "whose recorder it is"),
           key("reason", "string", "why it was asked for"),
           key("pid", "integer or null", "process whose end was the reason"),
           key("comm", "string or null", "its command name"),
           key("calls", "integer", "lines that follow"),
           key("overwritten", "integer", "older calls that are gone")}};
}

JsonKind data(const SnapshotReport& r) {
  JsonKind kind{
      "snapshot", "several a report", {type_key("snapshot"), key("time", "string", kTimeDoc)}};
  for (auto& k : fields_of(r)) kind.keys.push_back(k);
  kind.keys.push_back(
      key(std::string(r.series.key), "array of numbers", std::string(r.series.element.doc)));
  return kind;
}

std::vector<Key> columns(const HistogramReport& r) {
  std::vector<Key> all = {key("time", "string", kTimeDoc)};
  for (auto& f : r.keys) all.push_back(key(f, r.key_size, f.when));
  for (auto& k : bounds()) all.push_back(k);
  return all;
}

std::vector<Key> columns(const EventReport& r) {
  std::vector<Key> all = {key("time", "string", kTimeDoc),
                          key("monotonic_ns", "integer", kMonotonicDoc)};
  for (auto& f : r.fields)
    if (!f.text_only) all.push_back(key(f, r.record_size));
  if (!r.stack_when.empty()) all.push_back(key("kernel_stack", "string", kFoldedDoc, r.stack_when));
  if (!r.callers_when.empty())
    all.push_back(key("user_stack", "string",
                      "user stack, outermost function first, joined by semicolons",
                      r.callers_when));
  return all;
}

std::vector<Key> held_columns() {
  std::vector<Key> all = {key("time", "string", kTimeDoc), key("comm", "string", "command name"),
                          key("pid", "integer", "process; empty: several")};
  for (auto& keys : {held_sums(), held_ages()}) all.insert(all.end(), keys.begin(), keys.end());
  all.push_back(key("stack", "string", "folded: command and frames, outermost first"));
  return all;
}

std::vector<Key> columns(const StackReport& r) {
  if (r.measure == StackReport::held) return held_columns();
  auto all = stack_owner();
  if (r.measure == StackReport::time) {
    all.push_back(key("runnable", "boolean", "preempted rather than blocked"));
    all.push_back(key("total_ns", "integer", "sum of the times"));
  }
  all.push_back(key("count", "integer", "how often"));
  all.push_back(key("stack", "string", "folded: command, user and kernel frames, outermost first"));
  return all;
}

std::vector<Key> columns(const SumReport& r) {
  std::vector<Key> all = {key("time", "string", kTimeDoc)};
  for (auto& f : r.fields)
    if (!f.text_only) all.push_back(key(f, r.record_size));
  return all;
}

std::vector<Key> columns(const TableReport& r) {
  std::vector<Key> all = {key("time", "string", kTimeDoc)};
  for (auto& f : r.fields)
    if (!f.text_only) all.push_back(key(f, r.value_at + r.value_size, f.exists));
  return all;
}

std::vector<Key> columns(const CallReport& r) {
  auto all = data(r).keys;
  all.erase(all.begin());  // the type
  for (auto& k : all)
    if (k.name == "arguments") k = key("arguments", "string", "the call as text has it");
  return all;
}

std::vector<Key> columns(const SnapshotReport& r) {
  std::vector<Key> all = {key("time", "string", kTimeDoc)};
  for (auto& k : fields_of(r)) all.push_back(k);
  auto& element = r.series.element;
  all.push_back(key(fmt::format("{}_N", element.key), "number",
                    fmt::format("for each N from 0 on: {}", element.doc)));
  return all;
}

std::string list(const std::vector<Key>& keys, int indent) {
  std::string text;
  for (auto& k : keys) {
    auto type = k.unit.empty() ? k.type : fmt::format("{}, {}", k.type, k.unit);
    text += fmt::format("{:{}}{:<{}} {:<24} {}", "", indent, k.name, 22 - indent, type, k.doc);
    if (!k.when.empty()) text += fmt::format(" ({})", condition_words(k.when));
    text += '\n' + list(k.members, indent + 2);
  }
  return text;
}

}  // namespace

std::vector<JsonKind> json_kinds(const Tool& tool) {
  auto of = [](const Report& report) {
    return std::visit([](auto& r) { return data(r); }, report);
  };
  std::vector<JsonKind> all{header(tool), of(tool.report)};
  for (auto& other : tool.other_reports) {
    all.push_back(of(other.report));
    all.back().written += fmt::format(", with --{}", other.when);
  }
  if (std::holds_alternative<CallReport>(tool.report)) all.push_back(dump_kind());
  all.push_back(ledger_kind());
  return all;
}

std::vector<Key> csv_columns(const Report& report) {
  return std::visit([](auto& r) { return columns(r); }, report);
}

std::string keys(const Tool& tool) {
  std::string text;
  for (auto& kind : json_kinds(tool))
    text += fmt::format("{} --json, type \"{}\", {}:\n{}\n", tool.name, kind.type, kind.written,
                        list(kind.keys, 2));
  text += fmt::format("{} --csv:\n{}", tool.name, list(csv_columns(tool.report), 2));
  for (auto& other : tool.other_reports)
    text += fmt::format("\n{} --csv --{}:\n{}", tool.name, other.when,
                        list(csv_columns(other.report), 2));
  return text;
}

}  // namespace coretap
