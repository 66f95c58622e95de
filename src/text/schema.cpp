#include "coretap/schema.hpp"

#include <utility>

#include <fmt/format.h>

#include "text/names.hpp"
#include "text/units.hpp"

namespace coretap {

namespace {

constexpr char kArray[] = "array of strings", kOrNull[] = " or null";

/// The type is that of the value which the field's reader returns for an empty record.
std::string type_of(const Field& f, const Value& value) {
  if (names_things(f.format))
    return std::holds_alternative<std::monostate>(value) ? "string or null" : "string";
  if (std::holds_alternative<std::string>(value)) return "string";
  if (std::holds_alternative<bool>(value)) return "boolean";
  if (std::holds_alternative<double>(value)) return "number";
  if (std::holds_alternative<Frames>(value) || std::holds_alternative<TextList>(value))
    return kArray;
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
      return f.key.ends_with("_per_second") ? "number or null" : "integer or null";  // rate<>
  }
}

/// Unknown for an empty value; a value with a unit is an amount, and not negative.
bool may_be_negative(const OutputKey& k, const Value& value) {
  if (!k.type.starts_with("integer")) return false;
  if (std::holds_alternative<std::int64_t>(value)) return true;
  return std::holds_alternative<std::monostate>(value) && k.unit.empty();
}

Meaning meaning_of(const Field& f, const std::string& type) {
  if (f.role == Role::counter) return Meaning::sum;
  if (!is_key(f)) return Meaning::other;
  if (type.starts_with("string")) return Meaning::label;
  return type.starts_with("integer") ? Meaning::id : Meaning::other;
}

constexpr char kInnermostFirst[] = ", the innermost function first";
constexpr char kFolded[] = ", outermost function first, joined by semicolons";

}  // namespace

OutputKey key(std::string name, std::string type, std::string doc, When when,
              std::vector<OutputKey> members) {
  auto* unit = unit_of_key(name);
  auto words = std::string(unit ? unit->words : "");
  return {std::move(name),   std::move(type), std::move(words), std::move(doc), when,
          std::move(members)};
}

OutputKey key_of(const Field& f, const void* record, When when) {
  auto doc = std::string(f.doc);
  if (f.format.kind == Format::stack) doc += kInnermostFirst;
  auto value = f.read(record, {});
  auto type = type_of(f, value);
  if (f.nullable && !type.ends_with(kOrNull)) type += kOrNull;
  auto k = key(std::string(f.key), std::move(type), std::move(doc), when);
  k.meaning = meaning_of(f, k.type);
  k.few = values_of(f) == Values::bounded;
  k.negative = f.format.kind != Format::pointer && may_be_negative(k, value);
  return k;
}

OutputKey csv_key_of(const Field& f, const void* record, When when) {
  if (f.format.kind == Format::stack)
    return key(std::string(f.key), "string", std::string(f.doc) + kFolded, when);
  auto k = key_of(f, record, when);
  if (k.type == kArray) k.type = "string";
  return k;
}

OutputKey key(const Field& f, std::size_t record_size, When when) {
  std::vector<std::uint64_t> zeros(record_size / 8 + 1);
  return key_of(f, zeros.data(), when);
}

OutputKey csv_key(const Field& f, std::size_t record_size, When when) {
  std::vector<std::uint64_t> zeros(record_size / 8 + 1);
  return csv_key_of(f, zeros.data(), when);
}

OutputKey type_key(const std::string& type) {
  return key("type", "string", fmt::format("\"{}\"", type));
}
OutputKey time_key() {
  return key("time", "string", "wall clock, ISO 8601 with microseconds and zone");
}
OutputKey monotonic_key() { return key("monotonic_ns", "integer", "the kernel's monotonic clock"); }

OutputKey kernel_stack_key(When when) {
  return key("kernel_stack", kArray, fmt::format("kernel stack{}", kInnermostFirst), when);
}

OutputKey folded_kernel_stack_key(When when) {
  return key("kernel_stack", "string", fmt::format("kernel stack{}", kFolded), when);
}

std::vector<OutputKey> user_stack_keys(When when) {
  return {key("user_stack", kArray, fmt::format("user stack{}", kInnermostFirst), when),
          key("user_stack_truncated", "string or null",
              "why the user stack ends too early, such as \"no mapping\"; null: it is whole", when),
          key("user_stack_guessed", "integer",
              "frames of it that only a frame pointer led to, in code without unwind information",
              when)};
}

}  // namespace coretap
