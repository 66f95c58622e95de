#include "tools/general/trace/probe.hpp"

#include <cctype>
#include <utility>

#include <fmt/format.h>

#include "lib/targets/expression.h"

namespace coretap::tracing {

namespace {

bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)); }

/// Splits "int fd, struct file *f)" into declarations; sets `at` after the parenthesis.
Result<std::vector<std::string>> parameters(std::string_view text, std::size_t& at) {
  std::vector<std::string> all(1);
  const auto start = at;
  for (at++; at < text.size() && text[at] != ')'; at++) {
    if (text[at] == '(')
      return expression::error_at(text, at, "parameters cannot contain a parenthesis",
                                  "write void * for a pointer to a function");
    if (text[at] == ',')
      all.emplace_back();
    else
      all.back() += text[at];
  }
  if (at >= text.size()) return expression::error_at(text, start, "a ')' is missing");
  at++;
  if (all.size() == 1 && all.front().find_first_not_of(' ') == std::string::npos) all.clear();
  return all;
}

}  // namespace

std::string_view spec_of(std::string_view word) {
  std::size_t end = 0;
  while (end < word.size() && !is_blank(word[end]) && word[end] != '(' && word[end] != '"') end++;
  return word.substr(0, end);
}

Result<std::shared_ptr<Probe>> parse_probe(std::string_view word,
                                           const expression::IsType& is_type) {
  auto probe = std::make_shared<Probe>();
  probe->text = word;
  probe->spec = spec_of(word);
  std::size_t at = probe->spec.size();
  if (probe->spec.empty())
    return expression::error_at(word, 0, "expected what to trace here",
                                "such as vfs_read, c:malloc or t:sched:sched_switch");
  if (at < word.size() && word[at] == '(') {
    auto all = parameters(word, at);
    if (!all) return all.error();
    probe->parameters = std::move(*all);
  }
  expression::Parser parser(word, at, is_type);
  if (parser.peek() == '(') {
    parser.take('(');
    auto filter = parser.expression();
    if (!filter) return filter.error();
    probe->filter = std::move(*filter);
    if (!parser.take(')')) return parser.wrong(parser.at(), "expected ')' here");
  }
  if (parser.peek() == '"') {
    const auto start = parser.at();
    auto text = parser.quoted();
    if (!text) return text.error();
    auto format = expression::parse_format(*text, word, start + 1);
    if (!format) return format.error();
    while (parser.take(',')) {
      const auto value_at = parser.at();
      auto value = parser.expression();
      if (!value) return value.error();
      if (probe->values.size() >= EXPRESSION_VALUES)
        return parser.wrong(value_at, fmt::format("no more than {} values", EXPRESSION_VALUES));
      probe->values.push_back(std::move(*value));
    }
    if (probe->values.size() != format->conversions.size())
      return parser.wrong(
          start,
          fmt::format("the format has {} conversion{}, and {} value{} follow",
                      format->conversions.size(), format->conversions.size() == 1 ? "" : "s",
                      probe->values.size(), probe->values.size() == 1 ? "" : "s"),
          "each conversion shows one value");
    probe->format = std::move(*format);
  }
  if (parser.peek())
    return parser.wrong(parser.at(), "this is not expected here",
                        "a probe is SPEC (FILTER) \"FORMAT\", VALUES");
  return probe;
}

}  // namespace coretap::tracing
