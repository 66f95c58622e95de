#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <optional>

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
constexpr Unit kUnits[] = {unit::ns, unit::bytes, unit::sectors, unit::pages};

struct Bounds {
  std::uint64_t from, below;
};
struct Report {
  std::string key;
  std::vector<std::pair<Bounds, std::uint64_t>> slots;
  std::uint64_t total = 0;
};

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
    if (reports_.size() > kMostIntervals) return usage(printable(path) + " has too many reports");
    if (reports_.empty())
      return usage(printable(path) + " has no histograms", "record with TOOL --json -i 1 > FILE");
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
    }
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

  /// Intervals without events may have no line.
  void fill() {
    std::vector<double> lengths;
    for (std::size_t i = 1; i < reports_.size(); i++)
      lengths.push_back(reports_[i].first - reports_[i - 1].first);
    std::ranges::sort(lengths);
    const auto usual = lengths.empty() ? 1.0 : std::max(lengths[lengths.size() / 2], 1e-3);
    for (std::size_t i = 0; i < reports_.size(); i++) {
      const auto length = i ? reports_[i].first - reports_[i - 1].first : usual;
      const auto parts = std::clamp(std::round(length / usual), 1.0, 1e5);
      for (int empty = 1; empty < static_cast<int>(parts); empty++)
        if (series_.intervals.size() < kMostIntervals)
          series_.intervals.push_back({.seconds = length / parts});
      Interval interval{.seconds = length / parts};
      for (auto& report : reports_[i].second) {
        Histogram h{.total = report.total};
        for (auto& [bounds, count] : report.slots)
          h.counts.emplace_back(series_.buckets.of(bounds.from), count);
        interval.histograms.emplace_back(series_.number({"events", report.key}), std::move(h));
      }
      series_.intervals.push_back(std::move(interval));
    }
  }

  Series series_;
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
