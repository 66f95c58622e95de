#include "compare/compare_text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include <fmt/format.h>

#include "coretap/json.hpp"
#include "coretap/sanitize.hpp"

namespace coretap::compare {

namespace {

using Verdict = Line::Verdict;
using Kind = Line::Kind;

constexpr int kName = 20, kWidestName = 56;
constexpr std::size_t kMostRows = 30, kMostRowsOfStacks = 12;
constexpr double kLeastPart = 0.1;  // of a change: smaller contributions are not in the text

std::string digits(double v) {
  const auto size = std::abs(v);
  return fmt::format("{:.{}f}", v, size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
}

std::string grouped(double v) {
  auto text = fmt::format("{:.0f}", v);
  for (auto at = static_cast<int>(text.size()) - 3; at > (v < 0); at -= 3)
    text.insert(static_cast<std::size_t>(at), ",");
  return text;
}

std::string rate(double v) {
  return v >= 1e9    ? digits(v / 1e9) + " G"
         : v >= 1e7  ? digits(v / 1e6) + " M"
         : v >= 1000 ? grouped(v)
                     : digits(v);
}

std::string shown(const Line& line, std::optional<double> value, double below, Unit usual) {
  if (!value) return "-";
  // Rates of histograms are of events.
  const auto unit = line.unit.value_or(line.kind == Kind::rate ? unit::plain : usual);
  switch (line.kind) {
    case Kind::rate:
      return unit.suffix.empty() ? rate(*value) : amount(*value, unit);
    case Kind::share:
      return digits(100 * *value) + " %";
    case Kind::range:
      return fmt::format("<{}", amount(below, unit));
    case Kind::value:
      break;
  }
  return amount(*value, unit);
}

std::string name_of(const Line& line, Unit unit) {
  auto name = line.what;
  if (line.what == "above") name += ' ' + amount(line.bound, unit);
  if (line.key.empty()) return name;
  if (!line.of_row)
    return line.kind == Kind::rate ? line.key : fmt::format("{} of {}", name, line.key);
  if (name == "events/s") return line.key;
  const auto sign = line.key.find('=') + 1;
  for (auto what : {kSelf, kTotal, kStack})
    if (name == fmt::format("{}/s", what)) return fmt::format("{} {}", what, line.key.substr(sign));
  return fmt::format("{} {}", line.key, name);
}

std::string_view words_of(const Line& line) {
  switch (line.verdict) {
    case Verdict::few:
      return "too few intervals or events";
    case Verdict::lost:
      return "not known: events were lost";
    case Verdict::untested:
      return line.kind == Kind::range ? "wide buckets: no test" : "one value: no test";
    default:
      return {};
  }
}

bool changed(const Line& line) {
  return line.verdict == Verdict::more || line.verdict == Verdict::less;
}

std::string_view word_of(Verdict v) {
  constexpr std::string_view kWords[] = {"more", "less", "same", "too_few", "lost", "untested"};
  return kWords[static_cast<std::size_t>(v)];
}

std::string change_of(const Line& line) {
  if (!changed(line)) return line.verdict == Verdict::same ? "-" : "?";
  if (line.gone_or_new) return *line.a > 0 ? "gone" : "new";
  return percent(*line.change);
}

constexpr double kMostPercent = 9.995;  // larger changes are factors

std::string range_of(double low, double high) {
  if (high < kMostPercent) return fmt::format("{:+.1f}..{:+.1f} %", 100 * low, 100 * high);
  return fmt::format("{}..{}", percent(low), percent(high));
}

std::string size_of(double part) {
  return part < kMostPercent ? fmt::format("{:.1f} %", 100 * part) : percent(part);
}

bool within_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }  // UTF-8

void row(std::string& out, const Line& line, Unit unit, std::size_t width) {
  auto name = printable(name_of(line, unit));
  // A name that is cut is as wide as its column; of stacks the ends matter.
  if (name.size() > width && line.key.starts_with(kStackKey)) {
    const auto kept = kStack.size() + 1;
    auto from = name.size() - (width - kept - 2);
    while (from < name.size() && within_character(name[from])) from++;
    name = name.substr(0, kept) + ".." + name.substr(from);
  } else if (name.size() > width) {
    auto end = width - 2;
    while (end && within_character(name[end])) end--;
    name = name.substr(0, end) + "..";
  }
  auto text =
      fmt::format("{:<{}}{:>10}{:>11}{:>10}", name, width, shown(line, line.a, line.a_below, unit),
                  shown(line, line.b, line.b_below, unit), change_of(line));
  if (auto words = words_of(line); !words.empty())
    text += fmt::format("  {}", words);
  else if (line.low)
    text += fmt::format(" {:>17} {:>9}", range_of(*line.low, *line.high), size_of(*line.smallest));
  out += text + '\n';
}

std::string side(const Facts& f, double seconds, std::size_t recordings) {
  auto text =
      fmt::format("{}{:.0f} s", recordings > 1 ? fmt::format("{} x ", recordings) : "", seconds);
  if (!f.host.empty()) text += " on " + f.host;
  if (!f.kernel.empty()) text += fmt::format(" ({})", f.kernel);
  return text;
}

std::string lost(const Comparison& c) {
  if (!c.a.lost && !c.b.lost) return "0 lost in both";
  return fmt::format("lost {:.2g} % and {:.2g} %", 100 * c.a.lost_share(), 100 * c.b.lost_share());
}

std::string joined(const std::vector<std::string>& words) {
  std::string all;
  for (auto& w : words) all += (all.empty() ? "" : ", ") + w;
  return all;
}

void contributions(std::string& out, const Comparison& c) {
  for (auto at = c.contributions.begin(); at != c.contributions.end();) {
    auto end = std::find_if(at, c.contributions.end(), [&](auto& x) { return x.what != at->what; });
    std::string text, same;
    std::size_t others = 0;
    for (auto each = at; each != end; ++each) {
      if (each == at || std::abs(each->part) >= kLeastPart)
        text += fmt::format("{}{} carries {:.0f} % of the change of {}", text.empty() ? "" : "; ",
                            printable(each->key), 100 * each->part, each->what);
      else if (!each->changed && ++others == 1)
        same = printable(each->key);
    }
    if (others == 1) text += fmt::format("; {} is unchanged", same);
    if (others > 1) text += fmt::format("; {} others are unchanged", others);
    out += text + ".\n";
    at = end;
  }
}

void number_or_null(JsonLine& line, std::string_view key, std::optional<double> value) {
  line.key(key);
  if (value)
    line.real(*value);
  else
    line.null();
}

void facts(JsonLine& line, std::string_view key, const Facts& f, double seconds,
           std::size_t recordings) {
  line.key(key).begin_object().text("host", f.host).text("kernel", f.kernel);
  line.key("seconds").real(seconds).number("recordings", recordings);
  line.number("kept", f.kept).number("lost", f.lost);
  for (auto& [name, value] : f.others) line.text(name, value);
  line.end_object();
}

/// The key of a line's unit: "ns", "/s", "ratio" or nothing.
std::string_view unit_of(const Line& line, const Comparison& c) {
  if (line.unit && line.kind == Kind::value) return line.unit->suffix;
  if (line.unit && line.kind == Kind::rate && line.unit->suffix == unit::ns.suffix) return "ns/s";
  return line.kind == Kind::rate ? "/s" : line.kind == Kind::share ? "ratio" : c.scale.unit.suffix;
}

const Line* find(const Comparison& c, const Condition& condition) {
  auto at = std::ranges::find_if(c.lines, [&](auto& line) {
    auto rate = condition.what == "rate" && line.kind == Kind::rate;
    return (line.what == condition.what || rate) && line.key == condition.key;
  });
  return at == c.lines.end() ? nullptr : &*at;
}

}  // namespace

std::string amount(double value, Unit unit) {
  struct Step {
    double size;
    std::string_view name;
  };
  static constexpr Step kTimes[] = {{1, "ns"}, {1e3, "us"}, {1e6, "ms"}, {1e9, "s"}};
  static constexpr Step kSizes[] = {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}};
  const bool times = unit.suffix == unit::ns.suffix;
  if (!times && unit.suffix != unit::bytes.suffix) return rate(value);
  const Step* step = times ? kTimes : kSizes;
  for (auto& next : times ? kTimes : kSizes)
    if (std::abs(value) >= 0.9995 * next.size) step = &next;
  return fmt::format("{} {}", digits(value / step->size), step->name);
}

std::string percent(double part) {
  if (part < kMostPercent) return fmt::format("{:+.1f} %", 100 * part);
  return part < 1e6 ? fmt::format("x {:.3g}", part + 1) : "x ?";
}

std::string in_text(const Comparison& c) {
  auto head =
      fmt::format("{}: before {}, after {}; {}", c.a.name, side(c.a, c.seconds_a, c.recordings_a),
                  side(c.b, c.seconds_b, c.recordings_b), lost(c));
  if (!c.different.empty()) head += "; different: " + joined(c.different);
  auto out = printable(head) + '\n';
  // Of keys, those that changed; the others are in JSON.
  std::size_t hidden = 0, same = 0, width = kName;
  std::vector<const Line*> shown_lines;
  std::map<std::string_view, std::size_t> rows_of;  // of functions, and of stacks
  double least = INFINITY, largest = 0;  // changes of the others that would have been seen
  for (auto& line : c.lines) {
    const bool plain = line.key.empty() || !(line.of_row || line.kind == Kind::rate);
    const auto most = c.whole.empty() ? kMostRows : kMostRowsOfStacks;
    auto& rows = rows_of[c.whole.empty() ? std::string_view() : line.what];
    if (!plain && (!changed(line) || rows >= most)) {
      (changed(line) ? hidden : same)++;
      if (line.smallest && line.a) {
        least = std::min(least, *line.smallest * *line.a);
        largest = std::max(largest, *line.smallest * *line.a);
      }
      continue;
    }
    rows += !plain;
    width = std::max(width, std::min<std::size_t>(printable(name_of(line, c.scale.unit)).size() + 1,
                                                  kWidestName));
    shown_lines.push_back(&line);
  }
  if (!c.whole.empty())
    std::ranges::stable_sort(shown_lines, {}, [](auto* line) {
      return !line->of_row ? 0 : line->what == "self/s" ? 1 : line->what == "total/s" ? 2 : 3;
    });
  out += fmt::format("{:<{}}{:>10}{:>11}{:>10}{:>18}{:>10}\n", "", width, "before", "after",
                     "change", "99 % sure", "seen from");
  for (auto* line : shown_lines) row(out, *line, c.scale.unit, width);
  const auto* keys = c.whole.empty() ? "keys" : "functions and stacks";
  if (hidden) out += fmt::format("{} more {} changed.\n", hidden, keys);
  if (same) out += fmt::format("{} {} without a change that is certain", same, keys);
  if (same && largest > 0 && !c.whole.empty()) {
    const auto unit = c.whole.ends_with("_ns") ? unit::ns : unit::plain;
    out += fmt::format("; seen would have been {} to {} per second", amount(least, unit),
                       amount(largest, unit));
  }
  if (same) out += ".\n";
  if (c.rare)
    out += fmt::format("{} {} {}.\n", c.rare, keys,
                       c.whole.empty() ? "with too few events to compare"
                                       : "with less than 0.5 % or too few events");
  contributions(out, c);
  return out;
}

std::string in_json(const Comparison& c) {
  JsonLine head("comparison", c.a.name);
  facts(head, "before", c.a, c.seconds_a, c.recordings_a);
  facts(head, "after", c.b, c.seconds_b, c.recordings_b);
  head.texts("different", c.different).boolean("paired", c.paired).number("rare_keys", c.rare);
  auto out = std::string(head.finish()) + '\n';
  for (auto& line : c.lines) {
    JsonLine json("change", c.a.name);
    json.text("what", line.what).text("key", line.key).text("unit", unit_of(line, c));
    if (line.what == "above") json.key("bound").real(line.bound);
    number_or_null(json, "a", line.a);
    number_or_null(json, "b", line.b);
    if (line.kind == Kind::range) {
      json.key("a_below").real(line.a_below);
      json.key("b_below").real(line.b_below);
    }
    number_or_null(json, "change", line.change);
    number_or_null(json, "low", line.low);
    number_or_null(json, "high", line.high);
    number_or_null(json, "p", line.p);
    number_or_null(json, "smallest", line.smallest);
    json.key("contribution").real(line.contribution);
    json.text("verdict", word_of(line.verdict));
    out += std::string(json.finish()) + '\n';
  }
  for (auto& each : c.contributions) {
    JsonLine json("contribution", c.a.name);
    json.text("what", each.what).text("key", each.key).key("part").real(each.part);
    json.boolean("changed", each.changed);
    out += std::string(json.finish()) + '\n';
  }
  return out;
}

std::string in_csv(const Comparison& c) {
  std::string out = "what,key,unit,bound,a,b,change,low,high,p,smallest,verdict\n";
  auto number = [](std::optional<double> v) {
    return v && std::isfinite(*v) ? fmt::format("{:.6g}", *v) : std::string();
  };
  for (auto& l : c.lines)
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{},{}\n", csv_field(l.what), csv_field(l.key),
                       unit_of(l, c), l.what == "above" ? number(l.bound) : "", number(l.a),
                       number(l.b), number(l.change), number(l.low), number(l.high), number(l.p),
                       number(l.smallest), word_of(l.verdict));
  return out;
}

std::string in_text(const Plan& p) {
  auto out =
      fmt::format("{}: from {:.0f} s, for two recordings of the same load\n{:<{}}{:>12}{:>20}\n",
                  printable(p.facts.name), p.seconds, "", kName, "seen from",
                  fmt::format("{} needs", percent(p.change)));
  for (auto& line : p.lines) {
    auto time = line.seconds < 600 ? fmt::format("{:.0f} s", std::ceil(line.seconds))
                                   : fmt::format("{:.0f} min", std::ceil(line.seconds / 60));
    out += fmt::format("{:<{}}{:>12}{:>20}\n", line.what, kName,
                       fmt::format("{:.1f} %", 100 * line.smallest), "2 x " + time);
  }
  return out;
}

std::string in_json(const Plan& p) {
  std::string out;
  for (auto& line : p.lines) {
    JsonLine json("plan", p.facts.name);
    json.text("what", line.what).key("smallest").real(line.smallest);
    json.key("change").real(p.change).key("seconds").real(line.seconds);
    out += std::string(json.finish()) + '\n';
  }
  return out;
}

Result<Condition> condition_in(std::string_view text) {
  auto trim = [](std::string_view s) {
    while (s.starts_with(' ')) s.remove_prefix(1);
    while (s.ends_with(' ')) s.remove_suffix(1);
    return s;
  };
  auto refused = [&](std::string_view why) {
    return usage(fmt::format("'{}': {}", text, why),
                 "write WHAT [of KEY=VALUE] > N%, such as 'p99 > +10%' or 'events/s < -5%'");
  };
  // Keys may contain these characters: the last one decides.
  const auto at = text.find_last_of("<>");
  if (at == text.npos) return refused("has no < or >");
  Condition c{.text = std::string(trim(text)), .above = text[at] == '>'};
  auto left = trim(text.substr(0, at)), right = trim(text.substr(at + 1));
  if (auto of = left.find(" of "); of != left.npos) {
    c.key = trim(left.substr(of + 4));
    left = trim(left.substr(0, of));
    if (c.key.find('=') == std::string::npos) return refused("a key is NAME=VALUE");
  }
  c.what = left;
  if (!share_of_percentile(left) && left != "mean" && left != "max" && left != "rate" &&
      left != "share" && left != "lost" && !left.starts_with("mean ") &&
      !(left.size() > 2 && left.ends_with("/s")))
    return refused("compares p50, p90, p99, p99.9, mean, max, events/s, rate, share or lost");
  if (left == "share" && c.key.empty()) return refused("the share of a key: share of KEY=VALUE");
  if (left == "rate" && c.key.empty()) c.what = "rate";
  auto number = right;
  if (number.starts_with('+')) number.remove_prefix(1);
  auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), c.limit);
  if (error != std::errc() || !std::isfinite(c.limit)) return refused("has no number");
  auto unit = trim(number.substr(static_cast<std::size_t>(end - number.data())));
  if (unit == "%") {
    c.limit /= 100;
    return c;
  }
  c.of = Condition::amount;
  const bool rates = c.what == "rate" || c.what.ends_with("/s");
  if (c.what == "share" || c.what == "lost") return refused("is a share: give the limit in %");
  static constexpr std::pair<std::string_view, double> kUnits[] = {
      {"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"/s", 1}};
  auto known = std::ranges::find(kUnits, unit, [](auto& u) { return u.first; });
  if (known == std::end(kUnits) || (unit == "/s") != (rates && !unit.empty()))
    return refused("has an unknown unit; there are %, ns, us, ms, s and /s");
  c.limit *= known->second;
  return c;
}

Answer answer(const Condition& condition, const Comparison& c) {
  Answer a;
  auto say = [&](std::string_view words) {
    constexpr std::string_view kWords[] = {"holds", "does not hold", "undecided"};
    a.text = fmt::format("{}: {} ({})", printable(condition.text), kWords[a.is], words);
    return a;
  };
  auto beyond = [&](double v) {
    return condition.above ? v > condition.limit : v < condition.limit;
  };
  if (condition.what == "lost") {
    const auto share = c.b.lost_share();
    a.is = beyond(share) ? Answer::holds : Answer::not_so;
    return say(fmt::format("{:.3g} %", 100 * share));
  }
  auto* line = find(c, condition);
  if (!line) return say("there is no such value");
  // Without a range, only the change as it was measured.
  const bool one_value = line->what == "max" && line->change;
  if (!line->low && !one_value) {
    if (line->verdict == Verdict::same) return say("too few events");
    auto words = words_of(*line);
    return say(words.empty() ? "no range is known" : words);
  }
  auto scaled = [&](double part) {
    return condition.of == Condition::parts ? part : part * *line->a;
  };
  auto shown = [&](double part) {
    if (condition.of == Condition::parts) return percent(part);
    const auto v = scaled(part);
    auto text = line->kind == Kind::rate ? digits(v) + " /s" : amount(v, c.scale.unit);
    return (v >= 0 ? "+" : "") + text;
  };
  const auto low = one_value ? *line->change : *line->low;
  const auto high = one_value ? *line->change : *line->high;
  const bool first = beyond(scaled(low)), last = beyond(scaled(high));
  a.is = first && last ? Answer::holds : first || last ? Answer::undecided : Answer::not_so;
  if (one_value) return say(shown(*line->change) + ", one value");
  if (a.is == Answer::undecided)
    return say(fmt::format("{}, {}..{}", shown(*line->change), shown(low), shown(high)));
  // The end of the range that is nearest to the limit.
  const bool least = condition.above == (a.is == Answer::holds);
  return say(fmt::format("{}, at {} {}", shown(*line->change), least ? "least" : "most",
                         shown(least ? low : high)));
}

std::string in_json(const Condition& condition, const Answer& answer) {
  constexpr std::string_view kWords[] = {"holds", "does_not_hold", "undecided"};
  JsonLine json;
  json.text("type", "condition").text("condition", condition.text);
  json.text("answer", kWords[answer.is]).text("text", answer.text);
  return std::string(json.finish()) + '\n';
}

}  // namespace coretap::compare
