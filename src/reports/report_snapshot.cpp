// Snapshots: what the loader itself reads, in the form of a file that users know.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "coretap/report_kind.hpp"
#include "program/session.hpp"
#include "reports/reporter.hpp"
#include "text/columns.hpp"
#include "text/terminal.hpp"
#include "text/value.hpp"

namespace coretap {

namespace {

class SnapshotReporter : public Reporter {
 public:
  explicit SnapshotReporter(const SnapshotReport& report) : report_(report) {}

  bool immediate() const override { return true; }

  void configure(Session& s) override { columns_.choose(s.config, report_.fields); }

  Result<void> open(Session& s) override {
    auto first = report_.read(s.config);
    if (!first) return first.error();
    now_ = std::move(*first);
    return {};
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    auto titles = "time," + columns_.keys();
    for (std::size_t i = 0; i < numbers(); i++)
      titles += fmt::format(",{}_{}", report_.series.element.key, i);
    s.out.line(titles);
  }

  void report(Session& s) override {
    if (shown_) {
      auto next = report_.read(s.config);
      if (!next) {
        s.say(fmt::format("{}: {}", next.error().what, next.error().why));
        return;
      }
      now_ = std::move(*next);
      if (s.config.format == OutputFormat::text) s.out.write("\n");
    }
    shown_ = true;
    s.ledger.shown += now_.records.size();
    auto stamp = iso_time(monotonic_ns());
    if (s.config.format == OutputFormat::text && s.config.given("timestamp"))
      s.out.line(fmt::format("[{}]", wall_time()));
    if (s.config.format == OutputFormat::text && !report_.text)
      s.out.line(cut_to(columns_.titles(), line_limit()));
    for (auto* record : now_.records) show(s, stamp, record);
  }

 private:
  std::size_t numbers() const {
    if (report_.series.key.empty() || now_.records.empty()) return 0;
    return report_.series.read(now_.records[0]).size();
  }

  void show(Session& s, const std::string& stamp, const void* record) const {
    auto& element = report_.series.element;
    if (s.config.format == OutputFormat::json) {
      JsonLine line;
      line.text("type", "snapshot").text("time", stamp);
      columns_.json(line, record, s.names);
      if (!report_.series.key.empty()) {
        line.key(report_.series.key).begin_array();
        for (auto& value : report_.series.read(record)) json_value(line, element, value, s.names);
        line.end_array();
      }
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::csv) {
      auto line = stamp + ',' + columns_.csv(record, s.names);
      if (!report_.series.key.empty())
        for (auto& value : report_.series.read(record))
          line += ',' + csv_value(element, value, s.names);
      s.out.line(line);
    } else {
      s.out.line(report_.text ? report_.text(record)
                              : cut_to(columns_.row(record, s.names), line_limit()));
    }
  }

  const SnapshotReport& report_;
  Columns columns_;
  SnapshotReport::Reading now_;
  bool shown_ = false;
};

class SnapshotKind : public ReportKind {
 public:
  explicit SnapshotKind(SnapshotReport report) : report_(std::move(report)) {}

  std::string_view name() const override { return "snapshot"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<SnapshotReporter>(report_);
  }
  std::vector<Field> fields() const override { return report_.fields; }
  bool has_program() const override { return false; }
  std::string source() const override { return std::string(report_.source); }

  std::vector<JsonKind> json() const override {
    JsonKind kind{"snapshot", "several a report", {type_key("snapshot"), time_key()}};
    for (auto& f : report_.fields)
      if (!f.table_only) kind.keys.push_back(key_of(f, report_.prototype.get(), f.only_with));
    auto& series = report_.series;
    if (!series.key.empty())
      kind.keys.push_back(
          key(std::string(series.key), "array of numbers", std::string(series.element.doc)));
    return {kind};
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key()};
    for (auto& f : report_.fields)
      if (!f.table_only) all.push_back(key_of(f, report_.prototype.get(), f.only_with));
    auto& element = report_.series.element;
    if (!report_.series.key.empty())
      all.push_back(key(fmt::format("{}_N", element.key), "number",
                        fmt::format("for each N from 0 on: {}", element.doc)));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose(fmt::format(
        "What {} says at that moment{}: at once, and again each interval. Nothing is "
        "attached or loaded, and no capability is needed.",
        report_.source,
        report_.format_of.empty() ? "" : fmt::format(", in the form of {}", report_.format_of)));
    if (m.has_option("timestamp")) m.prose("With --timestamp each report has the time before it.");
    if (!report_.text) m.fields(report_.fields);
  }

  Result<void> check(Config& c) const override {
    if (c.filters_tasks())
      return Error{"this report is about the whole machine and cannot be filtered by task",
                   {},
                   "leave out the command and the filters by task",
                   kUsage};
    return {};
  }

 private:
  SnapshotReport report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(SnapshotReport report) {
  return std::make_shared<SnapshotKind>(std::move(report));
}

}  // namespace coretap
