#include "text/columns.hpp"
#include "text/value.hpp"

#include <fmt/format.h>

namespace coretap {

std::string trimmed(std::string line) {
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

void Columns::choose(const Config& config, const std::vector<Field>& fields) {
  for (auto& f : fields) {
    bool text = config.format == OutputFormat::text;
    if (!config.holds(f.exists) || (text ? !config.holds(f.when) : f.text_only)) continue;
    fields_.push_back(f);
    auto& chosen = fields_.back();
    if (f.format.wide && config.given("wide")) chosen.format.width = f.format.wide;
    if (f.in_ms.empty() || !config.given("milliseconds")) continue;
    chosen.title = f.in_ms;
    chosen.format.kind = Format::milliseconds;
    chosen.format.digits = 3;
  }
}

std::string Columns::titles() const {
  std::string line;
  for (auto& f : fields_)
    line += f.format.width < 0 ? fmt::format("{:<{}} ", f.title, -f.format.width)
                               : fmt::format("{:>{}} ", f.title, f.format.width);
  return trimmed(line);
}

std::string Columns::keys() const {
  std::string line;
  for (auto& f : fields_) line += fmt::format("{}{}", line.empty() ? "" : ",", f.key);
  return line;
}

std::string Columns::row(const void* record, const Names& names) const {
  std::string line;
  for (auto& f : fields_) {
    show(line, f.format, f.read(record), names);
    line += ' ';
  }
  return trimmed(std::move(line));
}

std::string Columns::csv(const void* record, const Names& names) const {
  std::string line;
  for (auto& f : fields_) {
    if (&f != &fields_.front()) line += ',';
    line += csv_value(f, f.read(record), names);
  }
  return line;
}

void Columns::json(JsonLine& line, const void* record, const Names& names) const {
  for (auto& f : fields_) {
    line.key(f.key);
    json_value(line, f, f.read(record), names);
  }
}

}  // namespace coretap
