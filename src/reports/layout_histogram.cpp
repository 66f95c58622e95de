// One histogram for each set of keys.
#include <cstring>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "reports/aggregate_layout.hpp"
#include "reports/histogram.hpp"
#include "text/terminal.hpp"
#include "text/value.hpp"

namespace coretap {

namespace {

class HistogramLayout : public AggregateLayout {
 public:
  explicit HistogramLayout(const AggregateReport& report) : report_(report), scale_(report.scale) {}

  void configure(Session& s) override {
    scale_.step = step_of(scale_, s.config);
    for (auto& key : report_.fields)
      if (s.config.holds(key.shown_with)) keys_.push_back(&key);
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    std::string header = "time,";
    for (auto* key : keys_) header += fmt::format("{},", key->key);
    for (auto& t : report_.totals) header += fmt::format("{},", t.key);
    for (auto& k : slot_keys(scale_)) header += k.name + (k.name == "count" ? "" : ",");
    s.out.line(header);
  }

  void show(Session& s, AggregateReading& r) override {
    if (s.config.format == OutputFormat::text) {
      s.out.line(s.config.given("timestamp") ? "\n" + wall_time() : "");
      if (report_.totals_size) s.out.line(totals_line(s, r));
    }
    // If there is a single histogram, or totals, also writes intervals without events.
    if (r.rows.empty() && s.config.format != OutputFormat::text &&
        (keys_.empty() || !report_.totals.empty()))
      r.rows.emplace_back(report_.row_size(), '\0');
    for (auto& row : r.rows) {
      auto h = hist_of(report_, row, scale_.step);
      if (s.config.format == OutputFormat::json)
        json(s, r, row, h);
      else if (s.config.format == OutputFormat::csv)
        csv(s, r, row, h);
      else
        text(s, row, h);
    }
  }

 private:
  std::string totals_line(Session& s, const AggregateReading& r) const {
    std::string values;
    for (auto& t : report_.totals) {
      if (!s.config.holds(t.shown_with)) continue;
      auto format = t.format;
      format.width = 0;
      values += (values.empty() ? "" : "/") +
                coretap::show(format, t.read(r.totals.data(), s.names.context), s.names);
    }
    return fmt::format("{}: {}", report_.totals_title, values);
  }

  void json(Session& s, const AggregateReading& r, const std::string& row, const hist& h) const {
    JsonLine line("histogram", s.tool.name);
    line.text("time", r.stamp);
    for (auto* k : keys_) json_field(line, *k, row.data(), s.names);
    for (auto& t : report_.totals) json_field(line, t, r.totals.data(), s.names);
    json_histogram(line, h, scale_);
    if (s.fine_slots && is_fine(report_)) json_fine(line, fine_hist_of(report_, row), scale_.step);
    s.out.line(line.finish());
  }

  void csv(Session& s, const AggregateReading& r, const std::string& row, const hist& h) const {
    std::string keys;
    for (auto* k : keys_)
      keys += csv_value(*k, k->read(row.data(), s.names.context), s.names) + ',';
    for (auto& t : report_.totals)
      keys += csv_value(t, t.read(r.totals.data(), s.names.context), s.names) + ',';
    bool any = false;
    for (int i = 0; i < HIST_SLOTS; i++) {
      if (!h.slots[i]) continue;
      s.out.line(
          fmt::format("{},{}{},{},{}", r.stamp, keys, scale_.from(i), scale_.below(i), h.slots[i]));
      any = true;
    }
    if (!any && !report_.totals.empty()) s.out.line(fmt::format("{},{},,0", r.stamp, keys));
  }

  void text(Session& s, const std::string& row, const hist& h) const {
    auto title = histogram_title(report_, s, row);
    if (!title.empty()) s.out.line(title);
    for (auto* k : keys_) frames(s, *k, row);
    s.out.write(draw_histogram(h, scale_, text_columns()));
    if (report_.averages || (!report_.extension.empty() && s.config.given(report_.extension)))
      s.out.line(histogram_summary(h, scale_));
    if (!title.empty()) s.out.write("\n");
  }

  static void frames(Session& s, const Field& key, const std::string& row) {
    if (!key.is_stack()) return;
    auto value = key.read(row.data(), s.names.context);
    if (auto* all = std::get_if<Frames>(&value))
      for (auto& frame : *all) s.out.line(frame_line(frame));
  }

  const AggregateReport& report_;
  HistogramScale scale_;
  std::vector<const Field*> keys_;
};

}  // namespace

void set_fine(AggregateReport& report) {
  report.value_size = sizeof(fine_hist);
  report.event_counters = HIST_FINE_SLOTS;
}

bool is_fine(const AggregateReport& report) {
  return report.layout == AggregateReport::histograms && report.value_size == sizeof(fine_hist);
}

fine_hist fine_hist_of(const AggregateReport& report, const std::string& row) {
  fine_hist h;
  memcpy(&h, row.data() + report.value_at, sizeof h);
  return h;
}

hist hist_of(const AggregateReport& report, const std::string& row, std::uint64_t step) {
  if (is_fine(report)) return folded(fine_hist_of(report, row), step);
  hist h;
  memcpy(&h, row.data() + report.value_at, sizeof h);
  return h;
}

std::string histogram_title(const AggregateReport& report, Session& s, const std::string& row) {
  std::string title;
  for (auto& k : report.fields) {
    auto format = k.format;
    if (!s.config.holds(k.shown_with) || k.is_stack()) continue;
    format.width = 0;
    auto value = coretap::show(format, k.read(row.data(), s.names.context), s.names);
    // As in similar tools: "pid = 123 comm"; a field without a title is appended to the last one.
    title += k.title.empty() ? (title.empty() ? "" : " ") + value
                             : fmt::format("{}{} = {}", title.empty() ? "" : ", ", k.title, value);
  }
  return title;
}

std::unique_ptr<AggregateLayout> make_histogram_layout(const AggregateReport& report) {
  return std::make_unique<HistogramLayout>(report);
}

}  // namespace coretap
