#include "text/columns.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "text/value.hpp"

namespace coretap {

std::string trimmed(std::string line) {
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

std::vector<Field> in_columns(std::vector<Field> fields, const std::vector<ColumnOrder>& orders,
                              const Config& config) {
  auto order = std::ranges::find_if(orders, [&](auto& o) { return config.holds(o.when); });
  if (order == orders.end()) return fields;
  auto place = fields.begin();
  for (auto keys = order->keys; !keys.empty();) {
    auto key = take_until(keys, ',');
    auto found = std::find_if(place, fields.end(), [&](auto& f) { return f.key == key; });
    if (found != fields.end()) std::rotate(place++, found, found + 1);
  }
  return fields;
}

void Columns::choose(const Config& config, const std::vector<Field>& fields,
                     const std::vector<ColumnOrder>& orders) {
  bool text = config.format == OutputFormat::text;
  for (auto& f : text ? in_columns(fields, orders, config) : fields) {
    if (!config.holds(f.only_with) || (text ? !config.holds(f.shown_with) : f.table_only)) continue;
    fields_.push_back(f);
    auto& chosen = fields_.back();
    if (f.format.wide && config.given("wide")) chosen.format.width = f.format.wide;
    if (!f.nanosecond_title.empty() && config.given("nanoseconds")) {
      chosen.title = f.nanosecond_title;
      chosen.format.kind = Format::number;
    }
    if (f.millisecond_title.empty() || !config.given("milliseconds")) continue;
    chosen.title = f.millisecond_title;
    chosen.format.kind = Format::milliseconds;
    chosen.format.digits = 3;
  }
}

std::string Columns::titles(TimeInRow time) const {
  std::string line;
  std::size_t columns = 0;
  for (auto& f : fields_) {
    if (f.is_stack()) continue;
    if (columns++ == time.after) line += time.text;
    line += f.format.width < 0 ? fmt::format("{:<{}} ", f.title, -f.format.width)
                               : fmt::format("{:>{}} ", f.title, f.format.width);
  }
  if (columns <= time.after) line += time.text;
  return trimmed(line);
}

std::string Columns::keys() const {
  std::string line;
  for (auto& f : fields_) line += fmt::format("{}{}", line.empty() ? "" : ",", f.key);
  return line;
}

std::string Columns::row(const void* record, const Names& names, TimeInRow time) const {
  constexpr std::size_t kUsual = 160;  // one allocation for most lines
  std::string line;
  line.reserve(kUsual);
  std::size_t columns = 0;
  for (auto& f : fields_) {
    if (f.is_stack()) continue;
    if (columns++ == time.after) line += time.text;
    show(line, f.format, f.read(record, names.context), names);
    line += ' ';
  }
  if (columns <= time.after) line += time.text;
  return trimmed(std::move(line));
}

std::vector<std::string> Columns::below(const void* record, const Names& names) const {
  std::vector<std::string> lines;
  for (auto& f : fields_) {
    if (!f.is_stack()) continue;
    auto value = f.read(record, names.context);
    if (auto* frames = std::get_if<Frames>(&value))
      for (auto& frame : *frames) lines.push_back(frame_line(frame));
  }
  return lines;
}

std::string Columns::csv(const void* record, const Names& names) const {
  std::string line;
  for (auto& f : fields_) {
    if (&f != &fields_.front()) line += ',';
    line += csv_value(f, f.read(record, names.context), names);
  }
  return line;
}

void Columns::json(JsonLine& line, const void* record, const Names& names) const {
  for (auto& f : fields_) json_field(line, f, record, names);
}

std::string Columns::line(const LineOf& of, const void* record, const Names& names) const {
  if (of.csv) return fmt::format("{},{}", of.time, csv(record, names));
  JsonLine line(of.type, of.tool);
  line.text("time", of.time);
  json(line, record, names);
  return std::string(line.finish());
}

void ask_all(const std::vector<Field>& fields, const void* record, const Names& names) {
  for (auto& f : fields) {
    // Other formats have their names from the start.
    const bool named = f.format.kind == Format::disk || f.format.kind == Format::symbol;
    if (!f.read || !(f.asks || named)) continue;
    const auto value = f.read(record, names.context);
    if (!named) continue;
    if (auto* n = std::get_if<std::uint64_t>(&value)) names.name(f.format, *n);
    if (auto* n = std::get_if<std::int64_t>(&value))
      names.name(f.format, static_cast<std::uint64_t>(*n));
  }
}

}  // namespace coretap
