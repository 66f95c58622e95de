#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "compare/line_schema.hpp"
#include "compare/series.hpp"
#include "coretap/clock.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "run/run.hpp"
#include "why/members.hpp"

namespace coretap::compare {

namespace {

using why::member;
using why::number_of;
using why::text_of;

constexpr std::size_t kMostBytes = 1U << 30;
constexpr std::size_t kMostIntervals = 1 << 20;
constexpr std::size_t kMostMade = 1 << 15;  ///< intervals that no line begins: 9 hours of seconds
constexpr Unit kUnits[] = {unit::ns, unit::bytes, unit::sectors, unit::pages};

struct Bounds {
  std::uint64_t from, below;
};
struct Report {
  std::string key;
  std::vector<std::pair<Bounds, std::uint64_t>> slots;
  std::uint64_t fine_step = 0;                                     ///< 0: it has no fine slots
  std::vector<std::pair<std::uint32_t, std::uint64_t>> fine = {};  ///< by bucket
  std::uint64_t total = 0;
};

/// Longer keys are cut, and what has more keys is not read.
constexpr rapidjson::SizeType kDeepest = 1024;
constexpr std::size_t kLongestKey = 2048, kMostKeys = 1 << 19, kMostEvents = 1 << 26;

class Lines {
 public:
  Result<Series> read(std::string_view text, const std::string& path) {
    for (auto rest = text; !rest.empty();) {
      auto line = take_until(rest, '\n');
      rapidjson::Document object;
      if (words_in(line).empty()) continue;
      if (!why::read_object(object, line))
        return usage(printable(path) + " is not a file of JSON lines",
                     "record with TOOL --json -i 1 > FILE");
      take(object);
    }
    if (reports_.size() > kMostIntervals || times_.size() > kMostIntervals ||
        series_.names.size() > kMostKeys || events_.size() > kMostEvents)
      return usage(printable(path) + " has too many reports or keys");
    if (reports_.empty() && !nodes_.empty()) {
      forget_rows();  // they say the same, without stacks
      add_stacks();
    }
    if (reports_.empty() && !events_.empty()) {
      bin_events();
      return std::move(series_);
    }
    if (reports_.empty() && !times_.empty()) {
      fill_counts();
      return std::move(series_);
    }
    if (reports_.empty())
      return usage(
          printable(path) + " has nothing that can be compared by intervals",
          "record with TOOL --record FILE --interval 1, or TOOL --json --interval 1 > FILE");
    if (!scale()) return usage(printable(path) + " has histograms with unknown bounds");
    fill();
    return std::move(series_);
  }

 private:
  void take(const rapidjson::Value& object) {
    auto type = text_of(object, "type");
    if (series_.facts.name.empty()) {
      series_.facts.name = text_of(object, "tool");
      schema_ = LineSchema(series_.facts.name);
    }
    auto& kind = schema_.of(type);
    if (type == "header") {
      series_.facts.kernel = text_of(object, "kernel");
      series_.facts.others = {{"version", text_of(object, "version")}};
      if (const auto at = time_in_iso(text_of(object, "time")))
        began_ = static_cast<double>(*at) / 1e9;
    } else if (type == "ledger") {
      for (auto* cause : {"lost", "untracked", "unmatched", "missed", "unjudged", "unread"})
        series_.facts.lost += number_of(object, cause);
    } else if (kind.histogram) {
      const auto at = time_in_iso(text_of(object, "time"));
      if (!at) return;
      const auto time = static_cast<double>(*at) / 1e9;
      if (series_.facts.name != text_of(object, "tool")) return;
      if (reports_.empty() || reports_.back().first != time) reports_.push_back({time, {}});
      reports_.back().second.push_back(report(object, kind));
    } else if (type == "report") {
      at_time(object);
    } else if (type == "stack") {
      if (!times_.empty()) take_stack(object, kind);
    } else if (type == "event") {
      take_event(object, kind);
    } else if (kind.rows) {
      if (at_time(object)) take_row(object, kind);
    }
  }

  /// Begins an interval; false: the line has no time, or is of another tool.
  bool at_time(const rapidjson::Value& object) {
    const auto at = time_in_iso(text_of(object, "time"));
    if (!at || series_.facts.name != text_of(object, "tool")) return false;
    const auto time = static_cast<double>(*at) / 1e9;
    if (times_.empty() || times_.back() != time) {
      times_.push_back(time);
      counts_.emplace_back();
    }
    return true;
  }

  static std::string labels_of(const rapidjson::Value& object, const LineKind& kind, bool row) {
    std::string key;
    for (auto& [name, value] : object.GetObject()) {
      const std::string_view word(name.GetString(), name.GetStringLength());
      if (!value.IsString() || word == "type" || word == "tool" || word == "time") continue;
      if (!(row ? kind.labels_rows(word) : kind.labels_events(word))) continue;
      key += fmt::format("{}{}={}", key.empty() ? "" : ",", word, value.GetString());
    }
    if (auto* pid = member(object, "pid"); row && key.empty() && pid && pid->IsUint64())
      key = fmt::format("pid={}", pid->GetUint64());
    if (key.size() > kLongestKey) key.resize(kLongestKey);
    return key;
  }

  void add(const Name& name, std::uint64_t n, std::uint64_t events) {
    if (!n || series_.names.size() > kMostKeys) return;
    const auto number = series_.number(name);
    counts_.back().emplace_back(number, n);
    series_.events.resize(series_.names.size());
    series_.events[number] += events;
  }

  /// Sums without a unit count the events of which others are sums.
  void take_row(const rapidjson::Value& row, const LineKind& kind) {
    const auto key = labels_of(row, kind, true);
    std::vector<std::pair<OutputKey, std::uint64_t>> sums;
    std::string_view counted;
    std::uint64_t events = 0;
    std::size_t counters = 0;
    for (auto& [name, value] : row.GetObject()) {
      if (!value.IsUint64()) continue;
      auto of = kind.of({name.GetString(), name.GetStringLength()});
      if (of.meaning != Meaning::sum) continue;
      sums.emplace_back(std::move(of), value.GetUint64());
      if (!sums.back().first.unit.empty()) continue;
      events += value.GetUint64();
      counters++;
    }
    for (auto& [of, n] : sums)
      if (of.unit.empty()) counted = of.name;
    for (auto& [of, n] : sums) {
      const bool sum = !of.unit.empty() && counters;
      const bool one = sum && (counters == 1 || !of.sums.empty());
      const auto counter = of.sums.empty() ? std::string(counted) : of.sums;
      add({of.name, key}, n, !sum ? 0 : of.sums.empty() ? events : number_of(row, of.sums.c_str()));
      if (one && n) series_.means.try_emplace(of.name, counter);
    }
    series_.facts.kept += events;
    kept_of_rows_ += events;
  }

  void take_event(const rapidjson::Value& event, const LineKind& kind) {
    const auto at = time_in_iso(text_of(event, "time"));
    if (!at || events_.size() > kMostEvents || series_.names.size() > kMostKeys ||
        series_.facts.name != text_of(event, "tool"))
      return;
    Event one{static_cast<double>(*at) / 1e9,
              series_.number({"events", labels_of(event, kind, false)}),
              {},
              false};
    for (auto& [name, value] : event.GetObject()) {
      const std::string_view word(name.GetString(), name.GetStringLength());
      if (!value.IsUint64() || (!latency_.empty() && word != latency_)) continue;
      if (latency_.empty() && kind.of(word).meaning != Meaning::duration) continue;
      latency_ = word;
      one.latency = value.GetUint64();
      one.timed = true;
    }
    events_.push_back(one);
    series_.facts.kept++;
  }

  /// Into intervals of a second; shorter ones if there would be too few, longer if too many.
  void bin_events() {
    std::ranges::sort(events_, {}, &Event::time);
    const auto from = began_ > 0 ? std::min(began_, events_[0].time) : events_[0].time;
    const auto lasted = std::max(events_.back().time - from, 1e-3);
    constexpr double kLeast = 16;
    const auto count =
        std::min(lasted >= kLeast ? std::round(lasted) : kLeast, static_cast<double>(kMostMade));
    const auto width = lasted / count;
    series_.buckets = Buckets::of_values(unit::ns);
    series_.intervals.resize(static_cast<std::size_t>(count));
    for (auto& interval : series_.intervals) interval.seconds = width;
    std::map<std::pair<std::size_t, std::uint32_t>, std::map<std::uint32_t, std::uint64_t>> bins;
    std::map<std::pair<std::size_t, std::uint32_t>, Histogram> sums;
    std::map<std::pair<std::size_t, std::uint32_t>, std::uint64_t> counts;
    for (auto& e : events_) {
      const auto at =
          std::min(static_cast<std::size_t>((e.time - from) / width), series_.intervals.size() - 1);
      counts[{at, e.name}]++;
      if (!e.timed) continue;
      auto& sum = sums[{at, e.name}];
      sum.total += e.latency;
      sum.largest = std::max(sum.largest, e.latency);
      bins[{at, e.name}][series_.buckets.of(e.latency)]++;
    }
    for (auto& [place, n] : counts)
      series_.intervals[place.first].counts.emplace_back(place.second, n);
    for (auto& [place, sum] : sums) {
      auto& buckets = bins[place];
      sum.counts.assign(buckets.begin(), buckets.end());
      series_.intervals[place.first].histograms.emplace_back(place.second, std::move(sum));
    }
  }

  std::uint32_t node(std::uint32_t parent, std::string word) {
    std::ranges::replace(word, ';', ':');
    const auto [name, fresh] = words_.try_emplace(word, static_cast<std::uint32_t>(words_.size()));
    if (fresh) spelled_.push_back(word);
    const auto [at, is_new] =
        children_.try_emplace(static_cast<std::uint64_t>(parent) << 32 | name->second,
                              static_cast<std::uint32_t>(nodes_.size()));
    if (is_new) nodes_.emplace_back(parent, name->second);
    return at->second;
  }

  /// Appends the frames below a node, the outermost first.
  std::uint32_t frames(std::uint32_t at, const rapidjson::Value& of) {
    for (auto* side : {"user_stack", "kernel_stack"}) {
      auto* all = member(of, side);
      if (!all || !all->IsArray()) continue;
      for (auto i = std::min(all->Size(), kDeepest); i-- > 0;)
        if ((*all)[i].IsString()) at = node(at, (*all)[i].GetString());
    }
    return at;
  }

  /// The sum of stacks: an amount if there is one, else their number.
  static const OutputKey* value_of(const LineKind& kind) {
    const OutputKey* found = nullptr;
    for (auto& [name, k] : kind.keys)
      if (k.meaning == Meaning::sum && (!found || found->unit.empty())) found = &k;
    return found;
  }

  /// Keeps what it was in this interval by node.
  void take_stack(const rapidjson::Value& stack, const LineKind& kind) {
    // Of a tool that is not known.
    static const OutputKey kUsual[] = {key("total_ns", {}, {}).as(Meaning::sum, "count"),
                                       {.name = "bytes",
                                        .type = {},
                                        .unit = "bytes",
                                        .doc = {},
                                        .meaning = Meaning::sum,
                                        .sums = "count"},
                                       key("count", {}, {}).as(Meaning::sum)};
    const auto* of = value_of(kind);
    for (auto& usual : kUsual)
      if (!of && member(stack, usual.name.c_str())) of = &usual;
    if (!of || !member(stack, of->name.c_str()) || nodes_.size() > kMostKeys) return;
    const auto& value = *of;
    if (nodes_.empty()) nodes_.emplace_back();  // the root
    const bool counts = value.unit.empty();
    series_.whole = counts ? "samples" : value.name.ends_with("_ns") ? "time_ns" : value.name;
    std::uint32_t at = 0;
    // Several events may be in one recording: each but the usual one is a frame.
    if (auto event = text_of(stack, "event"); !event.empty() && event != "cpu-clock")
      at = node(at, event);
    at = frames(node(at, text_of(stack, "comm")), stack);
    // States and reasons are the innermost frames.
    for (auto& [name, k] : kind.keys)
      if (auto word = k.meaning == Meaning::label ? text_of(stack, name.c_str()) : std::string();
          !word.empty())
        at = node(at, fmt::format("[{}]", word));
    // Its waker, the waker of that one, ...
    if (auto* wakers = member(stack, "wakers"); wakers && wakers->IsArray())
      for (auto i = 0U; i < std::min(wakers->Size(), kDeepest); i++)
        if (auto& waker = (*wakers)[i]; waker.IsObject())
          at = frames(node(at, "woken by " + text_of(waker, "comm")), waker);
    auto& sum = own_[{times_.size() - 1, at}];
    const auto count = counts || value.sums.empty() ? 0 : number_of(stack, value.sums.c_str());
    sum.first += number_of(stack, value.name.c_str());
    sum.second += count;
    series_.facts.kept += counts ? number_of(stack, value.name.c_str()) : count;
  }

  void forget_rows() {
    for (auto& counts : counts_) counts.clear();
    series_.means.clear();
    series_.events.clear();
    series_.facts.kept -= kept_of_rows_;
  }

  /// A count for each function and each stack, which contains the stacks above it. Stacks with less
  /// than a ten-thousandth of all are counted for their callers only.
  void add_stacks() {
    constexpr std::uint64_t kParts = 10'000;
    std::vector<std::uint64_t> sums(nodes_.size());
    for (auto& [place, value] : own_)
      for (auto n = place.second;; n = nodes_[n].first) {
        sums[n] += value.first;
        if (!n) break;
      }
    std::vector<std::string> paths(nodes_.size());
    for (std::size_t i = 1; i < nodes_.size(); i++) {
      auto& path = paths[nodes_[i].first];
      const auto& word = spelled_[nodes_[i].second];
      if (sums[i] < sums[0] / kParts || path.size() + word.size() > kLongestKey) continue;
      if (nodes_[i].first && path.empty()) continue;
      paths[i] = (path.empty() ? "" : path + ";") + word;
    }
    for (auto& [place, value] : own_) {
      auto put = [&, interval = place.first, sum = value.first, events = value.second](
                     std::string_view what, std::string key) {
        if (!sum || series_.names.size() > kMostKeys) return;
        const auto number = series_.number({std::string(what), std::move(key)});
        counts_[interval].emplace_back(number, sum);
        series_.events.resize(series_.names.size());
        series_.events[number] += events;
      };
      auto function = [&](std::uint32_t n) { return "function=" + spelled_[nodes_[n].second]; };
      put(series_.whole, {});
      put(kSelf, function(place.second));
      std::vector<std::uint32_t> seen;
      for (auto n = place.second; n; n = nodes_[n].first) {
        if (!paths[n].empty()) put(kStack, std::string(kStackKey) + paths[n]);
        if (std::ranges::count(seen, nodes_[n].second)) continue;  // recursion
        seen.push_back(nodes_[n].second);
        if (nodes_[n].first) put(kTotal, function(n));
      }
    }
  }

  void fill_counts() {
    const auto usual = usual_length(times_);
    for (std::size_t i = 0; i < times_.size(); i++)
      interval_until(times_, i, usual).counts = std::move(counts_[i]);
  }

  /// The interval that ends at time `i`. Intervals without events may have no line: they are added
  /// before it, as many as usual intervals fit. A clock that was set back says nothing of lengths.
  /// The first one begins with the header, unless the recording is the end of a longer run.
  Interval& interval_until(const std::vector<double>& times, std::size_t i, double usual) {
    auto length = times[i] - (i ? times[i - 1] : began_);
    constexpr double kMostFirst = 16;
    if (length <= 0 || (!i && length > kMostFirst * usual)) length = usual;
    const auto room = static_cast<double>(kMostMade - made_);
    const auto parts = i ? std::min(std::max(std::round(length / usual), 1.0), 1 + room) : 1;
    made_ += static_cast<std::size_t>(parts) - 1;
    series_.intervals.resize(series_.intervals.size() + static_cast<std::size_t>(parts),
                             {.seconds = length / parts});
    return series_.intervals.back();
  }

  /// Of a single interval: the time since the header.
  double usual_length(const std::vector<double>& times) const {
    std::vector<double> lengths;
    if (times.size() == 1 && began_ > 0 && times[0] > began_) return times[0] - began_;
    for (std::size_t i = 1; i < times.size(); i++)
      if (times[i] > times[i - 1]) lengths.push_back(times[i] - times[i - 1]);
    std::ranges::sort(lengths);
    return lengths.empty() ? 1.0 : std::max(lengths[lengths.size() / 2], 1e-3);
  }

  Report report(const rapidjson::Value& object, const LineKind& kind) {
    Report r;
    for (auto& [name, value] : object.GetObject()) {
      const std::string_view key(name.GetString(), name.GetStringLength());
      if (key == "type" || key == "tool" || key == "time") continue;
      if (value.IsString() && kind.labels_rows(key))
        r.key += fmt::format("{}{}={}", r.key.empty() ? "" : ",", key, value.GetString());
      if (key == "pid" && value.IsUint64())
        r.key += fmt::format("{}pid={}", r.key.empty() ? "" : ",", value.GetUint64());
      if (key.starts_with("total_")) unit_ = key.substr(6);
    }
    r.total = number_of(object, unit_.empty() ? "total" : ("total_" + unit_).c_str());
    auto* slots = member(object, "histogram");
    if (!slots || !slots->IsArray()) return r;
    const auto suffix = unit_.empty() ? "" : '_' + unit_;
    for (auto& slot : slots->GetArray()) {
      if (!slot.IsObject()) continue;
      Bounds bounds{number_of(slot, ("from" + suffix).c_str()),
                    number_of(slot, ("below" + suffix).c_str())};
      if (bounds.below <= bounds.from) continue;
      r.slots.emplace_back(bounds, number_of(slot, "count"));
      series_.facts.kept += r.slots.back().second;
    }
    take_fine(r, object);
    return r;
  }

  /// The slots that `coretap show` adds to those of powers of two.
  static void take_fine(Report& r, const rapidjson::Value& object) {
    auto* fine = member(object, "fine");
    r.fine_step = number_of(object, "fine_step");
    if (!fine || !fine->IsArray()) return;
    for (auto& slot : fine->GetArray()) {
      if (!slot.IsArray() || slot.Size() != 2 || !slot[0].IsUint() || !slot[1].IsUint64() ||
          slot[0].GetUint() >= Buckets{.kind = Buckets::fine}.count())
        continue;
      r.fine.emplace_back(slot[0].GetUint(), slot[1].GetUint64());
    }
  }

  /// Steps are powers of ten, or of two.
  bool scale() {
    auto& s = series_.buckets.scale;
    s = {.unit = unit::plain, .step = 1, .linear = true};
    for (auto& u : kUnits)
      if (u.suffix == unit_) s.unit = u;
    if (auto step = fine_step()) {
      s.step = step;
      s.linear = false;
      series_.buckets = Buckets::fine_of(s);
      return true;
    }
    std::uint64_t width = 0, first = 0, any = 0;
    for (auto& [time, reports] : reports_)
      for (auto& report : reports)
        for (auto& [b, count] : report.slots) {
          if (b.below == UINT64_MAX) continue;
          const auto wide = b.below - b.from;
          if (width && wide != width) s.linear = false;
          width = wide;
          if (!b.from) first = b.below;
          if (b.from) any = b.from;
        }
    if (!any && !first) return false;
    if (s.linear && any && any == width && !(first && first == width)) s.linear = false;
    if (s.linear) {
      s.step = width;
    } else if (first) {
      s.step = first / 2;
    } else {
      const auto odd = any >> std::countr_zero(any);
      for (auto step :
           {std::uint64_t{1000}, std::uint64_t{1'000'000}, std::uint64_t{1'000'000'000}})
        if (odd == step >> std::countr_zero(step)) s.step = step;
    }
    if (!s.step) return false;
    for (auto& [time, reports] : reports_)
      for (auto& report : reports)
        for (auto& [b, count] : report.slots)
          if (series_.buckets.from(series_.buckets.of(b.from)) != static_cast<double>(b.from))
            return false;
    return true;
  }

  /// That of all histograms; 0: some have no fine slots.
  std::uint64_t fine_step() const {
    std::uint64_t step = 0;
    for (auto& [time, reports] : reports_)
      for (auto& report : reports) {
        if (!report.fine_step || (step && report.fine_step != step)) return 0;
        step = report.fine_step;
      }
    return step;
  }

  void fill() {
    std::vector<double> times;
    for (auto& [time, reports] : reports_) times.push_back(time);
    const auto usual = usual_length(times);
    for (std::size_t i = 0; i < reports_.size(); i++) {
      auto& interval = interval_until(times, i, usual);
      for (auto& report : reports_[i].second) {
        Histogram h{.total = report.total};
        if (series_.buckets.kind == Buckets::fine)
          h.counts = std::move(report.fine);
        else
          for (auto& [bounds, count] : report.slots)
            h.counts.emplace_back(series_.buckets.of(bounds.from), count);
        interval.histograms.emplace_back(series_.number({"events", report.key}), std::move(h));
      }
    }
  }

  struct Event {
    double time;
    std::uint32_t name;
    std::uint64_t latency;
    bool timed;  ///< has a latency
  };

  Series series_;
  LineSchema schema_;
  std::uint64_t kept_of_rows_ = 0;
  double began_ = 0;           ///< of the header
  std::vector<double> times_;  ///< of intervals of counts
  std::size_t made_ = 0;       ///< intervals that no line began
  std::vector<std::vector<std::pair<std::uint32_t, std::uint64_t>>> counts_;  ///< of these
  std::vector<Event> events_;
  std::string latency_;  ///< the field of the events' latency
  // Of stacks: a tree of names, of which the first one is the root; what ended in a node.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> nodes_;  ///< parent, word
  std::unordered_map<std::uint64_t, std::uint32_t> children_;
  std::unordered_map<std::string, std::uint32_t> words_;
  std::vector<std::string> spelled_;
  std::map<std::pair<std::size_t, std::uint32_t>, std::pair<std::uint64_t, std::uint64_t>> own_;
  std::string unit_;
  std::vector<std::pair<double, std::vector<Report>>> reports_;
};

}  // namespace

Result<Series> series_of_lines(std::string_view text, const std::string& path) {
  return Lines().read(text, path);
}

Result<Series> read_series(const std::string& path) {
  if (is_recording(path)) {
    auto lines = recording_as_json(path);
    if (!lines) return lines.error();
    return series_of_lines(*lines, path);
  }
  auto text = read_file(path, kMostBytes);
  if (!text) return system_error("cannot read " + printable(path), errno);
  return series_of_lines(*text, path);
}

}  // namespace coretap::compare
