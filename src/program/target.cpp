#include "program/target.hpp"

#include <array>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostBytes = 4096 + 256;  // a path and a name

Error wrong(std::string_view word, std::string why, std::string hint) {
  return {fmt::format("'{}' does not name what to trace", printable(word)), std::move(why),
          std::move(hint), kUsage};
}

constexpr std::string_view kForms =
    "give FUNCTION, LIBRARY:FUNCTION, t:CATEGORY:EVENT or u:LIBRARY:PROBE";

/// The last colon that separates a place from a name: not one in a bracket expression such as
/// [[:alpha:]], nor one in a name such as app::run.
std::size_t last_colon(std::string_view text) {
  std::size_t found = text.npos, depth = 0;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '[') depth++;
    if (text[i] == ']' && depth) depth--;
    if (text[i] != ':' || depth) continue;
    if (i > 0 && text.substr(i, 2) == "::" && found != text.npos)
      i++;
    else
      found = i;
  }
  return found == text.npos ? text.rfind(':') : found;
}

/// "12", "0x1c"
std::optional<std::uint64_t> number(std::string_view text) {
  if (!text.starts_with("0x")) return parse_unsigned(text);
  return parse_hexadecimal(text.substr(2));
}

/// Splits "FUNCTION+0x12"; reads "0x1139" as an address.
Result<TargetWord> with_place(TargetWord t, std::string_view word) {
  if (t.name.starts_with("0x")) {
    t.address = number(t.name);
    if (!t.address)
      return wrong(word, "what begins with 0x is an address", "such as LIBRARY:0x1139");
  } else if (auto plus = t.name.rfind('+'); plus != t.name.npos && plus > 0) {
    // "operator+" has no number after the plus.
    if (auto within = number(std::string_view(t.name).substr(plus + 1))) {
      t.within = *within;
      t.name.resize(plus);
    }
  }
  if (!t.is_place()) return t;
  if (t.at_return)
    return wrong(word, "a place within a function has no return",
                 "leave out the r before the colon");
  if (t.name.find('*') != t.name.npos)
    return wrong(word, "a pattern has no place that all its functions share", "name one function");
  return t;
}

}  // namespace

Result<TargetWord> parse_target(std::string_view word, bool regular_expression) {
  if (word.empty()) return wrong(word, "it is empty", std::string(kForms));
  if (word.size() > kMostBytes || word.find('\0') != word.npos)
    return wrong(word.substr(0, 64), "it is too long", std::string(kForms));
  TargetWord t;
  auto rest = word;
  char kind = 'p';
  if (rest.front() == ':') {
    rest.remove_prefix(1);
  } else if (rest.size() > 1 && rest[1] == ':' &&
             std::string_view("prtu").find(rest[0]) != std::string_view::npos) {
    kind = rest[0];
    rest.remove_prefix(2);
  } else if (rest.find(':') == rest.npos) {
    t.name = rest;
    return regular_expression ? t : with_place(std::move(t), word);
  }
  t.kind = kind == 't'   ? TargetWord::tracepoint
           : kind == 'u' ? TargetWord::usdt
                         : TargetWord::function;
  t.at_return = kind == 'r';
  auto colon = last_colon(rest);
  if (colon == rest.npos) {
    if (t.kind == TargetWord::tracepoint)
      return wrong(word, "a tracepoint has a category and a name",
                   "such as t:sched:sched_process_fork");
    if (t.kind == TargetWord::usdt)
      return wrong(word, "a USDT probe has a library or program, and a name",
                   "such as u:/usr/lib/libc.so.6:setjmp, or u::PROBE with --pid");
    // ":func" and "p:func" may mean a kernel function, or a function of library "p".
    return wrong(
        word, "a library or nothing has to stand before the function",
        fmt::format("{1}PROGRAM:{0} is a function of a program, {2}::{0} one of the kernel",
                    printable(rest), word.front() == ':' ? "" : fmt::format("{}:", kind), kind));
  }
  t.place = rest.substr(0, colon);
  t.name = rest.substr(colon + 1);
  if (t.name.empty()) return wrong(word, "no name follows the last colon", std::string(kForms));
  if (t.kind == TargetWord::tracepoint && t.place.empty())
    return wrong(word, "a tracepoint has a category", "t:*:NAME looks in all categories");
  if (t.kind == TargetWord::usdt)
    if (auto between = t.place.rfind(':'); between != t.place.npos) {
      t.provider = t.place.substr(between + 1);
      t.place.resize(between);
    }
  if (t.kind == TargetWord::function && !regular_expression) return with_place(std::move(t), word);
  return t;
}

bool matches_wildcard(std::string_view pattern, std::string_view name) {
  // Only the last `*` needs backtracking: earlier ones have matched as little as possible.
  std::size_t p = 0, n = 0, star = pattern.npos, from = 0;
  while (n < name.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      from = n;
    } else if (p < pattern.size() && pattern[p] == name[n]) {
      p++, n++;
    } else if (star != pattern.npos) {
      p = star + 1;
      n = ++from;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') p++;
  return p == pattern.size();
}

Result<NamePattern> NamePattern::make(std::string_view text, bool regular_expression) {
  NamePattern pattern;
  pattern.text_ = text;
  if (!regular_expression) {
    pattern.exact_ = text.find('*') == text.npos;
    return pattern;
  }
  pattern.expression_ = std::shared_ptr<regex_t>(new regex_t{}, [](regex_t* r) {
    regfree(r);
    delete r;
  });
  auto anchored = fmt::format("^({})", text);
  if (int error = regcomp(pattern.expression_.get(), anchored.c_str(), REG_EXTENDED | REG_NOSUB)) {
    std::array<char, 128> why{};
    regerror(error, pattern.expression_.get(), why.data(), why.size());
    return Error{fmt::format("'{}' is not a regular expression", printable(text)), why.data(),
                 "POSIX extended regular expressions are taken, see regex(7)", kUsage};
  }
  return pattern;
}

bool NamePattern::matches(const char* name) const {
  if (expression_) return regexec(expression_.get(), name, 0, nullptr, 0) == 0;
  return matches_wildcard(text_, name);
}

}  // namespace coretap
