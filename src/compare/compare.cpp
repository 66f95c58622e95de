#include "compare/compare.hpp"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "base/new_file.hpp"
#include "compare/compare_text.hpp"
#include "compare/stack_picture.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

constexpr int kHolds = 5, kUndecided = 6;  // of --fail-if

struct CompareOwn {
  std::vector<compare::Condition> conditions;
  double at_least = 0.05, plan = 0;
  std::string svg;
};

int failed(Error error) {
  error.what = "compare: " + error.what;
  return print_error("coretap", error);
}

Result<double> part_in(std::string_view text) {
  double percent = 0;
  auto number = text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), percent);
  if (error == std::errc() && end == number.data() + number.size() && percent >= 0.01 &&
      percent <= 1000)
    return percent / 100;
  return usage(fmt::format("'{}' is not a percentage between 0.01 and 1000", text), "such as 5%");
}

Option percent_option(std::string_view name, std::string_view doc, double CompareOwn::*to) {
  return value(0, name, "PERCENT", doc, [to](Config& c, std::string_view text) -> Result<void> {
    auto part = part_in(text);
    if (!part) return part.error();
    c.own<CompareOwn>().*to = *part;
    return {};
  });
}

Result<std::vector<compare::Series>> series_of(const std::vector<std::string>& paths) {
  std::vector<compare::Series> all;
  for (auto& path : paths) {
    auto one = compare::read_series(path);
    if (!one) return one.error();
    all.push_back(std::move(*one));
  }
  return all;
}

int run_plan(const Config& config, const std::vector<std::string>& words, double change) {
  if (words.size() != 1) return failed(usage("--plan needs one recording"));
  auto one = compare::read_series(words[0]);
  if (!one) return failed(one.error());
  auto plan = compare::plan(*one, change);
  if (!plan) return failed(plan.error());
  return print_text(config.given("json") ? compare::in_json(*plan) : compare::in_text(*plan));
}

}  // namespace

std::vector<Option> compare_options() {
  return {
      value(0, "fail-if", "CONDITION",
            "exit status 5 if CONDITION holds: WHAT [of KEY=VALUE] > or < CHANGE, such as "
            "'p99 > +10%' or 'events/s of comm=nginx < -5%'",
            [](Config& c, std::string_view text) -> Result<void> {
              auto condition = compare::condition_in(text);
              if (!condition) return condition.error();
              c.own<CompareOwn>().conditions.push_back(std::move(*condition));
              return {};
            })
          .adding_up(),
      percent_option("at-least", "smaller changes do not count (default: 5%)",
                     &CompareOwn::at_least),
      percent_option("plan", "print how long two recordings like this one must be to find a change",
                     &CompareOwn::plan),
      flag(0, "paired", "recordings were made in turns: A1 B1 B2 A2 ..., given as A1 A2 -- B1 B2"),
      value(
          0, "svg", "FILE", "write a flame graph of stacks: red is more, blue is less",
          [](Config& c, std::string_view text) -> Result<void> {
            if (text.empty()) return usage("--svg needs the name of a file");
            c.own<CompareOwn>().svg = text;
            return {};
          },
          Complete::file),
      flag(0, "strict", "exit status 6 if a condition is undecided"),
      flag(0, "json", "print one JSON object per line"),
      flag(0, "csv", "print comma-separated values"),
  };
}

int run_compare(const Config& config, const std::vector<std::string>& words) {
  const auto& own = config.own<CompareOwn>();
  if (own.plan > 0) return run_plan(config, words, own.plan);
  // The words after -- are the last of all words.
  auto right = config.command;
  std::vector<std::string> left(words.begin(),
                                words.end() - static_cast<std::ptrdiff_t>(right.size()));
  if (right.empty() && left.size() == 2) {
    right.push_back(left.back());
    left.pop_back();
  }
  if (left.empty() || right.empty())
    return failed(usage("needs two recordings, or two sets: A1 A2 A3 -- B1 B2 B3"));
  if (config.given("json") && config.given("csv"))
    return failed(usage("--json and --csv cannot be used together"));
  auto a = series_of(left);
  if (!a) return failed(a.error());
  auto b = series_of(right);
  if (!b) return failed(b.error());
  compare::Choices choices{.at_least = own.at_least, .paired = config.given("paired")};
  for (auto& condition : own.conditions) choices.wanted.push_back(wanted(condition));
  auto result = compare::compare(*a, *b, choices);
  if (!result) return failed(result.error());
  if (!own.svg.empty()) {
    if (result->whole.empty()) return failed(usage("--svg: these are not recordings of stacks"));
    auto file = NewFile::create(own.svg);
    if (!file) return failed(file.error());
    if (auto r = file->write(differential_svg(*result, *a, *b)); !r) return failed(r.error());
  }
  const bool json = config.given("json");
  auto text = json ? in_json(*result) : config.given("csv") ? in_csv(*result) : in_text(*result);
  bool holds = false, undecided = false;
  for (auto& condition : own.conditions) {
    auto is = answer(condition, *result);
    holds |= is.is == compare::Answer::holds;
    undecided |= is.is == compare::Answer::undecided;
    if (json)
      text += in_json(condition, is);
    else if (config.given("csv"))
      fmt::print(stderr, "{}\n", is.text);
    else
      text += is.text + '\n';
  }
  if (auto status = print_text(text)) return status;
  return holds ? kHolds : undecided && config.given("strict") ? kUndecided : kOk;
}

}  // namespace coretap
