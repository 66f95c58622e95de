#include "coretap/parse.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace coretap {

namespace {

std::optional<std::uint64_t> whole_number(std::string_view text, int base) {
  std::uint64_t value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::optional<std::uint64_t> parse_unsigned(std::string_view text) {
  return whole_number(text, 10);
}

std::optional<std::uint64_t> parse_hexadecimal(std::string_view text) {
  return whole_number(text, 16);
}

std::optional<double> parse_seconds(std::string_view text) {
  double value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || !std::isfinite(value) || value < 0) return std::nullopt;
  std::string_view unit(end, text.data() + text.size() - end);
  if (unit == "ms")
    value /= 1e3;
  else if (unit == "m")
    value *= 60;
  else if (unit == "h")
    value *= 3600;
  else if (!unit.empty() && unit != "s")
    return std::nullopt;
  if (!std::isfinite(value)) return std::nullopt;
  return value;
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "kKmMgG";
  std::size_t shift = 0;
  if (auto unit = text.empty() ? kUnits.npos : kUnits.find(text.back()); unit != kUnits.npos) {
    shift = 10 * (unit / 2 + 1);
    text.remove_suffix(1);
  }
  auto value = parse_unsigned(text);
  if (!value || *value > (UINT64_MAX >> shift)) return std::nullopt;
  return *value << shift;
}

std::string_view take_until(std::string_view& rest, char end) {
  auto part = rest.substr(0, rest.find(end));
  rest.remove_prefix(std::min(rest.size(), part.size() + 1));
  return part;
}

std::vector<std::string_view> words_in(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    auto word = text.substr(0, text.find_first_of(" \t\n"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (!word.empty()) words.push_back(word);
  }
  return words;
}

bool take_parts(std::string_view text, const std::function<bool(std::string_view)>& take) {
  for (;;) {
    auto comma = text.find(',');
    auto part = text.substr(0, comma);
    if (part.empty() || !take(part)) return false;
    if (comma == std::string_view::npos) return true;
    text.remove_prefix(comma + 1);
  }
}

std::string upper_case(std::string_view text) {
  std::string all(text);
  for (auto& c : all)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return all;
}

}  // namespace coretap
