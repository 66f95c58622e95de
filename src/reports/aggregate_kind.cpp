// Aggregates as a kind of report: the fields of their output, their text in the manual, and checks
// of the command line.
#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/live_report.hpp"
#include "coretap/nearest.hpp"
#include "reports/aggregate_layout.hpp"
#include "reports/histogram.hpp"
#include "reports/report_aggregate.hpp"
#include "reports/row_owner.hpp"

namespace coretap {

namespace {

/// "a,b" -> "a, then b"
std::string in_turn(std::string_view list) {
  std::string words(list);
  for (std::size_t at = 0; (at = words.find(',', at)) != words.npos; at += 6)
    words.replace(at, 1, ", then ");
  return words;
}

class AggregateKind : public ReportKind {
 public:
  explicit AggregateKind(LiveReport live) : live_(std::move(live)), report_(live_.aggregate) {
    if (!has_owner(report_)) return;
    auto& fields = live_.aggregate.fields;
    auto owners = owner_fields(report_);
    fields.insert(fields.end(), owners.begin(), owners.end());
  }

  std::string_view name() const override { return "aggregate"; }
  bool kernel_symbols() const override {
    return std::any_of(report_.fields.begin(), report_.fields.end(), is_stack);
  }
  bool adds_up() const override {
    return !report_.keyless && report_.layout != AggregateReport::interval &&
           report_.layout != AggregateReport::percentile_columns &&
           report_.layout != AggregateReport::bars;
  }
  MetricShape metrics(const Config& config) const override {
    using Layout = AggregateReport::Layout;
    if (report_.layout == Layout::percentile_columns) return {};
    MetricShape shape{.kind = report_.layout == Layout::histograms ? MetricShape::histograms
                              : report_.layout == Layout::interval ? MetricShape::one_row
                                                                   : MetricShape::rows,
                      .fields = report_.fields};
    shape.what = report_.what;
    shape.scale = report_.scale;
    shape.scale.step = step_of(report_.scale, config);
    shape.value_at = report_.value_at;
    shape.totals = report_.totals;
    return shape;
  }
  std::unique_ptr<Reporter> reporter() const override { return make_aggregate_reporter(live_); }
  std::vector<Field> fields() const override { return report_.fields; }
  bool has_histograms() const override { return report_.layout == AggregateReport::histograms; }
  std::size_t record_size() const override { return report_.row_size(); }
  std::vector<std::string_view> conditions() const override {
    return {report_.keyed_when, report_.extension, report_.header_when};
  }

  std::vector<JsonKind> json() const override {
    JsonKind kind;
    if (report_.layout == AggregateReport::histograms) {
      kind = {"histogram",
              report_.fields.empty() ? "one per report" : "one per report and set of keys",
              {type_key("histogram"), time_key()}};
      for (auto& f : report_.fields) kind.keys.push_back(of(f, f.shown_with));
      for (auto& f : report_.totals) kind.keys.push_back(key(f, report_.totals_size));
      for (auto& k : histogram_keys(report_.scale)) kind.keys.push_back(k);
      return {kind};
    }
    if (report_.layout == AggregateReport::percentile_columns) {
      kind = {
          "percentiles", "one per report and set of keys", {type_key("percentiles"), time_key()}};
      for (auto& k : columns()) kind.keys.push_back(k);
      for (auto& k : percentile_keys(report_.scale)) kind.keys.push_back(k);
      return {kind};
    }
    bool interval = report_.layout == AggregateReport::interval;
    auto* type = interval ? "interval" : "row";
    kind = {type, interval ? "one per report" : "one per row", {type_key(type), time_key()}};
    for (auto& k : columns()) kind.keys.push_back(k);
    return {kind};
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key()};
    if (report_.layout == AggregateReport::histograms) {
      for (auto& f : report_.fields) all.push_back(of(f, f.shown_with));
      for (auto& f : report_.totals) all.push_back(key(f, report_.totals_size));
      for (auto& k : slot_keys(report_.scale)) {
        all.push_back(k);
        // Totals are reported even if they have no values.
        if (!report_.totals.empty() && k.name != "count") all.back().type = "integer or null";
      }
    } else {
      for (auto& k : columns()) all.push_back(k);
      if (report_.layout == AggregateReport::percentile_columns)
        for (auto& k : percentile_columns(report_.scale)) all.push_back(k);
    }
    return all;
  }

  void manual(Manual& m) const override {
    if (report_.layout == AggregateReport::histograms)
      histogram_manual(m);
    else if (report_.layout == AggregateReport::interval)
      interval_manual(m);
    else if (report_.layout == AggregateReport::bars)
      bars_manual(m);
    else if (report_.layout == AggregateReport::percentile_columns)
      percentile_manual(m);
    else
      table_manual(m);
  }

  Result<void> check(Config& c) const override {
    if (c.given("heatmap")) {
      if (!c.schedule.interval) c.schedule.interval = 1;
      if (c.files.heatmap.empty() && c.format != OutputFormat::text)
        return Error{"--heatmap without a file is for text",
                     {},
                     "with --json or --csv name a file: --heatmap FILE.svg",
                     kUsage};
    }
    for (auto& key : c.rows.by) {
      std::vector<std::string_view> known;
      for (auto& f : report_.fields)
        if (is_key(f) && f.format.kind != Format::stack && !f.table_only) known.push_back(f.key);
      auto r = check_key("--by", key, known);
      if (!r && !report_.no_owner.empty() && is_owner_key(key))
        r.error().why = fmt::format("no task owns the counted events: {}", report_.no_owner);
      if (!r) return r;
    }
    if (report_.sort.empty()) return {};
    for (auto& [word, sort_key] : report_.sort_words)
      if (c.rows.sort == word) c.rows.sort = sort_key;
    std::vector<std::string_view> known;
    for (auto& f : report_.fields)
      if (c.holds(f.only_with)) known.push_back(f.key);
    if (!c.rows.sort.empty())
      if (auto r = check_key("--sort", c.rows.sort, known); !r) return r;
    if (!c.given("top") && c.format == OutputFormat::text) c.rows.top = report_.top;
    return {};
  }

 private:
  static Result<void> check_key(std::string_view option, std::string_view key,
                                const std::vector<std::string_view>& known) {
    if (std::find(known.begin(), known.end(), key) != known.end()) return {};
    auto meant = did_you_mean(key, known);
    return Error{fmt::format("{}: there is no key '{}'", option, key),
                 {},
                 meant.empty() ? fmt::format("there are: {}", fmt::join(known, ", ")) : meant,
                 kUsage};
  }
  OutputKey of(const Field& f, std::string_view when) const { return key(f, record_size(), when); }
  std::vector<OutputKey> columns() const {
    std::vector<OutputKey> all;
    for (auto& f : report_.fields)
      if (!f.table_only) all.push_back(of(f, f.only_with));
    return all;
  }

  void histogram_manual(Manual& m) const {
    auto& scale = report_.scale;
    m.prose(
        fmt::format("Each report is a histogram of {}: a line for each range{}, with the "
                    "number of values in it and a bar.",
                    report_.what, scale.linear ? "" : " of powers of two"));
    if (m.has_option("microseconds") && scale.step == 1)
      m.prose(
          "Ranges are in nanoseconds, microseconds with --microseconds, or milliseconds with "
          "--milliseconds.");
    else if (m.has_option("milliseconds"))
      m.prose("Ranges are in microseconds, or milliseconds with --milliseconds.");
    else if (m.has_option("nanoseconds"))
      m.prose("Ranges are in microseconds, or nanoseconds with --nanoseconds.");
    else if (scale.unit.suffix == unit::ns.suffix)
      m.prose(scale.step == 1'000 ? "Ranges are in microseconds." : "Ranges are in milliseconds.");
    else if (scale.linear && scale.step > 1)
      m.prose(fmt::format("Each range has {} {}.", scale.step, scale.unit.plural));
    else if (!scale.unit.plural.empty())
      m.prose(fmt::format("Ranges are in {}{}.",
                          scale.step == 1 ? "" : fmt::format("{} ", scale.step),
                          scale.unit.plural));
    if (scale.linear)
      m.prose(fmt::format("The last range, from {} on, has no upper bound.",
                          scale.from(HIST_SLOTS - 1)));
    if (report_.averages) m.prose("A line with average, total and count follows.");
    if (!report_.extension.empty())
      m.prose(fmt::format("With --{} a line with average, total and count follows.",
                          report_.extension));
    if (!report_.totals.empty()) {
      m.prose(fmt::format(
          "The line \"{}\" above it covers the time since tracing began; JSON has its values as "
          "keys of the report, CSV as columns of each row:",
          report_.totals_title));
      m.fields(report_.totals);
      m.prose(
          "In CSV a report without values is one row with empty ranges and the count 0, so that "
          "its totals are present.");
    }
    if (m.has_option("heatmap"))
      m.prose(
          "With --heatmap each histogram is one line: a character for each range, in ascending "
          "order, followed by the number of values. The more values a range has, the denser its "
          "character, from '.' to '@', which is the largest number so far. The last range also "
          "holds all values above it. With a file name, the histograms become one picture "
          "instead.");
    if (auto fields = own_fields(); !fields.empty()) {
      m.paragraph();
      m.prose(
          "There is one histogram for each combination of those of these keys that are "
          "requested; the names in JSON and CSV are in parentheses.");
      m.fields(fields);
    }
    owner_manual(m);
  }

  /// The fields that exist without --by.
  std::vector<Field> own_fields() const {
    auto fields = report_.fields;
    std::erase_if(fields, is_owner_field);
    return fields;
  }

  void owner_manual(Manual& m) const {
    std::vector<std::string_view> keys;
    for (auto& f : report_.fields)
      if (is_owner_field(f)) keys.push_back(f.key);
    if (keys.empty()) return;
    m.prose(fmt::format("--by also accepts the keys of the task that the values belong to: {}.",
                        fmt::join(keys, ", ")));
  }

  void interval_manual(Manual& m) const {
    m.prose(
        "One line per report, about what happened since the previous one; the columns' keys in "
        "JSON and CSV are in parentheses.");
    if (report_.time_when.empty())
      m.prose("Each line starts with the time.");
    else if (m.has_option(report_.time_when))
      m.prose(fmt::format("With --{} each line starts with the time.", report_.time_when));
    m.fields(report_.fields);
  }

  void percentile_manual(Manual& m) const {
    m.prose(fmt::format(
        "Each report has a row for each set of keys with values since the previous report, with "
        "their number and a column for each percentile: p99 is the {} that 99 % of them do not "
        "exceed. The error is at most 0.8 %.",
        report_.what));
    if (m.has_option("overall"))
      m.prose("With --overall all values since tracing began count, and all keys have rows.");
    m.prose(
        "JSON has an object for each row, and CSV a row for each percentile of it, both also "
        "with the overall values. The keys, with their names in JSON and CSV in parentheses:");
    m.fields(report_.fields);
  }

  void bars_manual(Manual& m) const {
    m.prose(fmt::format(
        "Each report is a linear histogram: a line for each {}, with a number and a bar. "
        "JSON and CSV have a row for each, with these keys:",
        report_.what));
    m.fields(report_.fields);
  }

  void table_manual(Manual& m) const {
    bool screen = report_.layout == AggregateReport::screen;
    if (screen)
      m.prose(
          "On a terminal each report is drawn over the previous one, in the size of the "
          "terminal. The key q quits, s sorts by the next column, r reverses the order, p or "
          "space pauses. With --noclear, or if standard output is not a terminal, reports follow "
          "each other.");
    m.prose(fmt::format(
        "Each report has {} and a row for each key with something to report since the previous "
        "report, sorted by {}, the largest {}; the columns' keys in JSON and CSV are in "
        "parentheses.",
        screen ? "a line with the time of day, the load averages and the number of rows"
               : fmt::format("{}the time of day in brackets",
                             report_.header_when.empty()
                                 ? ""
                                 : fmt::format("with --{} ", report_.header_when)),
        in_turn(report_.sort), report_.largest_last ? "last" : "first"));
    if (m.has_option("top") && report_.top)
      m.prose(fmt::format("Text output has the first {} rows unless --top is given.", report_.top));
    m.fields(own_fields());
    owner_manual(m);
  }

  LiveReport live_;
  const AggregateReport& report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(AggregateReport report) {
  return make_kind(LiveReport{std::move(report)});
}
std::shared_ptr<const ReportKind> make_kind(LiveReport report) {
  return std::make_shared<AggregateKind>(std::move(report));
}

}  // namespace coretap
