// A row for each set of keys, with a column for each percentile.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/percentiles.hpp"
#include "lib/aggregate/percentile.h"
#include "reports/aggregate_layout.hpp"
#include "reports/histogram.hpp"
#include "text/columns.hpp"
#include "text/terminal.hpp"

namespace coretap {

namespace {

/// The power of two of a bucket's width; numbers beyond the last bucket have the width of the last.
std::uint32_t width_of(std::uint32_t bucket) {
  constexpr std::uint32_t kMost = 63 - FINE_BITS;
  return bucket < 2 * FINE_STEPS ? 0 : std::min(bucket / FINE_STEPS - 1, kMost);
}

/// "950ns", "9.50us", "95.0us", "1.52ms"
std::string three_digits(std::uint64_t ns) {
  constexpr std::pair<double, std::string_view> kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  auto value = static_cast<double>(ns);
  for (auto& [of, name] : kUnits)
    if (value >= of) {
      auto v = value / of;
      return fmt::format("{:.{}f}{}", v, v < 9.995 ? 2 : v < 99.95 ? 1 : 0, name);
    }
  return fmt::format("{}ns", ns);
}

std::uint64_t all(const FineCounts& counts) {
  std::uint64_t sum = 0;
  for (auto& [bucket, count] : counts) sum += count;
  return sum;
}

class PercentileLayout : public AggregateLayout {
 public:
  explicit PercentileLayout(const AggregateReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields);
    auto fields = in_columns(report_.fields, report_.orders, s.config);
    auto keys = report_.orders.empty() ? std::string_view() : report_.orders.front().keys;
    const auto first =
        report_.orders.empty() ? std::ssize(fields) : std::ranges::count(keys, ',') + 1;
    before_.choose(s.config, {fields.begin(), fields.begin() + first});
    after_.choose(s.config, {fields.begin() + first, fields.end()});
    percents_ =
        s.config.rows.percentiles.empty() ? report_.usual_percentiles : s.config.rows.percentiles;
    overall_ = s.config.given("overall");
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    auto header = "time," + columns_.keys();
    for (auto& k : percentile_columns(report_.scale)) header += ',' + k.name;
    s.out.line(header);
  }

  void show(Session& s, AggregateReading& r) override {
    std::map<std::string, FineCounts> now;
    for (auto& row : r.rows) take(now, row);
    if (overall_)
      for (auto& [keys, counts] : since_start_) now[keys];
    if (s.config.format == OutputFormat::text) {
      text(s, now);
      return;
    }
    for (auto& [keys, counts] : now)
      if (s.config.format == OutputFormat::json)
        json(s, r, keys, counts);
      else
        csv(s, r, keys, counts);
  }

 private:
  void take(std::map<std::string, FineCounts>& now, const std::string& row) {
    std::uint32_t bucket = 0;
    std::uint64_t count = 0;
    memcpy(&bucket, row.data() + report_.bucket_at, sizeof bucket);
    memcpy(&count, row.data() + report_.value_at, sizeof count);
    auto keys = row;
    memset(keys.data() + report_.bucket_at, 0, sizeof bucket);
    memset(keys.data() + report_.value_at, 0, sizeof count);
    now[keys][bucket] += count;
    since_start_[keys][bucket] += count;
  }

  std::string shown(std::uint64_t value) const {
    return report_.scale.unit.suffix == unit::ns.suffix ? three_digits(value)
                                                        : std::to_string(value);
  }

  void text(Session& s, const std::map<std::string, FineCounts>& now) {
    std::vector<std::string> lines = {before_.titles()};
    for (auto& [keys, counts] : now) lines.push_back(before_.row(keys.data(), s.names));
    std::size_t width = 0;
    for (auto& line : lines) width = std::max(width, line.size());
    for (auto& line : lines) line.resize(width, ' ');
    auto add = [&](std::string& line, const std::string& count, const std::string& keys,
                   auto percentile) {
      auto total = fmt::format(" {:>8}", count);
      const bool last = !report_.orders.empty();
      if (!last) line += total;
      for (auto percent : percents_) line += fmt::format(" {:>6}", percentile(percent));
      if (last) line += total + ' ' + keys;
    };
    add(lines[0], "COUNT", after_.titles(), [](double p) { return fmt::format("p{:g}", p); });
    std::size_t n = 1;
    for (auto& [keys, counts] : now) {
      auto& of = overall_ ? since_start_[keys] : counts;
      add(lines[n++], std::to_string(all(of)), after_.row(keys.data(), s.names),
          [&](double p) { return shown(fine_percentile(of, p)); });
    }
    s.out.line(s.config.given("timestamp") ? "\n" + wall_time() : "");
    auto limit = line_limit();
    s.out.title(cut_to(lines[0], limit));
    for (std::size_t i = 1; i < lines.size(); i++) s.out.line(cut_to(lines[i], limit));
  }

  void values(JsonLine& line, std::string_view key, const FineCounts& counts) const {
    line.key(key).begin_array();
    auto value = percentile_columns(report_.scale)[1].name;
    for (auto percent : percents_) {
      line.begin_object().key("percent").real(percent);
      line.number_if(!counts.empty(), value, counts.empty() ? 0 : fine_percentile(counts, percent));
      line.end_object();
    }
    line.end_array();
  }

  void json(Session& s, const AggregateReading& r, const std::string& keys,
            const FineCounts& counts) {
    JsonLine line("percentiles", s.tool.name);
    line.text("time", r.stamp);
    columns_.json(line, keys.data(), s.names);
    line.number("count", all(counts));
    values(line, "percentiles", counts);
    line.number("overall_count", all(since_start_[keys]));
    values(line, "overall_percentiles", since_start_[keys]);
    s.out.line(line.finish());
  }

  void csv(Session& s, const AggregateReading& r, const std::string& keys,
           const FineCounts& counts) {
    auto& overall = since_start_[keys];
    auto words = columns_.csv(keys.data(), s.names);
    for (auto percent : percents_)
      s.out.line(fmt::format("{},{},{:g},{},{},{},{}", r.stamp, words, percent,
                             counts.empty() ? "" : std::to_string(fine_percentile(counts, percent)),
                             fine_percentile(overall, percent), all(counts), all(overall)));
  }

  const AggregateReport& report_;
  Columns columns_;         ///< of JSON and CSV
  Columns before_, after_;  ///< of text: before and after the percentiles
  std::vector<double> percents_;
  bool overall_ = false;
  std::map<std::string, FineCounts> since_start_;
};

}  // namespace

std::uint64_t fine_from(std::uint32_t bucket) {
  if (bucket < 2 * FINE_STEPS) return bucket;
  return (FINE_STEPS + std::uint64_t{bucket} % FINE_STEPS) << width_of(bucket);
}

std::uint64_t fine_percentile(const FineCounts& counts, double percent) {
  std::uint64_t all = 0, before = 0;
  for (auto& [bucket, count] : counts) all += count;
  auto wanted = std::max(1.0, std::ceil(static_cast<double>(all) * percent / 100));
  for (auto& [bucket, count] : counts) {
    before += count;
    if (static_cast<double>(before) >= wanted)
      return fine_from(bucket) + (std::uint64_t{1} << width_of(bucket)) / 2;
  }
  return 0;
}

std::vector<OutputKey> percentile_columns(const HistogramScale& scale) {
  return {
      key("percent", "number", "of the values, 0 to 100"),
      key(with_unit("value", scale), "integer or null",
          "what this percentage of the values does not exceed"),
      key(with_unit("overall", scale), "integer", "the same for all values since tracing began"),
      key("count", "integer", "values since the previous report"),
      key("overall_count", "integer", "values since tracing began")};
}

std::vector<OutputKey> percentile_keys(const HistogramScale& scale) {
  auto columns = percentile_columns(scale);
  std::vector<OutputKey> members = {columns[0], columns[1]};
  return {columns[3],
          key("percentiles", "array of objects", "of the values since the previous report", {},
              members),
          columns[4],
          key("overall_percentiles", "array of objects", "of all values since tracing began", {},
              members)};
}

std::unique_ptr<AggregateLayout> make_percentile_layout(const AggregateReport& report) {
  return std::make_unique<PercentileLayout>(report);
}

}  // namespace coretap
