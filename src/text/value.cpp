#include "text/value.hpp"

#include <optional>

#include <fmt/format.h>

#include "coretap/sanitize.hpp"

namespace coretap {

namespace {

/// The name of a number; empty: its format has no names.
std::optional<std::string> name_of(const Format& format, const Value& value, const Names& names) {
  if (!names_things(format)) return {};
  if (auto* n = std::get_if<std::uint64_t>(&value)) return names.name(format, *n);
  if (auto* i = std::get_if<std::int64_t>(&value))
    return names.name(format, static_cast<std::uint64_t>(*i));
  return {};
}

}  // namespace

void json_value(JsonLine& line, const Field& field, const Value& value, const Names& names) {
  const bool thousandths = field.format.kind == Format::thousandths;
  if (auto name = name_of(field.format, value, names)) {
    line.text(*name);
  } else if (auto* n = std::get_if<std::uint64_t>(&value)) {
    if (thousandths)
      line.real(static_cast<double>(*n) / 1e3);
    else if (hidden(field.format, *n, names))
      line.null();
    else
      line.number(*n);
  } else if (auto* i = std::get_if<std::int64_t>(&value)) {
    if (thousandths)
      line.real(static_cast<double>(*i) / 1e3);
    else
      line.integer(*i);
  } else if (auto* d = std::get_if<double>(&value)) {
    line.real(*d);
  } else if (auto* s = std::get_if<std::string>(&value)) {
    line.text(*s);
  } else if (auto* b = std::get_if<bool>(&value)) {
    line.boolean(*b);
  } else if (auto* frames = std::get_if<Frames>(&value)) {
    line.texts(*frames);
  } else if (auto* words = std::get_if<TextList>(&value)) {
    line.texts(words->each);
  } else {
    line.null();
  }
}

void json_field(JsonLine& line, const Field& field, const void* record, const Names& names) {
  line.key(field.key);
  json_value(line, field, field.read(record, names.context), names);
}

std::string csv_value(const Field& field, const Value& value, const Names& names) {
  if (auto name = name_of(field.format, value, names)) return csv_field(*name);
  if (auto* n = std::get_if<std::uint64_t>(&value))
    return hidden(field.format, *n, names) ? "" : std::to_string(*n);
  if (auto* i = std::get_if<std::int64_t>(&value))
    return field.format.kind == Format::thousandths
               ? fmt::format("{:.3f}", static_cast<double>(*i) / 1e3)
               : std::to_string(*i);
  if (auto* d = std::get_if<double>(&value)) return fmt::format("{:.6g}", *d);
  if (auto* s = std::get_if<std::string>(&value)) return csv_field(*s);
  if (auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (auto* frames = std::get_if<Frames>(&value)) return csv_field(folded(*frames));
  if (auto* words = std::get_if<TextList>(&value)) return csv_field(words->line);
  return {};
}

}  // namespace coretap
