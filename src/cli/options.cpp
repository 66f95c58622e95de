// Constructors of options and positional arguments; options that the library defines are in
// options_*.cpp.
#include <algorithm>

#include <fmt/format.h>

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

Option free_text(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
                 Complete complete, std::string_view needs,
                 std::function<std::string&(Config&)> place) {
  return value(
      letter, name, metavar, doc,
      [name, needs, place = std::move(place)](Config& c, std::string_view text) -> Result<void> {
        if (text.empty() && !needs.empty())
          return usage(fmt::format("--{}: needs {}", name, needs));
        if (place) place(c) = text;
        return {};
      },
      complete);
}

Option text(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
            std::string_view needs, std::function<std::string&(Config&)> place, Complete complete) {
  return same_everywhere(free_text(letter, name, metavar, doc, complete, needs, std::move(place)));
}

Option hex_address(char letter, std::string_view name, std::string_view metavar,
                   std::string_view doc, std::string_view hint, Setting target) {
  return value(letter, name, metavar, doc, [=](Config& c, std::string_view text) -> Result<void> {
    std::size_t prefix = text.starts_with("0x") || text.starts_with("0X") ? 2 : 0;
    auto address = parse_hexadecimal(text.substr(prefix)).value_or(0);
    if (!address)
      return usage(fmt::format("--{}: '{}' is not an address", name, text),
                   fmt::format("give it in hexadecimal, as {}", hint));
    c.set(target, address);
    return {};
  });
}

Option comma_list(char letter, std::string_view name, std::string_view metavar,
                  std::string_view doc, std::function<bool(Config&, std::string_view)> take,
                  const std::string& what, const std::string& hint) {
  return value(letter, name, metavar, doc,
               [=](Config& c, std::string_view text) -> Result<void> {
                 if (take_parts(text, [&](auto part) { return take(c, part); })) return {};
                 return usage(fmt::format("--{}: '{}' is not a list of {}", name, text, what),
                              hint);
               })
      .adding_up();
}

Option choice(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              const std::vector<Choice>& words, void (*take)(Config&, std::uint64_t number)) {
  auto completions = [words] {
    std::vector<Completion> all;
    all.reserve(words.size());
    for (auto& w : words) all.push_back({std::string(w.word), std::string(w.doc)});
    return all;
  };
  return one_of(value(letter, name, metavar, doc,
                      [=](Config& c, std::string_view text) -> Result<void> {
                        std::vector<std::string_view> known;
                        std::string all;
                        for (auto& w : words) {
                          if (text == w.word) {
                            take(c, w.number);
                            return {};
                          }
                          all += &w == &words.front() ? "" : &w == &words.back() ? " or " : ", ";
                          known.push_back(w.word);
                          all += w.word;
                        }
                        return usage(fmt::format("--{}: '{}' is not {}", name, text, all),
                                     did_you_mean(text, known));
                      }),
                completions);
}

std::vector<std::string_view> Option::names() const {
  std::vector<std::string_view> all = {name};
  for (auto rest = alias; !rest.empty();) all.push_back(take_until(rest, ','));
  return all;
}

Option one_of(Option option, std::function<std::vector<Completion>()> words) {
  option.words = std::move(words);
  return option;
}

std::vector<Option> belonging_to(When condition, std::vector<Option> options) {
  // An option that belongs to one of these belongs to them by it.
  for (auto& o : options)
    if (o.belongs_to.empty()) o.belongs_to = condition;
  return options;
}

namespace {

/// A number of units; of units from a thousand on it may have up to nine decimal places.
Result<std::uint64_t> take_units(std::string_view of, std::string_view text, Range range,
                                 std::uint64_t unit) {
  auto whole = text.substr(0, text.find('.'));
  auto decimals = text.substr(std::min(text.size(), whole.size() + 1));
  auto n = parse_unsigned(whole), rest = parse_unsigned(decimals);
  if (unit < 1000 || !n || *n < range.least || *n >= range.most || !rest || decimals.size() > 9) {
    auto whole_number = take_number(of, text, range.least, range.most, parse_unsigned);
    if (!whole_number) return whole_number.error();
    return *whole_number * unit;
  }
  std::uint64_t scale = 1;
  for (std::size_t i = 0; i < decimals.size(); i++) scale *= 10;
  return *n * unit +
         static_cast<std::uint64_t>(static_cast<double>(*rest) / static_cast<double>(scale) *
                                    static_cast<double>(unit));
}

}  // namespace

Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Setting target, std::uint64_t unit, Setting present) {
  return number(letter, name, metavar, doc, Range{}, target, unit, present);
}

Option number(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              Range range, Setting target, std::uint64_t unit, Setting present) {
  range.most = std::min(range.most, most_of(target, unit));
  return value(letter, name, metavar, doc, [=](Config& c, std::string_view text) -> Result<void> {
    auto n = take_units(fmt::format("--{}", name), text, range, unit);
    if (!n) return n.error();
    c.set(target, *n);
    c.set(present, 1);
    return {};
  });
}

Option same_everywhere(Option option) {
  option.shared = true;
  return option;
}

Option limit(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
             std::uint64_t most, std::uint64_t* (*place)(Config&)) {
  return same_everywhere(
      value(letter, name, metavar, doc, [=](Config& c, std::string_view text) -> Result<void> {
        auto n = take_number(fmt::format("--{}", name), text, 1, most, parse_size);
        if (!n) return n.error();
        *place(c) = *n;
        return {};
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
        auto n = take_units(metavar, text, {0, most_of(target, unit)}, unit);
        if (!n) return n.error();
        c.set(target, *n);
        return {};
      },
      .otherwise = std::string(otherwise)};
}

}  // namespace coretap
