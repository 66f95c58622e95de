#include "serve/http_answer.hpp"

#include <strings.h>

#include "coretap/parse.hpp"

namespace coretap::serve {

namespace {

constexpr std::string_view kLineEnd = "\r\n";

bool same(std::string_view a, std::string_view b) {
  return a.size() == b.size() && strncasecmp(a.data(), b.data(), a.size()) == 0;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Removes and returns the first line; none: it is incomplete.
std::optional<std::string_view> take_line(std::string_view& rest) {
  auto end = rest.find(kLineEnd);
  if (end == rest.npos) return std::nullopt;
  auto line = rest.substr(0, end);
  rest.remove_prefix(end + kLineEnd.size());
  return line;
}

std::optional<std::string> joined_chunks(std::string_view rest) {
  std::string body;
  while (true) {
    auto line = take_line(rest);
    if (!line) return std::nullopt;
    auto size = parse_hexadecimal(trimmed(line->substr(0, line->find(';'))));
    if (!size || *size > rest.size()) return std::nullopt;
    if (!*size) return body;
    body += rest.substr(0, *size);
    rest.remove_prefix(*size);
    if (!rest.starts_with(kLineEnd)) return std::nullopt;
    rest.remove_prefix(kLineEnd.size());
  }
}

}  // namespace

std::optional<HttpAnswer> parse_answer(std::string_view rest, bool ended) {
  constexpr std::string_view kVersion = "HTTP/1.";
  auto first = take_line(rest);
  // "HTTP/1.1 200 OK"
  if (!first || !first->starts_with(kVersion) || first->size() < 12 || (*first)[8] != ' ')
    return std::nullopt;
  auto status = parse_unsigned(first->substr(9, 3));
  if (!status || *status < 100) return std::nullopt;
  HttpAnswer answer{.status = static_cast<int>(*status)};
  std::optional<std::uint64_t> length;
  bool chunked = false;
  while (true) {
    auto line = take_line(rest);
    if (!line) return std::nullopt;
    if (line->empty()) break;
    auto value = *line;
    auto name = take_until(value, ':');
    value = trimmed(value);
    if (same(name, "Content-Length")) length = parse_unsigned(value);
    if (same(name, "Transfer-Encoding")) chunked = same(value, "chunked");
    if (same(name, "Retry-After")) answer.retry_after = parse_unsigned(value);
  }
  constexpr int kNoContent = 204;
  if (answer.status == kNoContent) return answer;
  if (chunked) {
    auto body = joined_chunks(rest);
    if (!body) return std::nullopt;
    answer.body = std::move(*body);
  } else if (length ? rest.size() >= *length : ended) {
    answer.body = rest.substr(0, length.value_or(rest.size()));
  } else {
    return std::nullopt;
  }
  return answer;
}

}  // namespace coretap::serve
