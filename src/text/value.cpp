#include "text/value.hpp"

#include <fmt/format.h>

#include "text/frames.hpp"

namespace coretap {

namespace {

void json_array(JsonLine& line, const std::vector<std::string>& all) {
  line.begin_array();
  for (auto& text : all) line.text(text);
  line.end_array();
}

}  // namespace

void json_value(JsonLine& line, const Field& field, const Value& value, const Names& names) {
  if (auto* n = std::get_if<std::uint64_t>(&value)) {
    if (names_things(field.format))
      line.text(names.name(field.format, *n));
    else if (field.format.kind == Format::thousandths)
      line.real(static_cast<double>(*n) / 1e3);
    else if (hidden(field.format, *n, names))
      line.null();
    else
      line.number(*n);
  } else if (auto* i = std::get_if<std::int64_t>(&value)) {
    if (names_things(field.format))
      line.text(names.name(field.format, static_cast<std::uint64_t>(*i)));
    else if (field.format.kind == Format::thousandths)
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
    json_array(line, *frames);
  } else if (auto* words = std::get_if<TextList>(&value)) {
    json_array(line, words->each);
  } else {
    line.null();
  }
}

void json_field(JsonLine& line, const Field& field, const void* record, const Names& names) {
  line.key(field.key);
  json_value(line, field, field.read(record, names.context), names);
}

std::string csv_value(const Field& field, const Value& value, const Names& names) {
  if (auto* n = std::get_if<std::uint64_t>(&value)) {
    if (names_things(field.format)) return csv_field(names.name(field.format, *n));
    return hidden(field.format, *n, names) ? "" : std::to_string(*n);
  }
  if (auto* i = std::get_if<std::int64_t>(&value)) {
    if (names_things(field.format))
      return csv_field(names.name(field.format, static_cast<std::uint64_t>(*i)));
    if (field.format.kind == Format::thousandths)
      return fmt::format("{:.3f}", static_cast<double>(*i) / 1e3);
    return std::to_string(*i);
  }
  if (auto* d = std::get_if<double>(&value)) return fmt::format("{:.6g}", *d);
  if (auto* s = std::get_if<std::string>(&value)) return csv_field(*s);
  if (auto* b = std::get_if<bool>(&value)) return *b ? "true" : "false";
  if (auto* frames = std::get_if<Frames>(&value)) return csv_field(folded(*frames));
  if (auto* words = std::get_if<TextList>(&value)) return csv_field(words->line);
  return {};
}

}  // namespace coretap
