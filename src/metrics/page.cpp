#include "metrics/page.hpp"

#include <iterator>

#include <fmt/format.h>

#include "coretap/sanitize.hpp"

namespace coretap::metrics {

namespace {

constexpr std::size_t kLabelBytes = 128;

void escape(std::string& out, std::string_view text, bool quotes) {
  for (char c : text) {
    if (c == '\\' || (quotes && c == '"')) out += '\\';
    if (c == '\n')
      out += "\\n";
    else
      out += c;
  }
}

}  // namespace

std::string label_value(std::string_view text) {
  auto value = valid_utf8(text);
  if (value.size() > kLabelBytes) {
    value.resize(kLabelBytes);
    // Do not cut within a character.
    while (!value.empty() && (value.back() & 0xc0) == 0x80) value.pop_back();
    if (!value.empty() && value.back() & 0x80) value.pop_back();
  }
  return value;
}

std::string labels_text(const std::vector<std::pair<std::string_view, std::string>>& labels) {
  if (labels.empty()) return {};
  std::string text = "{";
  for (auto& [name, value] : labels) {
    if (text.size() > 1) text += ',';
    text += name;
    text += "=\"";
    escape(text, value, true);
    text += '"';
  }
  return text + '}';
}

std::string in_base_unit(const BaseUnit& unit, std::uint64_t value) {
  if (unit.thousandths) {
    bool negative = static_cast<std::int64_t>(value) < 0;
    auto size = negative ? -value : value;
    // OTLP engines treat "1" as an integer, and a metric has one type.
    return fmt::format("{}{}.{:03}", negative ? "-" : "", size / 1'000, size % 1'000);
  }
  if (!unit.nanoseconds) {
    std::uint64_t product = 0;
    if (__builtin_mul_overflow(value, unit.multiply, &product)) product = UINT64_MAX;
    return std::to_string(product);
  }
  auto per_second = 1'000'000'000 / unit.nanoseconds;
  auto text = std::to_string(value / per_second);
  if (auto part = value % per_second) {
    auto digits = std::to_string(per_second + part).substr(1);
    digits.erase(digits.find_last_not_of('0') + 1);
    text += '.' + digits;
  }
  return text;
}

void Page::family(std::string_view name, Type type, std::string_view help) {
  text_ += fmt::format("# HELP {} ", name);
  escape(text_, help, false);
  text_ += fmt::format("\n# TYPE {} {}\n", name, name_of(type));
}

void Page::sample(std::string_view name, std::string_view labels, std::string_view value) {
  text_ += name;
  text_ += labels;
  text_ += ' ';
  text_ += value;
  text_ += '\n';
}

void Page::sample(std::string_view name, std::string_view labels, std::uint64_t value) {
  sample(name, labels, std::string_view(fmt::format_int(value).c_str()));
}

void Page::samples(const Family& family, std::string_view labels, const std::uint64_t* values) {
  if (family.type != Type::histogram) {
    sample(family.name, labels, in_base_unit(family.unit, values[0]));
    return;
  }
  // The bound is the last label.
  auto open =
      labels.empty() ? std::string("{") : std::string(labels.substr(0, labels.size() - 1)) + ',';
  auto name = family.name + "_bucket";
  std::uint64_t sum = 0;
  auto buckets = family.buckets.bounds.size();
  for (std::size_t i = 0; i < buckets; i++) {
    sum += values[i];
    sample(name,
           fmt::format("{}le=\"{}\"}}", open, in_base_unit(family.unit, family.buckets.bounds[i])),
           sum);
  }
  sum += values[buckets];
  sample(name, open + "le=\"+Inf\"}", sum);
  sample(family.name + "_sum", labels, in_base_unit(family.unit, values[buckets + 1]));
  sample(family.name + "_count", labels, sum);
}

void MergedPage::add(std::string_view page) {
  constexpr std::string_view kHead = "# HELP ";
  while (!page.empty()) {
    auto next = page.find("\n# HELP ");
    auto family = page.substr(0, next == page.npos ? page.size() : next + 1);
    page.remove_prefix(family.size());
    if (!family.starts_with(kHead)) continue;
    auto name = family.substr(kHead.size(), family.find(' ', kHead.size()) - kHead.size());
    auto type = family.find("\n# TYPE ");
    if (type == family.npos) continue;
    auto head = family.find('\n', type + 1);
    if (head == family.npos) continue;
    auto found = families_.find(name);
    if (found == families_.end()) {
      order_.emplace_back(name);
      found = families_.try_emplace(std::string(name), std::string(family.substr(0, head + 1)), "")
                  .first;
    }
    found->second.second += family.substr(head + 1);
  }
}

std::string MergedPage::text() const {
  std::string all;
  for (auto& name : order_) {
    auto& [head, samples] = families_.find(name)->second;
    if (!samples.empty()) all += head + samples;
  }
  return all;
}

}  // namespace coretap::metrics
