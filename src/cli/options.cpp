// Constructors of options and positional arguments; options that the library defines are in
// options_*.cpp.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/nearest.hpp"
#include "coretap/option_parts.hpp"

namespace coretap {

namespace {

constexpr double kShortest = 0.001;  // reports at shorter intervals are unreadable
constexpr double kLongest = 1e9;

/// The largest number that fits, in units.
std::uint64_t most_of(Setting target, std::uint64_t unit) {
  return (target.size >= 8 || !target.size ? UINT64_MAX : (1ULL << (8 * target.size)) - 1) / unit;
}

}  // namespace

Result<double> take_seconds(std::string_view of, std::string_view text) {
  auto s = parse_seconds(text);
  if (!s || *s < kShortest || *s > kLongest)
    return usage(fmt::format("{}: '{}' is not between {:g} and 1e9 seconds", of, text, kShortest),
                 "give seconds, or a number with ms, s, m or h");
  return *s;
}

Result<std::uint64_t> take_number(std::string_view of, std::string_view text, std::uint64_t least,
                                  std::uint64_t most,
                                  std::optional<std::uint64_t> (*parse)(std::string_view)) {
  auto n = parse(text);
  if (!n || *n < least || *n > most)
    return usage(fmt::format("{}: '{}' is not a number from {} to {}", of, text, least, most));
  return *n;
}

Result<std::vector<std::uint32_t>> take_list(std::string_view option, std::string_view text,
                                             std::uint64_t most) {
  std::vector<std::uint32_t> all;
  bool good = take_parts(text, [&](std::string_view part) {
    auto n = parse_unsigned(part);
    if (!n || *n == 0 || *n > most) return false;
    all.push_back(static_cast<std::uint32_t>(*n));
    return true;
  });
  if (!good)
    return usage(
        fmt::format("--{}: '{}' is not a list of numbers from 1 to {}", option, text, most),
        fmt::format("separate them by commas: --{} 1,203", option));
  return all;
}

Option flag(char letter, std::string_view name, std::string_view doc, Setting target) {
  return {letter, name, {}, doc, [target](Config& c, std::string_view) -> Result<void> {
            c.set(target, 1);
            return {};
          }};
}

Option value(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::function<Result<void>(Config&, std::string_view)> apply, Complete complete) {
  return {letter, name, metavar, doc, std::move(apply), {}, complete};
}

Option one_of(Option option, std::function<std::vector<Completion>()> words) {
  option.words = std::move(words);
  return option;
}

std::vector<Option> belonging_to(std::string_view condition, std::vector<Option> options) {
  for (auto& o : options) o.belongs_to = condition;
  return options;
}

Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Setting target, std::uint64_t unit, Setting present) {
  return number(letter, name, metavar, doc, Range{}, target, unit, present);
}

Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Range range, Setting target, std::uint64_t unit, Setting present) {
  range.most = std::min(range.most, most_of(target, unit));
  return value(letter, name, metavar, doc, [=](Config& c, std::string_view text) -> Result<void> {
    auto n = take_number(fmt::format("--{}", name), text, range.least, range.most);
    if (!n) return n.error();
    c.set(target, *n * unit);
    c.set(present, 1);
    return {};
  });
}

Option same_everywhere(Option option) {
  option.shared = true;
  return option;
}

Option list_of(Option option) {
  option.adds_up = true;
  return same_everywhere(std::move(option));
}

Option text(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
            std::string_view needs, std::function<std::string&(Config&)> place, Complete complete) {
  return same_everywhere(value(
      letter, name, metavar, doc,
      [=](Config& c, std::string_view text) -> Result<void> {
        if (text.empty() && !needs.empty())
          return usage(fmt::format("--{}: needs {}", name, needs));
        if (place) place(c) = text;
        return {};
      },
      complete));
}

Option choice(std::string_view name, std::string_view metavar, std::string_view doc,
              const std::vector<Completion>& words, void (*take)(Config&, std::size_t which)) {
  auto apply = [=](Config& c, std::string_view text) -> Result<void> {
    std::vector<std::string_view> known;
    for (auto& one : words) {
      if (one.word == text) {
        take(c, known.size());
        return {};
      }
      known.push_back(one.word);
    }
    auto last = known.back();
    return usage(fmt::format("--{}: '{}' is not {} or {}", name, text,
                             fmt::join(known.begin(), known.end() - 1, ", "), last),
                 did_you_mean(text, known));
  };
  return one_of(same_everywhere(value(0, name, metavar, doc, apply)), [=] { return words; });
}

Option also_named(std::string_view alias, Option option) {
  option.alias = alias;
  return option;
}

Option limit(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::uint64_t most, std::uint64_t* (*place)(Config&)) {
  return same_everywhere(value(letter, name, metavar, doc, [=](Config& c, std::string_view text) {
    return store(take_number(fmt::format("--{}", name), text, 1, most, parse_size), *place(c));
  }));
}

std::vector<Option> joined(std::initializer_list<std::vector<Option>> lists) {
  std::vector<Option> all;
  for (auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

Positional shared::threshold(std::string_view metavar, std::uint64_t unit, std::string_view doc,
                             Setting target, std::string_view otherwise) {
  return {
      .metavar = metavar,
      .doc = otherwise.empty() ? std::string(doc) : fmt::format("{} (default: {})", doc, otherwise),
      .apply = [=](Config& c, std::string_view text) -> Result<void> {
        auto n = take_number(metavar, text, 0, most_of(target, unit));
        if (!n) return n.error();
        c.set(target, *n * unit);
        return {};
      },
      .otherwise = std::string(otherwise)};
}

}  // namespace coretap
