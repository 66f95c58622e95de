#include "compare/comparison.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <tuple>

#include <fmt/format.h>

namespace coretap::compare {

namespace {

using Verdict = Line::Verdict;
using Kind = Line::Kind;

constexpr std::string_view kPercentiles[] = {"p50", "p90", "p99"};

/// Counts by interval, in the order of time; their variance and correlation without keeping them.
class Sequence {
 public:
  void add(std::size_t interval, double n) {
    if (interval != at_) {
      previous_ = interval == at_ + 1 ? current_ : 0;
      current_ = 0;
      at_ = interval;
    }
    squares_ += (2 * current_ + n) * n;
    products_ += n * previous_;
    current_ += n;
    sum_ += n;
    if (!interval) first_ += n;
  }
  /// Of the logarithm of the mean, for this number of intervals.
  void take(Estimate& e, std::size_t intervals) const {
    const auto n = static_cast<double>(intervals), mean = sum_ / n;
    const auto spread = squares_ - n * mean * mean;
    if (spread <= 0 || intervals < 2) return;
    const auto ends = first_ + (at_ + 1 == intervals ? current_ : 0);
    e.interval_lag = (products_ + mean * (ends - (n + 1) * mean)) / spread;
    e.interval_variance = spread / (n - 1) / n / (mean * mean);
    e.intervals = intervals;
  }

 private:
  std::size_t at_ = 0;
  double current_ = 0, previous_ = 0, squares_ = 0, products_ = 0, sum_ = 0, first_ = 0;
};

/// A histogram of one side: all of it, and its parts, which are groups of intervals or recordings.
struct Side {
  Sums all;
  std::vector<Sums> parts;
  std::vector<Sums> without;  ///< each of these groups
  std::vector<double> lost;   ///< share in each recording
  /// Of one recording, by interval.
  std::vector<std::pair<double, std::vector<const Histogram*>>> intervals;
  Sequence sequence;                    ///< the same of a single number
  std::size_t number_of_intervals = 0;  ///< of that
  double largest = 0;
  bool recordings = false;

  /// Sets `all` and `without` from the parts.
  void add_up() {
    all = {};
    without.clear();
    for (auto& part : parts) all.add(part);
    if (recordings) return;
    for (auto& part : parts) {
      without.push_back(all);
      without.back().add(part, -1);
    }
  }
};

/// A value of some counts: its logarithm, or that of its bounds if a share of all events was lost.
struct Measure {
  std::function<double(const Sums&, double lost)> value;
  std::function<std::pair<double, double>(const Sums&, double lost)> bounds;
  std::function<Verdict(const Sums&, double lost)> trouble;  ///< same: none
  std::function<double(const Sums&)> least = [](auto&) { return 0.0; };
};

double log_of(double v) { return std::log(std::max(v, 1e-300)); }

/// The variance that independent values would give: half the distance between the ranks one
/// standard error off.
double variance_of_rank(const Sums& s, const Buckets& buckets, double share) {
  const auto error = std::sqrt(share * (1 - share) / std::max(s.count, 1.0));
  const auto half = (log_of(percentile(s, buckets, share + error)) -
                     log_of(percentile(s, buckets, share - error))) /
                    2;
  return half * half;
}

Measure percentile_of(const Buckets& buckets, double share) {
  auto value = [=](const Sums& s, double at) { return log_of(percentile(s, buckets, at)); };
  return {
      .value = [=](auto& s, double) { return value(s, share); },
      .bounds =
          [=](auto& s, double lost) {
            return std::pair{value(s, (share - lost) / (1 - lost)), value(s, share / (1 - lost))};
          },
      .trouble =
          [=](auto& s, double lost) {
            if (s.count * std::min(share, 1 - share) < kLeastEvents) return Verdict::few;
            return lost >= std::min(share, 1 - share) ? Verdict::lost : Verdict::same;
          },
      .least = [=](auto& s) { return variance_of_rank(s, buckets, share); }};
}

Measure share_from(std::uint32_t bucket) {
  return {.value = [=](auto& s, double) { return log_of(share_above(s, bucket)); },
          .bounds =
              [=](auto& s, double lost) {
                auto kept = share_above(s, bucket) * (1 - lost);
                return std::pair{log_of(kept), log_of(kept + lost)};
              },
          .trouble =
              [=](auto& s, double) {
                auto above = share_above(s, bucket);
                return s.count * std::min(above, 1 - above) < kLeastEvents ? Verdict::few
                                                                           : Verdict::same;
              },
          .least =
              [=](auto& s) {
                auto above = share_above(s, bucket);
                return (1 - above) / (above * std::max(s.count, 1.0));
              }};
}

Measure mean_value() {
  auto value = [](auto& s, double) { return log_of(s.total / std::max(s.count, 1.0)); };
  return {.value = value,
          .bounds =
              [=](auto& s, double lost) {
                return std::pair{value(s, lost), value(s, lost)};
              },
          .trouble =
              [](auto& s, double lost) {
                if (s.count < kLeastEvents || s.total <= 0) return Verdict::few;
                return lost > 0 ? Verdict::lost : Verdict::same;
              }};
}

/// Lost events are known by number, so the rate of all is exact.
Measure rate_of_all() {
  auto value = [](auto& s, double lost) { return log_of(s.count / s.seconds / (1 - lost)); };
  return {.value = value,
          .bounds =
              [=](auto& s, double lost) {
                return std::pair{value(s, lost), value(s, lost)};
              },
          .trouble = [](auto& s,
                        double) { return s.count < kLeastEvents ? Verdict::few : Verdict::same; },
          .least = [](auto& s) { return 1 / std::max(s.count, 1.0); }};
}

Side side_of(const std::vector<Series>& all, const std::optional<std::string>& key) {
  Side side;
  side.recordings = all.size() > 1;
  side.parts.resize(side.recordings ? all.size() : kGroups);
  for (std::size_t r = 0; r < all.size(); r++) {
    auto& series = all[r];
    side.lost.push_back(series.facts.lost_share());
    for (std::size_t g = 0; g < kGroups; g++) {
      auto& part = side.parts[side.recordings ? r : g];
      for (auto i = group_begin(g, series.intervals.size());
           i < group_begin(g + 1, series.intervals.size()); i++) {
        part.seconds += series.intervals[i].seconds;
        if (!side.recordings) side.intervals.push_back({series.intervals[i].seconds, {}});
        for (auto& [name, h] : series.intervals[i].histograms) {
          if (key && series.names[name].key != *key) continue;
          part.add(h);
          if (!side.recordings) side.intervals.back().second.push_back(&h);
          side.largest = std::max(side.largest, static_cast<double>(h.largest));
        }
      }
    }
  }
  side.add_up();
  return side;
}

/// Of the value without each interval. Most intervals of rare events are empty, and as long as the
/// one before: the value without one is that without the other.
void take_intervals(Estimate& e, const Side& side, const Measure& measure) {
  std::vector<double> without;
  without.reserve(side.intervals.size());
  auto rest = side.all;
  double empty_seconds = -1;  // of the interval before; -1: it has events
  for (auto& [seconds, histograms] : side.intervals) {
    const bool same = histograms.empty() && seconds == empty_seconds;
    empty_seconds = histograms.empty() ? seconds : -1;
    if (same) {
      without.push_back(without.back());
      continue;
    }
    for (auto sign : {-1.0, 1.0}) {
      rest.seconds += sign * seconds;
      for (auto* h : histograms) rest.add(*h, sign);
      if (sign < 0) without.push_back(measure.value(rest, side.lost[0]));
    }
  }
  if (without.size() < 2) return;
  const auto of = jackknife(e.value, without);
  e.interval_lag = of.lag;
  e.interval_variance = of.variance;
  e.intervals = without.size();
}

Estimate estimate(const Side& side, const Measure& measure) {
  std::vector<double> values;
  if (!side.recordings) {
    const auto lost = side.lost[0];
    for (auto& s : side.without) values.push_back(measure.value(s, lost));
    auto e = jackknife(measure.value(side.all, lost), values);
    e.least = measure.least(side.all);
    if (side.number_of_intervals)
      side.sequence.take(e, side.number_of_intervals);
    else
      take_intervals(e, side, measure);
    if (lost > 0) std::tie(e.low, e.high) = measure.bounds(side.all, lost);
    return e;
  }
  double down = 0, up = 0;
  for (std::size_t i = 0; i < side.parts.size(); i++) {
    values.push_back(measure.value(side.parts[i], side.lost[i]));
    auto [low, high] = measure.bounds(side.parts[i], side.lost[i]);
    down += values.back() - low;
    up += high - values.back();
  }
  auto e = from_recordings(values);
  const auto n = static_cast<double>(values.size());
  e.least = measure.least(side.all);
  e.low = e.value - down / n;
  e.high = e.value + up / n;
  return e;
}

/// The first trouble of a side.
Verdict trouble(const Side& side, const Measure& measure) {
  if (!side.recordings) return measure.trouble(side.all, side.lost[0]);
  for (std::size_t i = 0; i < side.parts.size(); i++)
    if (auto v = measure.trouble(side.parts[i], side.lost[i]); v != Verdict::same) return v;
  return Verdict::same;
}

Difference test(const Side& a, const Side& b, const Measure& measure, bool pairs) {
  const auto ea = estimate(a, measure), eb = estimate(b, measure);
  if (!pairs) return difference(ea, eb, a.recordings || b.recordings ? 0 : kGroups);
  std::vector<double> each;
  for (std::size_t i = 0; i < a.parts.size(); i++)
    each.push_back(measure.value(b.parts[i], b.lost[i]) - measure.value(a.parts[i], a.lost[i]));
  return paired(each, (ea.high - ea.low) + (eb.high - eb.low));
}

void take(Line& line, const Difference& d) {
  line.change = std::expm1(d.change);
  line.low = std::expm1(d.low);
  line.high = std::expm1(d.high);
  line.smallest = std::expm1(d.smallest);
  line.p = d.p;
  line.verdict = Verdict::same;
}

struct Sides {
  Side a, b;
};

class Comparing {
 public:
  Comparing(const std::vector<Series>& a, const std::vector<Series>& b, const Choices& choices)
      : a_(a), b_(b), choices_(choices), buckets_(a[0].buckets) {}

  Comparison run() {
    Comparison c{.a = a_[0].facts,
                 .b = b_[0].facts,
                 .recordings_a = a_.size(),
                 .recordings_b = b_.size(),
                 .paired = choices_.paired,
                 .scale = buckets_.scale};
    total(c.a, a_, c.seconds_a);
    total(c.b, b_, c.seconds_b);
    facts(c);
    few_ = std::ranges::any_of(a_, too_short) || std::ranges::any_of(b_, too_short);
    if (std::ranges::any_of(a_, has_histograms) || std::ranges::any_of(b_, has_histograms))
      histograms();
    rows(c);
    judge();
    if (all_) contributions(c);
    c.lines = std::move(lines_);
    return c;
  }

 private:
  static bool too_short(const Series& s) { return s.intervals.size() < kLeastIntervals; }
  static bool has_histograms(const Series& s) {
    return std::ranges::any_of(s.intervals, [](auto& i) { return !i.histograms.empty(); });
  }
  static void total(Facts& facts, const std::vector<Series>& all, double& seconds) {
    facts.lost = facts.kept = 0;
    for (auto& s : all) {
      facts.lost += s.facts.lost;
      facts.kept += s.facts.kept;
      seconds += s.seconds() / static_cast<double>(all.size());
    }
  }

  void facts(Comparison& c) const {
    std::map<std::string, std::set<std::string>> values;
    std::vector<std::string> order{"host", "kernel"};
    for (auto* side : {&a_, &b_})
      for (auto& s : *side) {
        values["host"].insert(s.facts.host);
        values["kernel"].insert(s.facts.kernel);
        for (auto& [name, value] : s.facts.others) {
          if (std::ranges::find(order, name) == order.end()) order.push_back(name);
          values[name].insert(value);
        }
      }
    for (auto& name : order)
      if (values[name].size() > 1) c.different.push_back(name);
  }

  /// Recordings are independent; groups of one are only if there are enough intervals.
  bool too_few() const { return few_ && a_.size() == 1 && b_.size() == 1; }

  void tested(Line line, const Sides& sides, const Measure& measure,
              const std::function<double(double)>& shown) {
    // A logarithm of something that never happened has no meaning.
    if (sides.a.all.count > 0) line.a = shown(estimate(sides.a, measure).value);
    if (sides.b.all.count > 0) line.b = shown(estimate(sides.b, measure).value);
    line.verdict = too_few() ? Verdict::few : trouble(sides.a, measure);
    if (line.verdict == Verdict::same) line.verdict = trouble(sides.b, measure);
    if (line.verdict == Verdict::same) take(line, test(sides.a, sides.b, measure, choices_.paired));
    lines_.push_back(std::move(line));
  }

  static double plain(double logarithm) { return std::exp(logarithm); }

  void percentile_line(const std::string& what, const std::string& key, const Sides& sides) {
    const auto share = *share_of_percentile(what);
    if (buckets_.kind == Buckets::fine)
      return tested({.what = what, .key = key}, sides, percentile_of(buckets_, share), plain);
    Line line{.what = what, .key = key, .kind = Kind::range};
    auto range = [&](const Side& side, std::optional<double>& from, double& below) {
      if (side.all.count <= 0) return;
      const auto at = bucket_at(side.all, share);
      from = buckets_.from(at);
      below = buckets_.below(at);
    };
    range(sides.a, line.a, line.a_below);
    range(sides.b, line.b, line.b_below);
    lines_.push_back(std::move(line));
  }

  static std::uint32_t bucket_at(const Sums& sums, double share) {
    double before = 0;
    for (std::uint32_t i = 0; i < sums.counts.size(); i++)
      if ((before += sums.counts[i]) >= share * sums.count && before > 0) return i;
    return 0;
  }

  /// Shares above bounds are exact also where buckets are wide: those nearest to percentiles.
  void shares(const Sides& sides) {
    auto both = sides.a.all;
    both.add(sides.b.all);
    std::set<std::uint32_t> bounds;
    for (auto what : kPercentiles) {
      const auto share = 1 - *share_of_percentile(what);
      std::uint32_t best = 0;
      double distance = INFINITY;
      for (std::uint32_t i = 1; i < both.counts.size(); i++)
        if (auto d = std::abs(std::log(share_above(both, i) / share)); d < distance)
          best = i, distance = d;
      if (best) bounds.insert(best);
    }
    for (auto bound : bounds)
      tested({.what = "above", .kind = Kind::share, .bound = buckets_.from(bound)}, sides,
             share_from(bound), plain);
  }

  void largest(const std::string& key, const Sides& sides) {
    if (sides.a.largest <= 0 || sides.b.largest <= 0) return;
    lines_.push_back({.what = "max",
                      .key = key,
                      .a = sides.a.largest,
                      .b = sides.b.largest,
                      .change = sides.b.largest / sides.a.largest - 1});
  }

  void rate(const std::string& key, const Sides& sides) {
    tested({.what = "events/s", .key = key, .kind = Kind::rate}, sides, rate_of_all(), plain);
  }

  void histograms() {
    all_.emplace(Sides{side_of(a_, {}), side_of(b_, {})});
    for (auto what : kPercentiles) percentile_line(std::string(what), {}, *all_);
    if (buckets_.kind == Buckets::slots) shares(*all_);
    largest({}, *all_);
    rate({}, *all_);
    for (auto& name : choices_.wanted) {
      const auto& [what, key] = name;
      auto has = [&name](auto& l) { return l.what == name.what && l.key == name.key; };
      if (std::ranges::any_of(lines_, has)) continue;
      const bool events = what == "events/s" || (what == "rate" && !key.empty());
      if (what != "mean" && what != "max" && !events && !share_of_percentile(what)) continue;
      const auto by_key = key.empty() ? std::optional<Sides>{} : sides(key);
      auto& of = by_key ? *by_key : *all_;
      if (what == "max")
        largest(key, of);
      else if (events)
        rate(key, of);
      else if (what == "mean")
        tested({.what = what, .key = key}, of, mean_value(), plain);
      else
        percentile_line(what, key, of);
    }
  }

  std::optional<Sides> sides(const std::string& key) const {
    return Sides{side_of(a_, key), side_of(b_, key)};
  }

  /// Counts of a key on one side, by part.
  struct Row {
    std::vector<double> parts;
    Sequence sequence;
    double sum = 0;
  };
  struct Rows {
    std::map<Name, Row> rows;
    std::map<std::string, Row> all;  ///< by what is counted
    std::map<Name, double> events;   ///< Series::events
    std::vector<double> seconds, lost;
    double duration = 0;
    std::size_t intervals = 0;  ///< of one recording
    bool recordings = false;
  };

  static Rows rows_of(const std::vector<Series>& all) {
    Rows r{.recordings = all.size() > 1};
    if (!r.recordings) r.intervals = all[0].intervals.size();
    r.seconds.resize(r.recordings ? all.size() : kGroups);
    for (std::size_t at = 0; at < all.size(); at++) {
      auto& s = all[at];
      r.lost.push_back(s.facts.lost_share());
      std::vector<Row*> rows(s.names.size()), totals(s.names.size());
      for (std::size_t n = 0; n < s.events.size(); n++)
        if (s.events[n]) {
          r.events[s.names[n]] += static_cast<double>(s.events[n]);
          r.events[{s.names[n].what, {}}] +=
              s.names[n].key.empty() ? 0 : static_cast<double>(s.events[n]);
        }
      for (std::size_t g = 0; g < kGroups; g++) {
        const auto part = r.recordings ? at : g;
        for (auto i = group_begin(g, s.intervals.size());
             i < group_begin(g + 1, s.intervals.size()); i++) {
          r.seconds[part] += s.intervals[i].seconds;
          for (auto& [name, n] : s.intervals[i].counts) {
            if (!rows[name]) {
              rows[name] = &r.rows[s.names[name]];
              totals[name] = &r.all[s.names[name].what];
            }
            for (auto* row : {rows[name], totals[name]}) {
              row->parts.resize(r.seconds.size());
              row->parts[part] += static_cast<double>(n);
              row->sum += static_cast<double>(n);
              if (!r.recordings) row->sequence.add(i, static_cast<double>(n));
            }
          }
        }
      }
    }
    for (auto s : r.seconds) r.duration += s;
    return r;
  }

  /// As sums with a single number; of sums, `total` is the number of events.
  static Side row_side(const Rows& rows, const Row* row, const Name& name = {}) {
    Side side{.lost = rows.lost, .recordings = rows.recordings};
    if (row) side.sequence = row->sequence;
    if (row) side.number_of_intervals = rows.intervals;
    for (std::size_t i = 0; i < rows.seconds.size(); i++)
      side.parts.push_back({.count = row ? row->parts[i] : 0, .seconds = rows.seconds[i]});
    if (auto sum = rows.events.find(name); row && sum != rows.events.end())
      side.parts[0].total = sum->second;
    side.add_up();
    return side;
  }
  static double events_of(const Sums& s) { return s.total > 0 ? s.total : s.count; }

  /// Of a key lost events may have been any number up to all that were lost.
  static Measure rate_of_key(const Rows& a, const Rows& b) {
    auto value = [](auto& s, double) { return log_of(s.count / s.seconds); };
    auto of_all = [](const Rows& r) {
      double sum = 0;
      for (auto& [what, row] : r.all) sum = std::max(sum, row.sum);
      return r.duration > 0 ? sum / r.duration : 0;
    };
    const auto most = std::max(of_all(a), of_all(b));
    return {.value = value,
            .bounds =
                [=](auto& s, double lost) {
                  const auto rate = s.count / s.seconds;
                  return std::pair{log_of(rate), log_of(rate + most * lost / (1 - lost))};
                },
            .trouble = [](auto&, double) { return Verdict::same; },
            .least = [](auto& s) { return 1 / std::max(events_of(s), 1.0); }};
  }

  /// The logarithm has no meaning for few events: the test is of the difference of the rates.
  static Difference few_events(const Side& a, const Side& b, bool pairs) {
    const Measure rate{.value = [](auto& s, double) { return s.count / s.seconds; },
                       .bounds =
                           [](auto& s, double lost) {
                             const auto r = s.count / s.seconds;
                             return std::pair{r, r / (1 - lost)};
                           },
                       .trouble = [](auto&, double) { return Verdict::same; },
                       .least =
                           [](auto& s) {
                             const auto n = std::max(s.count, 1.0) / s.seconds;
                             return s.total > 0 ? n * n / s.total : n / s.seconds;
                           }};
    auto without = [](Side side) {
      side.number_of_intervals = 0;  // those are of the logarithm
      return side;
    };
    return test(without(a), without(b), rate, pairs);
  }

  void row_line(Line line, const Side& a, const Side& b, const Measure& measure) {
    line.a = a.all.seconds > 0 ? a.all.count / a.all.seconds : 0;
    line.b = b.all.seconds > 0 ? b.all.count / b.all.seconds : 0;
    line.gone_or_new = a.all.count <= 0 || b.all.count <= 0;
    auto each = [](const Side& s) {
      return !s.recordings || std::ranges::all_of(s.parts, [](auto& p) { return p.count > 0; });
    };
    if (too_few()) {
      line.verdict = Verdict::few;
    } else if (std::min(events_of(a.all), events_of(b.all)) >= kLeastEvents &&
               std::min(a.all.count, b.all.count) > 0 && each(a) && each(b)) {
      take(line, test(a, b, measure, choices_.paired));
    } else {
      auto d = few_events(a, b, choices_.paired);
      line.p = d.p;
      line.verdict = Verdict::same;
      if (*line.a > 0) line.change = *line.b / *line.a - 1;
    }
    lines_.push_back(std::move(line));
  }

  void rows(Comparison& c) {
    const auto a = rows_of(a_), b = rows_of(b_);
    if (a.rows.empty() && b.rows.empty()) return;
    static const Row kNone;
    auto find = [](auto& rows, auto& name) {
      auto at = rows.find(name);
      return at == rows.end() ? nullptr : &at->second;
    };
    std::set<std::string> whats;
    std::set<Name> names;
    for (auto* side : {&a, &b}) {
      for (auto& [what, row] : side->all) whats.insert(what);
      for (auto& [name, row] : side->rows) names.insert(name);
    }
    const auto of_key = rate_of_key(a, b), of_all = rate_of_all();
    // Functions and stacks contain each other: only their whole is a sum of all.
    c.whole = a_[0].whole;
    const bool stacks = !c.whole.empty();
    std::map<std::string, double> changes, largest;
    for (auto& what : whats) {
      if (stacks && what != c.whole) continue;
      Line line{.what = what + "/s", .kind = Kind::rate, .unit = unit_of(what)};
      auto known = std::ranges::find_if(
          lines_, [&](auto& l) { return l.what == line.what && l.key.empty(); });
      const auto at = known - lines_.begin();
      if (known == lines_.end())
        row_line(std::move(line), row_side(a, find(a.all, what), {what, {}}),
                 row_side(b, find(b.all, what), {what, {}}), of_all);
      auto& made = lines_[static_cast<std::size_t>(at)];
      const auto before = made.a.value_or(0), after = made.b.value_or(0);
      changes[what] = std::abs(after - before);
      largest[what] = std::max(before, after);
    }
    const auto first = lines_.size();
    for (auto& name : names) {
      if (name.key.empty()) continue;
      auto *ra = find(a.rows, name), *rb = find(b.rows, name);
      const Wanted wanted{name.what + "/s", name.key};
      const bool asked = std::ranges::any_of(choices_.wanted, [&](auto& w) {
        return w == wanted || (w.what == "rate" && w.key == wanted.key);
      });
      auto events_in = [&](const Rows& rows, const Row* row) {
        const auto sum = rows.events.find(name);
        return !row ? 0 : sum == rows.events.end() ? row->sum : sum->second;
      };
      const auto part = std::max(ra ? ra->sum / a.duration : 0, rb ? rb->sum / b.duration : 0) /
                        std::max(largest[c.whole], 1e-300);
      if ((std::max(events_in(a, ra), events_in(b, rb)) < kLeastEvents ||
           (stacks && part < kLeastPartOfStacks)) &&
          !asked) {
        c.rare++;
        continue;
      }
      Line line{.what = wanted.what, .key = name.key, .kind = Kind::rate, .of_row = true};
      line.unit = unit_of(stacks ? c.whole : name.what);
      row_line(std::move(line), row_side(a, ra, name), row_side(b, rb, name), of_key);
      auto& made = lines_.back();
      const auto of = stacks ? largest[c.whole] : changes[name.what];
      if (of > 0) made.contribution = std::abs(*made.b - *made.a) / of;
    }
    std::sort(
        lines_.begin() + static_cast<std::ptrdiff_t>(first), lines_.end(), [](auto& x, auto& y) {
          return std::tie(y.contribution, x.what, x.key) < std::tie(x.contribution, y.what, y.key);
        });
    means();
    for (auto& [what, key] : choices_.wanted)
      if (what == "share") share_of(key, a, b);
  }

  static std::optional<Unit> unit_of(std::string_view what) {
    if (what.ends_with("_ns")) return unit::ns;
    if (what.ends_with("bytes")) return unit::bytes;
    return unit::plain;
  }

  /// By key: the events and sums of each interval.
  using Means = std::map<std::string, std::map<std::size_t, Histogram>>;

  static std::vector<Means> means_of(const std::vector<Series>& all, const std::string& sum,
                                     const std::string& of) {
    std::vector<Means> made(all.size());
    for (std::size_t r = 0; r < all.size(); r++)
      for (std::size_t i = 0; i < all[r].intervals.size(); i++)
        for (auto& [number, n] : all[r].intervals[i].counts) {
          auto& name = all[r].names[number];
          if (name.what != sum && name.what != of) continue;
          for (auto key : {std::string_view(), std::string_view(name.key)}) {
            auto& h = made[r][std::string(key)][i];
            if (name.what == sum)
              h.total += n;
            else
              h.counts.emplace_back(0, n);
            if (name.key.empty()) break;
          }
        }
    return made;
  }

  static Side mean_side(const std::vector<Series>& all, const std::vector<Means>& means,
                        const std::string& key) {
    Side side{.recordings = all.size() > 1};
    side.parts.resize(side.recordings ? all.size() : kGroups);
    static const std::map<std::size_t, Histogram> kNone;
    for (std::size_t r = 0; r < all.size(); r++) {
      const auto found = means[r].find(key);
      auto& by_interval = found == means[r].end() ? kNone : found->second;
      side.lost.push_back(all[r].facts.lost_share());
      const auto count = all[r].intervals.size();
      for (std::size_t g = 0; g < kGroups; g++)
        for (auto i = group_begin(g, count); i < group_begin(g + 1, count); i++) {
          auto& part = side.parts[side.recordings ? r : g];
          const auto seconds = all[r].intervals[i].seconds;
          part.seconds += seconds;
          if (!side.recordings) side.intervals.push_back({seconds, {}});
          const auto h = by_interval.find(i);
          if (h == by_interval.end()) continue;
          part.add(h->second);
          if (!side.recordings) side.intervals.back().second.push_back(&h->second);
        }
    }
    side.add_up();
    return side;
  }

  /// Sums per event, of everything and of keys with many events.
  void means() {
    auto all = a_[0].means;
    for (auto& each : b_[0].means) all.insert(each);
    for (auto& [sum, of] : all) {
      const auto a = means_of(a_, sum, of), b = means_of(b_, sum, of);
      std::set<std::string> keys{std::string()};
      for (auto& line : lines_)
        if (line.what == sum + "/s" && line.low) keys.insert(line.key);
      for (auto& key : keys) {
        Line line{.what = "mean " + sum, .key = key, .of_row = !key.empty()};
        line.unit = unit_of(sum);
        tested(std::move(line), {mean_side(a_, a, key), mean_side(b_, b, key)}, mean_value(),
               plain);
      }
    }
  }

  /// The share that a key has of everything: its counts above the first bucket, all others in it.
  void share_of(const std::string& key, const Rows& a, const Rows& b) {
    auto split = [&](const Rows& rows) {
      Side side = row_side(rows, nullptr);
      for (auto& [name, row] : rows.rows)
        for (std::size_t i = 0; i < row.parts.size(); i++) {
          if (name.what != rows.rows.begin()->first.what) continue;
          auto& part = side.parts[i];
          part.counts.resize(2);
          part.counts[name.key == key] += row.parts[i];
          part.count += row.parts[i];
        }
      side.add_up();
      return side;
    };
    tested({.what = "share", .key = key, .kind = Kind::share}, {split(a), split(b)}, share_from(1),
           plain);
  }

  void judge() {
    std::vector<double> p;
    for (auto& line : lines_)
      if (line.p) p.push_back(*line.p);
    holm(p);
    auto next = p.begin();
    for (auto& line : lines_) {
      if (!line.p) continue;
      line.p = *next++;
      // Of functions and stacks the size of a change is its part of everything.
      const bool stacks = line.of_row && !a_[0].whole.empty();
      const auto size = stacks        ? line.contribution
                        : line.change ? std::abs(*line.change)
                                      : INFINITY;
      const auto least =
          stacks ? std::min(choices_.at_least, kLeastPartOfStacks) : choices_.at_least;
      if (*line.p < 1 - kSure && size >= least)
        line.verdict = *line.b > *line.a ? Verdict::more : Verdict::less;
    }
  }

  /// Of each key to a change of all keys together: the mean of the change that it makes as the
  /// first one and of the change that it makes as the last one.
  void contributions(Comparison& c) const {
    std::set<std::string> keys;
    for (auto* side : {&a_, &b_})
      for (auto& s : *side)
        for (auto& interval : s.intervals)
          for (auto& [name, h] : interval.histograms) keys.insert(s.names[name].key);
    if (keys.size() < 2 || keys.size() > kMostKeys) return;
    auto per_second = [](const Sums& sums) {
      Sums all;
      all.add(sums, 1 / sums.seconds);
      return all;
    };
    const auto before = per_second(all_->a.all), after = per_second(all_->b.all);
    std::vector<std::pair<std::string, Sides>> parts;
    for (auto& line : lines_) {
      if (!line.key.empty() || (line.verdict != Verdict::more && line.verdict != Verdict::less))
        continue;
      auto measure = measure_of(line);
      if (!measure) continue;
      auto value = [&](const Sums& sums) {
        return line.kind == Kind::rate ? sums.count : measure->value(sums, 0);
      };
      const auto change = value(after) - value(before);
      std::vector<Contribution> all;
      if (parts.empty())
        for (auto& key : keys) parts.emplace_back(key, *sides(key));
      for (auto& [key, own] : parts) {
        auto first = before, last = after;
        for (auto* with : {&first, &last}) {
          const auto sign = with == &first ? 1.0 : -1.0;
          with->add(own.b.all, sign / own.b.all.seconds);
          with->add(own.a.all, -sign / own.a.all.seconds);
          with->seconds = 1;
        }
        const auto part = (value(first) - value(before) + value(after) - value(last)) / 2 / change;
        Contribution made{line.what, key, part};
        made.changed = trouble(own.a, *measure) == Verdict::same &&
                       trouble(own.b, *measure) == Verdict::same &&
                       test(own.a, own.b, *measure, choices_.paired).p < 1 - kSure;
        all.push_back(std::move(made));
      }
      std::ranges::sort(all, [](auto& x, auto& y) {
        return std::pair(-std::abs(x.part), x.key) < std::pair(-std::abs(y.part), y.key);
      });
      std::ranges::move(all, std::back_inserter(c.contributions));
    }
  }

  std::optional<Measure> measure_of(const Line& line) const {
    if (line.kind == Kind::rate) return rate_of_all();
    if (line.what == "mean") return mean_value();
    if (line.what == "above") {
      for (std::uint32_t i = 0; i < buckets_.count(); i++)
        if (buckets_.from(i) == line.bound) return share_from(i);
    } else if (auto share = share_of_percentile(line.what)) {
      return percentile_of(buckets_, *share);
    }
    return {};
  }

  static constexpr std::size_t kMostKeys = 256;

  const std::vector<Series>& a_;
  const std::vector<Series>& b_;
  const Choices& choices_;
  const Buckets& buckets_;
  bool few_ = false;
  std::optional<Sides> all_;
  std::vector<Line> lines_;
};

}  // namespace

std::optional<double> share_of_percentile(std::string_view what) {
  if (!what.starts_with('p')) return {};
  double percent = 0;
  auto [end, error] = std::from_chars(what.data() + 1, what.data() + what.size(), percent);
  if (error != std::errc() || end != what.data() + what.size()) return {};
  if (!(percent >= 0.1 && percent <= 99.999)) return {};
  return percent / 100;
}

Result<Comparison> compare(const std::vector<Series>& a, const std::vector<Series>& b,
                           const Choices& choices) {
  auto enough = [](auto& side) { return side.size() == 1 || side.size() >= kLeastRecordings; };
  if (choices.paired && (a.size() != b.size() || a.size() < kLeastPairs))
    return usage(fmt::format("{} and {} recordings are not pairs", a.size(), b.size()),
                 fmt::format("give as many on each side, at least {}", kLeastPairs));
  if (!enough(a) || !enough(b) || (a.size() == 1) != (b.size() == 1))
    return usage(fmt::format("cannot compare {} recordings with {}", a.size(), b.size()),
                 fmt::format("give one on each side, or at least {} on each: A1 A2 A3 -- B1 B2 B3",
                             kLeastRecordings));
  // Fine buckets can be made slots, so that a recording with them can be compared with one without.
  auto is_fine = [](auto& s) { return s.buckets.kind == Buckets::fine && s.buckets.bits == 3; };
  auto fine = [&](auto& side) { return std::ranges::count_if(side, is_fine); };
  const auto count = static_cast<std::size_t>(fine(a) + fine(b));
  if (count && count < a.size() + b.size()) {
    auto coarse_a = a, coarse_b = b;
    for (auto* side : {&coarse_a, &coarse_b})
      for (auto& s : *side)
        if (is_fine(s)) s = folded(std::move(s));
    return compare(coarse_a, coarse_b, choices);
  }
  const auto& first = a[0];
  for (auto* side : {&a, &b})
    for (auto& s : *side) {
      if (s.facts.name != first.facts.name)
        return usage(fmt::format("recordings of {} and {} cannot be compared", first.facts.name,
                                 s.facts.name));
      if (s.whole != first.whole)
        return usage("one recording has other stacks than the other",
                     "record both with the same options");
      if (s.facts.counted != first.facts.counted)
        return usage(fmt::format("'{}' and '{}' count different events", first.facts.counted,
                                 s.facts.counted),
                     "record both with the same options");
      if (!s.buckets.same(first.buckets))
        return usage("the histograms have different bounds",
                     "record both with the same unit, and both or none with --fine");
      if (s.intervals.empty() || s.seconds() <= 0) return usage("a recording has no intervals");
    }
  return Comparing(a, b, choices).run();
}

Result<Plan> plan(const Series& one, double change) {
  if (one.intervals.size() < kLeastIntervals)
    return usage(fmt::format("{} intervals are too few to plan from", one.intervals.size()),
                 fmt::format("record at least {}", kLeastIntervals));
  Plan p{.facts = one.facts, .seconds = one.seconds(), .change = change};
  const std::vector<Series> all{one};
  auto side = side_of(all, {});
  if (side.all.count <= 0) return usage("there are no histograms to plan from");
  auto add = [&](std::string what, const Measure& measure) {
    if (trouble(side, measure) != Verdict::same) return;
    const auto e = estimate(side, measure);
    p.lines.push_back({std::move(what), std::expm1(difference(e, e, kGroups).smallest),
                       p.seconds * longer_for(e, change)});
  };
  if (one.buckets.kind == Buckets::fine)
    for (auto what : kPercentiles)
      add(std::string(what), percentile_of(one.buckets, *share_of_percentile(what)));
  add("events/s", rate_of_all());
  return p;
}

}  // namespace coretap::compare
