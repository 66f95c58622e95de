#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <map>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "base/descriptors.hpp"
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
  std::uint64_t total = 0;
};

/// Longer keys are cut, and what has more keys is not read.
constexpr rapidjson::SizeType kDeepest = 1024;
constexpr std::size_t kLongestKey = 2048, kMostKeys = 1 << 19, kMostEvents = 1 << 26;

/// Numbers that say what a row is about.
bool is_id(std::string_view name) {
  constexpr std::string_view kIds[] = {
      "cgroup_id", "cpu",   "gid", "id",   "inode", "ip",  "level",   "major", "minor", "netns",
      "node",      "order", "pid", "port", "ppid",  "ret", "threads", "tid",   "uid"};
  constexpr std::string_view kEnds[] = {"_pid", "_tid", "_id", "_port", "_cpu", "_uid"};
  return std::ranges::count(kIds, name) || name == "monotonic_ns" ||
         std::ranges::any_of(kEnds, [&](auto end) { return name.ends_with(end); });
}
/// Not sums: they follow from others, or do not add up.
bool adds_up(std::string_view name) {
  constexpr std::string_view kBegins[] = {"average",  "mean", "min_", "max_", "longest", "largest",
                                          "shortest", "p5",   "p9",   "p1",   "percent"};
  constexpr std::string_view kEnds[] = {"_per_second", "_ratio", "_percent", "_hz", "ratio"};
  return std::ranges::none_of(kBegins, [&](auto begin) { return name.starts_with(begin); }) &&
         std::ranges::none_of(kEnds, [&](auto end) { return name.ends_with(end); });
}
bool has_unit(std::string_view name) {
  return name.ends_with("_ns") || name.ends_with("bytes") || name.ends_with("sectors") ||
         name.ends_with("pages");
}
/// Words of events that have few values.
bool is_label(std::string_view name) {
  constexpr std::string_view kLabels[] = {
      "action", "comm",      "container", "device", "direction", "disk",    "error",
      "event",  "file_type", "function",  "kind",   "name",      "object",  "operation",
      "probe",  "protocol",  "reason",    "stage",  "state",     "syscall", "target"};
  return std::ranges::count(kLabels, name);
}
std::string_view latency_of(const rapidjson::Value& event) {
  constexpr std::string_view kTimes[] = {"latency_ns", "delay_ns", "duration_ns", "lasted_ns",
                                         "time_ns",    "total_ns", "wait_ns"};
  for (auto name : kTimes)
    if (auto* value = member(event, name.data()); value && value->IsUint64()) return name;
  return {};
}

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
    if (reports_.empty() && !nodes_.empty()) add_stacks();
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
    if (type == "header") {
      series_.facts.name = text_of(object, "tool");
      series_.facts.kernel = text_of(object, "kernel");
      series_.facts.others = {{"version", text_of(object, "version")}};
      if (const auto at = time_in_iso(text_of(object, "time")))
        began_ = static_cast<double>(*at) / 1e9;
    } else if (type == "ledger") {
      for (auto* cause : {"lost", "untracked", "unmatched", "missed", "unjudged", "unread"})
        series_.facts.lost += number_of(object, cause);
    } else if (type == "histogram") {
      const auto at = time_in_iso(text_of(object, "time"));
      if (!at) return;
      const auto time = static_cast<double>(*at) / 1e9;
      if (series_.facts.name.empty()) series_.facts.name = text_of(object, "tool");
      if (series_.facts.name != text_of(object, "tool")) return;
      if (reports_.empty() || reports_.back().first != time) reports_.push_back({time, {}});
      reports_.back().second.push_back(report(object));
    } else if (type == "row" || type == "interval" || type == "account") {
      if (at_time(object)) take_row(object);
    } else if (type == "report") {
      at_time(object);
    } else if (type == "stack") {
      if (!times_.empty()) take_stack(object);
    } else if (type == "event") {
      take_event(object);
    }
  }

  /// Begins an interval; false: the line has no time, or is of another tool.
  bool at_time(const rapidjson::Value& object) {
    const auto at = time_in_iso(text_of(object, "time"));
    if (series_.facts.name.empty()) series_.facts.name = text_of(object, "tool");
    if (!at || series_.facts.name != text_of(object, "tool")) return false;
    const auto time = static_cast<double>(*at) / 1e9;
    if (times_.empty() || times_.back() != time) {
      times_.push_back(time);
      counts_.emplace_back();
    }
    return true;
  }

  static std::string labels_of(const rapidjson::Value& object, bool all) {
    std::string key;
    for (auto& [name, value] : object.GetObject()) {
      const std::string_view word(name.GetString(), name.GetStringLength());
      if (!value.IsString() || word == "type" || word == "tool" || word == "time") continue;
      if (all ? word == "container_id" : !is_label(word)) continue;
      key += fmt::format("{}{}={}", key.empty() ? "" : ",", word, value.GetString());
    }
    if (auto* pid = member(object, "pid"); all && key.empty() && pid && pid->IsUint64())
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

  /// Numbers without a unit count the events of which others are sums.
  void take_row(const rapidjson::Value& row) {
    const auto key = labels_of(row, true);
    std::vector<std::pair<std::string_view, std::uint64_t>> numbers;
    std::string_view counted;
    std::uint64_t events = 0;
    std::size_t counters = 0;
    for (auto& [name, value] : row.GetObject()) {
      const std::string_view word(name.GetString(), name.GetStringLength());
      if (!value.IsUint64() || is_id(word) || !adds_up(word)) continue;
      numbers.emplace_back(word, value.GetUint64());
      if (has_unit(word)) continue;
      counted = word;
      events += value.GetUint64();
      counters++;
    }
    for (auto& [name, n] : numbers) {
      const bool sum = has_unit(name) && counters;
      add({std::string(name), key}, n, sum ? events : 0);
      if (sum && counters == 1) series_.means.try_emplace(std::string(name), counted);
    }
    series_.facts.kept += events;
  }

  void take_event(const rapidjson::Value& event) {
    const auto at = time_in_iso(text_of(event, "time"));
    if (series_.facts.name.empty()) series_.facts.name = text_of(event, "tool");
    if (!at || events_.size() > kMostEvents || series_.names.size() > kMostKeys ||
        series_.facts.name != text_of(event, "tool"))
      return;
    const auto field = latency_of(event);
    if (latency_.empty()) latency_ = field;
    Event one{static_cast<double>(*at) / 1e9,
              series_.number({"events", labels_of(event, false)}),
              {},
              false};
    if (!field.empty() && field == latency_) {
      one.latency = number_of(event, field.data());
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

  /// Keeps what it was in this interval by node.
  void take_stack(const rapidjson::Value& stack) {
    constexpr const char* kValues[] = {"total_ns", "bytes", "count"};
    const auto* value =
        std::ranges::find_if(kValues, [&](auto* name) { return member(stack, name) != nullptr; });
    if (value == std::end(kValues) || nodes_.size() > kMostKeys) return;
    if (nodes_.empty()) nodes_.emplace_back();  // the root
    series_.whole = *value == kValues[0] ? "time_ns" : *value == kValues[2] ? "samples" : *value;
    const bool counts = *value == kValues[2];
    std::uint32_t at = 0;
    // Several events may be in one recording: each but the usual one is a frame.
    if (auto event = text_of(stack, "event"); !event.empty() && event != "cpu-clock")
      at = node(at, event);
    at = node(at, text_of(stack, "comm"));
    for (auto* side : {"user_stack", "kernel_stack"}) {
      auto* frames = member(stack, side);
      if (!frames || !frames->IsArray()) continue;
      for (auto i = std::min(frames->Size(), kDeepest); i-- > 0;)
        if ((*frames)[i].IsString()) at = node(at, (*frames)[i].GetString());
    }
    auto& of = own_[{times_.size() - 1, at}];
    of.first += number_of(stack, *value);
    of.second += counts ? 0 : number_of(stack, "count");
    series_.facts.kept += number_of(stack, "count");
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
  Interval& interval_until(const std::vector<double>& times, std::size_t i, double usual) {
    auto length = i ? times[i] - times[i - 1] : usual;
    if (length <= 0) length = usual;
    const auto room = static_cast<double>(kMostMade - made_);
    const auto parts = std::min(std::max(std::round(length / usual), 1.0), 1 + room);
    made_ += static_cast<std::size_t>(parts) - 1;
    series_.intervals.resize(series_.intervals.size() + static_cast<std::size_t>(parts),
                             {.seconds = length / parts});
    return series_.intervals.back();
  }

  static double usual_length(const std::vector<double>& times) {
    std::vector<double> lengths;
    for (std::size_t i = 1; i < times.size(); i++)
      if (times[i] > times[i - 1]) lengths.push_back(times[i] - times[i - 1]);
    std::ranges::sort(lengths);
    return lengths.empty() ? 1.0 : std::max(lengths[lengths.size() / 2], 1e-3);
  }

  Report report(const rapidjson::Value& object) {
    Report r;
    for (auto& [name, value] : object.GetObject()) {
      const std::string_view key(name.GetString(), name.GetStringLength());
      if (key == "type" || key == "tool" || key == "time") continue;
      if (value.IsString())
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
    return r;
  }

  /// Steps are powers of ten, or of two.
  bool scale() {
    auto& s = series_.buckets.scale;
    s = {.unit = unit::plain, .step = 1, .linear = true};
    for (auto& u : kUnits)
      if (u.suffix == unit_) s.unit = u;
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

  void fill() {
    std::vector<double> times;
    for (auto& [time, reports] : reports_) times.push_back(time);
    const auto usual = usual_length(times);
    for (std::size_t i = 0; i < reports_.size(); i++) {
      auto& interval = interval_until(times, i, usual);
      for (auto& report : reports_[i].second) {
        Histogram h{.total = report.total};
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
  double began_ = 0;           ///< of the header
  std::vector<double> times_;  ///< of intervals of counts
  std::size_t made_ = 0;       ///< intervals that no line began
  std::vector<std::vector<std::pair<std::uint32_t, std::uint64_t>>> counts_;  ///< of these
  std::vector<Event> events_;
  std::string_view latency_;  ///< the field of the events' latency
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
