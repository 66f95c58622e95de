#include "metrics/threshold.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/parse.hpp"

namespace coretap::metrics {

namespace {

constexpr std::string_view kPrefix = "coretap_";
constexpr std::size_t kMostText = 1024, kMostFilters = 16;
constexpr double kLongestFor = 3600;
constexpr std::uint64_t kTimerLateNs = 100'000'000;

struct KnownUnit {
  std::string_view suffix;
  Threshold::Unit unit;
  double factor;
};
constexpr KnownUnit kUnits[] = {
    {"", Threshold::Unit::none, 1},          {"ns", Threshold::Unit::time, 1e-9},
    {"us", Threshold::Unit::time, 1e-6},     {"ms", Threshold::Unit::time, 1e-3},
    {"s", Threshold::Unit::time, 1},         {"m", Threshold::Unit::time, 60},
    {"h", Threshold::Unit::time, 3600},      {"K", Threshold::Unit::size, 1024},
    {"M", Threshold::Unit::size, 1 << 20},   {"G", Threshold::Unit::size, 1 << 30},
    {"T", Threshold::Unit::size, 1ULL << 40}};

bool is_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

std::string_view take_name(std::string_view& rest) {
  const auto end = std::ranges::find_if_not(rest, is_name);
  const auto name = rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  rest.remove_prefix(name.size());
  return name;
}

void skip_blanks(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
}

bool take_char(std::string_view& rest, char wanted) {
  skip_blanks(rest);
  if (!rest.starts_with(wanted)) return false;
  rest.remove_prefix(1);
  return true;
}

/// A text in quotes, with \" and \\; none: it has no end.
std::optional<std::string> take_quoted(std::string_view& rest) {
  if (!take_char(rest, '"')) return {};
  std::string value;
  while (!rest.empty()) {
    char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return value;
    if (c == '\\' && !rest.empty()) {
      c = rest.front();
      rest.remove_prefix(1);
    }
    value += c;
  }
  return {};
}

/// `{disk="sda",operation="W"}`; false: it is wrong.
bool take_labels(std::string_view& rest, Threshold& to) {
  if (!rest.starts_with('{')) return true;
  rest.remove_prefix(1);
  do {
    skip_blanks(rest);
    const auto name = take_name(rest);
    if (name.empty() || !take_char(rest, '=')) return false;
    auto value = take_quoted(rest);
    if (!value || to.labels.size() >= kMostFilters) return false;
    to.labels.emplace_back(name, std::move(*value));
  } while (take_char(rest, ','));
  return take_char(rest, '}');
}

/// "p99", "p99.9".
std::optional<double> percent_in(std::string_view word) {
  if (!word.starts_with('p')) return {};
  double value = 0;
  const auto* last = word.data() + word.size();
  auto [end, error] = std::from_chars(word.data() + 1, last, value);
  if (error != std::errc{} || end != last || !(value > 0 && value < 100)) return {};
  return value;
}

/// "20ms", "500/s"; false: it is no such value.
bool take_limit(std::string_view word, Threshold& to) {
  constexpr std::string_view kPerSecond = "/s";
  if (word.ends_with(kPerSecond)) {
    if (to.measure != Threshold::Measure::value) return false;
    to.measure = Threshold::Measure::rate;
    word.remove_suffix(kPerSecond.size());
  }
  auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), to.limit);
  if (error != std::errc{} || !std::isfinite(to.limit)) return false;
  const std::string_view suffix(end, static_cast<std::size_t>(word.data() + word.size() - end));
  auto* unit = std::ranges::find(kUnits, suffix, &KnownUnit::suffix);
  if (unit == std::end(kUnits)) return false;
  to.unit = unit->unit;
  to.limit *= unit->factor;
  return std::isfinite(to.limit);
}

double in_base(const BaseUnit& unit, double value) {
  if (unit.thousandths) return value / 1e3;
  if (unit.nanoseconds) return value * static_cast<double>(unit.nanoseconds) / 1e9;
  return value * static_cast<double>(unit.multiply);
}

double reading_of(const Family& family, std::uint64_t value) {
  return in_base(family.unit, family.unit.thousandths
                                  ? static_cast<double>(static_cast<std::int64_t>(value))
                                  : static_cast<double>(value));
}

/// Within a bucket, values count as spread evenly. None: there are no values.
std::optional<double> percentile_of(const Family& family, const std::vector<std::uint64_t>& counts,
                                    double percent) {
  auto& bounds = family.buckets.bounds;
  std::uint64_t all = 0;
  for (std::size_t i = 0; i <= bounds.size(); i++) all += counts[i];
  if (!all || bounds.empty()) return {};
  const auto rank = percent / 100 * static_cast<double>(all);
  double below = 0;
  for (std::size_t i = 0; i < bounds.size(); i++) {
    const auto here = static_cast<double>(counts[i]);
    if (below + here >= rank && here > 0) {
      const auto from = i ? static_cast<double>(bounds[i - 1]) : 0;
      const auto to = static_cast<double>(bounds[i]);
      return in_base(family.unit, from + (to - from) * (rank - below) / here);
    }
    below += here;
  }
  return in_base(family.unit, static_cast<double>(bounds.back()));
}

struct Found {
  const Family* family = nullptr;
  std::optional<std::size_t> total = {};
};

Found find_metric(const Plan& plan, std::string_view name) {
  if (auto one = std::ranges::find(plan.families, name, &Family::name); one != plan.families.end())
    return {&*one};
  auto one = std::ranges::find(plan.totals, name, &Family::name);
  if (one == plan.totals.end()) return {};
  return {&*one, static_cast<std::size_t>(one - plan.totals.begin())};
}

Error not_so(const Threshold& t, std::string_view why, std::string hint) {
  return usage(fmt::format("'{}': {} {}", t.text, t.metric, why), std::move(hint));
}

Result<void> check_measure(const Threshold& t, const Family& family) {
  using enum Threshold::Measure;
  switch (family.type) {
    case Type::histogram:
      if (t.measure != percentile)
        return not_so(t, "is a histogram: say which percentile", "as p99 > 20ms");
      break;
    case Type::counter:
      if (t.measure != rate) return not_so(t, "only grows: say how fast", "as > 500/s");
      break;
    case Type::gauge:
      if (t.measure != value) return not_so(t, "is a gauge, which is compared as it is", "as > 8");
      break;
  }
  const bool time = family.unit.suffix == "seconds", size = family.unit.suffix == "bytes";
  if (t.unit == Threshold::Unit::time && !time)
    return not_so(t, "is not a time", "give a number without ms or s");
  if (t.unit == Threshold::Unit::size && !size)
    return not_so(t, "is not a size", "give a number without K, M or G");
  if (time && t.unit == Threshold::Unit::none && t.measure != rate)
    return not_so(t, "is a time: its limit needs a unit", "as 20ms");
  return {};
}

}  // namespace

std::string Threshold::words(double value) const {
  std::string text;
  if (unit == Unit::time) {
    text = value >= 1      ? fmt::format("{:.3g} s", value)
           : value >= 1e-3 ? fmt::format("{:.3g} ms", value * 1e3)
                           : fmt::format("{:.3g} us", value * 1e6);
  } else if (unit == Unit::size) {
    text = fmt::format("{:.1f} MB", value / (1 << 20));
  } else {
    text = fmt::format("{:.6g}", value);
  }
  return measure == Measure::rate ? text + "/s" : text;
}

bool names_metric(std::string_view text) {
  skip_blanks(text);
  return text.starts_with(kPrefix);
}

Result<Threshold> parse_threshold(std::string_view text) {
  auto refused = [&](std::string_view why) {
    return usage(
        fmt::format("'{}' is not a condition on a metric: {}", text.substr(0, kMostText), why),
        std::string(kThresholdForms));
  };
  if (text.size() > kMostText) return refused("it is too long");
  Threshold t{.text = fmt::to_string(fmt::join(words_in(text), " "))};
  auto rest = text;
  skip_blanks(rest);
  t.metric = take_name(rest);
  if (!t.metric.starts_with(kPrefix)) return refused("it names no metric");
  if (!take_labels(rest, t)) return refused("labels are as {disk=\"sda\"}");
  auto words = words_in(rest);
  std::size_t at = 0;
  if (at < words.size())
    if (auto percent = percent_in(words[at])) {
      t.measure = Threshold::Measure::percentile;
      t.percent = *percent;
      at++;
    }
  if (at >= words.size() || (words[at] != ">" && words[at] != "<"))
    return refused("it has no > or <, with spaces around it");
  t.above = words[at++] == ">";
  if (at >= words.size() || !take_limit(words[at++], t)) return refused("it has no limit, as 20ms");
  if (at == words.size()) return t;
  if (words[at] != "for" || at + 2 != words.size()) return refused("only 'for TIME' may follow");
  auto seconds = parse_seconds(words[at + 1]);
  if (!seconds || *seconds < 1 || *seconds > kLongestFor)
    return refused("its time is from 1s to 1h");
  t.seconds = *seconds;
  return t;
}

Result<bool> applies(const Threshold& t, const Plan& plan, std::string_view entry) {
  for (auto& [name, value] : t.labels)
    if (name == "entry" && value != entry) return false;
  auto found = find_metric(plan, t.metric);
  if (!found.family) return false;
  if (auto r = check_measure(t, *found.family); !r) return r.error();
  std::vector<std::string_view> names;
  if (!found.total)
    for (auto& label : plan.labels) names.push_back(label.name);
  for (auto& [name, value] : t.labels)
    if (name != "entry" && std::ranges::find(names, name) == names.end())
      return not_so(
          t, fmt::format("has no label '{}'", name),
          names.empty() ? "it has none" : fmt::format("it has {}", fmt::join(names, ", ")));
  return true;
}

Judge::Judge(const std::vector<Threshold>& thresholds, const Plan& plan, std::string_view entry,
             Over over)
    : over_(std::move(over)) {
  for (std::size_t i = 0; i < thresholds.size(); i++) {
    auto& t = thresholds[i];
    if (auto is = applies(t, plan, entry); !is || !*is) continue;
    auto found = find_metric(plan, t.metric);
    Rule rule{.threshold = t, .number = i, .family = found.family, .total = found.total};
    for (auto& [name, value] : t.labels)
      if (auto label = std::ranges::find(plan.labels, name, &Label::name);
          name != "entry" && label != plan.labels.end())
        rule.labels.emplace_back(static_cast<std::size_t>(label - plan.labels.begin()), value);
    rules_.push_back(std::move(rule));
  }
}

/// None: there is nothing to compare yet, or there were no events.
std::optional<double> Judge::measure(Rule& rule, const SeriesTable& series,
                                     const std::vector<std::uint64_t>& totals,
                                     std::uint64_t now_ns) {
  auto& family = *rule.family;
  const bool above = rule.threshold.above;
  std::vector<std::uint64_t> sums(family.values());
  std::optional<double> extreme;
  auto add = [&](const std::uint64_t* values) {
    for (std::size_t i = 0; i < sums.size(); i++) sums[i] += values[i];
    const auto reading = reading_of(family, values[0]);
    if (!extreme || (above ? reading > *extreme : reading < *extreme)) extreme = reading;
  };
  if (rule.total)
    add(&totals[*rule.total]);
  else
    for (auto& [labels, one] : series.all())
      if (std::ranges::all_of(rule.labels,
                              [&, &of = labels](auto& l) { return of[l.first] == l.second; }))
        add(one.values.data() + family.at);
  if (rule.threshold.measure == Threshold::Measure::value) return extreme;
  const auto elapsed = static_cast<double>(now_ns - rule.before_ns) / 1e9;
  const bool first = !rule.before_ns;
  auto more = sums;
  for (std::size_t i = 0; i < more.size() && !first; i++)  // series may have gone
    more[i] -= std::min(more[i], rule.before[i]);
  rule.before = std::move(sums);
  if (first || elapsed <= 0) return {};
  if (rule.threshold.measure == Threshold::Measure::rate)
    return reading_of(family, more[0]) / elapsed;
  return percentile_of(family, more, rule.threshold.percent);
}

void Judge::look(const SeriesTable& series, const std::vector<std::uint64_t>& totals,
                 std::uint64_t now_ns) {
  for (auto& rule : rules_) {
    auto& t = rule.threshold;
    const auto value = measure(rule, series, totals, now_ns);
    const auto from_ns =
        t.measure == Threshold::Measure::value ? now_ns : std::exchange(rule.before_ns, now_ns);
    if (!value || (t.above ? *value <= t.limit : *value >= t.limit)) {
      rule.since_ns = 0;
      rule.told = false;
      continue;
    }
    if (!rule.since_ns) rule.since_ns = from_ns;
    const auto lasted = static_cast<double>(now_ns - rule.since_ns + kTimerLateNs) / 1e9;
    if (lasted < t.seconds || std::exchange(rule.told, true)) continue;
    over_(rule.number, *value);
  }
}

}  // namespace coretap::metrics
