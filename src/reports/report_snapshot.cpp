// Snapshots: state that the loader reads, in the format of a well-known file, or the output of an
// iterator program.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "metrics/exporter.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/lacking.hpp"
#include "reports/reporter.hpp"
#include "reports/snapshot_rows.hpp"
#include "stacks/stack_names.hpp"
#include "text/columns.hpp"
#include "text/terminal.hpp"
#include "text/value.hpp"

namespace coretap {

namespace {

bool has_stacks(const std::vector<Field>& fields) {
  return std::ranges::any_of(fields, &Field::is_stack);
}

class SnapshotReporter : public Reporter {
 public:
  explicit SnapshotReporter(const SnapshotReport& report) : report_(report) {}

  bool immediate() const override { return !report_.counting; }

  void configure(Session& s) override {
    head_.choose(s.config, report_.head.fields);
    columns_.choose(s.config, report_.fields);
    if (!has_stacks(report_.fields)) return;
    set_variable(s, "stack_depth", s.stack_depth());
    // Opens the kernel's symbols now, while this process still has its capabilities.
    stacks_.emplace(Stacks::Style{.offsets = true});
    s.names.context.kernel_frames = [this, &s](const stack& found) {
      return kernel_frames(s, *stacks_, found);
    };
  }

  Result<void> ready(Session& s) override {
    if (stacks_) s.names.context.frames_of(stack{});  // reads the kernel's symbols, which is slow
    return {};
  }

  Result<void> open(Session& s) override {
    if (report_.counting) {
      counting_ = report_.counting(s.config);
      return counting_->start(s);
    }
    if (!report_.program.empty())
      if (auto r = s.source->open_iterator(report_.program); !r) return r;
    return read(s);
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    auto titles = joined("time", joined(head_.keys(), columns_.keys()));
    for (std::size_t i = 0; i < numbers(); i++)
      titles += fmt::format(",{}_{}", report_.series.element.key, i);
    s.out.line(titles);
  }

  void report(Session& s) override {
    const bool is_text = s.config.format == OutputFormat::text;
    if (shown_ || counting_) {  // open() has made the first reading
      if (auto r = read(s); !r) {
        s.say(fmt::format("{}: {}", r.error().what, r.error().why));
        return;
      }
      if (shown_ && is_text && !report_.fields.empty()) s.out.write("\n");
    }
    shown_ = true;
    s.ledger.shown += seen_;
    if (s.exporter) {
      s.exporter->set_reading(s, now_.records);
      if (top_) s.exporter->set_totals(s, top_.get());
      return;
    }
    auto stamp = iso_time(monotonic_ns());
    if (is_text && s.config.given("timestamp")) s.out.line(wall_time());
    if (top_) show_head(s, stamp);
    if (is_text && !report_.text && !report_.fields.empty() && !(top_ && now_.records.empty()))
      s.out.title(cut_to(columns_.titles(), line_limit()));
    for (auto* record : now_.records) show(s, stamp, record);
  }

 private:
  static std::string joined(std::string one, const std::string& other) {
    if (!one.empty() && !other.empty()) one += ',';
    return one + other;
  }

  Result<void> read(Session& s) {
    if (counting_) {
      auto next = counting_->next();
      if (!next) return next.error();
      seen_ = next->rows.records.size();
      now_ = std::move(next->rows);
      top_ = std::move(next->head);
      return {};
    }
    if (report_.program.empty()) {
      auto next = report_.read(s.config);
      if (!next) return next.error();
      now_ = std::move(*next);
      seen_ = now_.records.size();
      return {};
    }
    auto bytes = s.source->pass(report_.program, report_.record_size);
    if (!bytes) return bytes.error();
    auto records = records_of(std::move(*bytes), report_.record_size);
    if (s.recorder)
      for (auto* record : records.records) ask_all(report_.fields, record, s.names);
    if (report_.head.read) {
      auto top = report_.head.read(records.records);
      if (!top) return top.error();
      top_ = std::move(*top);
    }
    seen_ = records.records.size();
    now_ = arranged(s, std::move(records));
    return {};
  }

  SnapshotReport::Reading arranged(const Session& s, SnapshotReport::Reading records) const {
    if (report_.fields.empty()) return {};
    auto rows = report_.key_size ? groups_of(records, report_.key_size) : std::move(records);
    for (auto& f : report_.fields)
      if (f.key == report_.sort) sort_by(rows, f, s.names.context);
    if (auto top = s.config.rows.top; top && rows.records.size() > top) rows.records.resize(top);
    return rows;
  }

  std::size_t numbers() const {
    if (report_.series.key.empty() || now_.records.empty()) return 0;
    return report_.series.read(now_.records[0]).size();
  }

  void show_head(Session& s, const std::string& stamp) const {
    if (s.config.format == OutputFormat::json) {
      s.out.line(head_.line({false, report_.head.type, s.tool.name, stamp}, top_.get(), s.names));
    } else if (s.config.format == OutputFormat::text) {
      s.out.line(fmt::format("{} {}", wall_time(), report_.head.text(top_.get())));
    } else if (now_.records.empty()) {
      auto keys = columns_.keys();
      s.out.line(
          joined(stamp, head_.csv(top_.get(), s.names)) +
          (keys.empty() ? "" : ",") +  // empty cells of a row
          std::string(static_cast<std::size_t>(std::count(keys.begin(), keys.end(), ',')), ','));
    }
  }

  void show(Session& s, const std::string& stamp, const void* record) const {
    auto& element = report_.series.element;
    if (s.config.format == OutputFormat::json) {
      JsonLine line("snapshot", s.tool.name);
      line.text("time", stamp);
      columns_.json(line, record, s.names);
      if (!report_.series.key.empty()) {
        line.key(report_.series.key).begin_array();
        for (auto& value : report_.series.read(record)) json_value(line, element, value, s.names);
        line.end_array();
      }
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::csv) {
      auto line = joined(stamp, top_ ? head_.csv(top_.get(), s.names) : "");
      line = joined(line, columns_.csv(record, s.names));
      if (!report_.series.key.empty())
        for (auto& value : report_.series.read(record))
          line += ',' + csv_value(element, value, s.names);
      s.out.line(line);
    } else {
      s.out.line(report_.text ? report_.text(record)
                              : cut_to(columns_.row(record, s.names), line_limit()));
      for (auto& line : columns_.below(record, s.names)) s.out.line(cut_to(line, line_limit()));
    }
  }

  const SnapshotReport& report_;
  Columns head_, columns_;
  std::optional<Stacks> stacks_;
  std::unique_ptr<Counting> counting_;
  SnapshotReport::Reading now_;
  std::shared_ptr<const void> top_;  ///< the record above the rows
  std::size_t seen_ = 0;             ///< number of records before grouping
  bool shown_ = false;
};

class SnapshotKind : public ReportKind {
 public:
  explicit SnapshotKind(SnapshotReport report) : report_(std::move(report)) {}

  bool names_processes() const override { return false; }  // its program excludes the loader
  std::string_view name() const override { return "snapshot"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<SnapshotReporter>(report_);
  }
  std::vector<Field> fields() const override {
    auto all = report_.head.fields;
    all.insert(all.end(), report_.fields.begin(), report_.fields.end());
    return all;
  }
  MetricShape metrics(const Config&) const override {
    if (report_.counting) return {};  // of an interval, which exporters do not have
    MetricShape shape{.kind = MetricShape::readings, .fields = report_.fields};
    for (auto f : report_.head.fields) {
      if (std::holds_alternative<double>(f.read(report_.head.prototype.get(), {})))
        f.format = as::thousandths;
      shape.totals.push_back(f);
    }
    auto& series = report_.series;
    if (!series.key.empty())
      shape.elements = {.name = series.metric,
                        .label = series.element.key,
                        .doc = series.element.doc,
                        .read = series.read};
    return shape;
  }
  bool can_be_recorded() const override { return report_.recordable; }
  std::string_view record_type() const override { return report_.type; }
  /// Keys of groups are the first members of a record; the head is made from whole records.
  std::shared_ptr<const ReportKind> without(const std::vector<Lacking>& lacking,
                                            std::vector<std::string>& said) const override {
    auto report = report_;
    const auto size = report.key_size ? report.key_size : report.record_size;
    leave_empty(report.fields, size, lacking, said);
    return std::make_shared<SnapshotKind>(std::move(report));
  }
  bool has_program() const override { return !report_.program.empty(); }
  bool opens_perf_events() const override { return report_.perf_events; }
  bool kernel_symbols() const override { return has_stacks(report_.fields); }
  std::string source() const override { return std::string(report_.source); }

  std::vector<JsonKind> json() const override {
    std::vector<JsonKind> all;
    auto& head = report_.head;
    if (!head.fields.empty()) {
      all.push_back({std::string(head.type),
                     "one per report",
                     {type_key(std::string(head.type)), time_key()}});
      add(all.back().keys, head.fields, head.prototype.get(), key_of);
    }
    if (report_.fields.empty()) return all;
    JsonKind kind{"snapshot", "several per report", {type_key("snapshot"), time_key()}};
    add(kind.keys, report_.fields, report_.prototype.get(), key_of);
    auto& series = report_.series;
    if (!series.key.empty())
      kind.keys.push_back(
          key(std::string(series.key), "array of numbers", std::string(series.element.doc)));
    all.push_back(std::move(kind));
    return all;
  }

  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key()};
    add(all, report_.head.fields, report_.head.prototype.get(), csv_key_of);
    add(all, report_.fields, report_.prototype.get(), csv_key_of);
    auto& element = report_.series.element;
    if (!report_.series.key.empty())
      all.push_back(key(fmt::format("{}_N", element.key), "number",
                        fmt::format("for each N from 0 on: {}", element.doc)));
    return all;
  }

  void manual(Manual& m) const override {
    if (report_.counting)
      m.prose(
          fmt::format("What {} counted since the previous report, or since the start. No "
                      "program is loaded.",
                      report_.source));
    else
      m.prose(fmt::format(
          "What {} reports at that moment{}: immediately, and again at each interval.{}",
          report_.source,
          report_.format_of.empty() ? "" : fmt::format(", in the form of {}", report_.format_of),
          has_program() ? "" : " Nothing is attached or loaded, and no capability is needed."));
    if (m.has_option("timestamp")) m.prose("With --timestamp each report is preceded by the time.");
    if (report_.head.text) {
      m.prose(fmt::format(
          "A report starts with a line, which in JSON is an object of type \"{}\", and in CSV a "
          "part of each row:",
          report_.head.type));
      m.fields(report_.head.fields);
      if (!report_.fields.empty()) m.prose("Rows follow:");
    }
    if (!report_.text && !report_.fields.empty()) m.fields(report_.fields);
    if (kernel_symbols())
      m.prose("In text the frames of a stack follow its row, the innermost function first.");
  }

  Result<void> check(Config& c) const override {
    if (!has_program() && !report_.counting && c.filters_tasks())
      return Error{"this report is about the whole machine and cannot be filtered by task",
                   {},
                   "leave out the command and the filters by task",
                   kUsage};
    return {};
  }

 private:
  static void add(std::vector<OutputKey>& keys, const std::vector<Field>& fields,
                  const void* prototype, OutputKey (*make)(const Field&, const void*, When)) {
    for (auto& f : fields)
      if (!f.table_only) keys.push_back(make(f, prototype, f.only_with));
  }

  SnapshotReport report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(SnapshotReport report) {
  return std::make_shared<SnapshotKind>(std::move(report));
}

}  // namespace coretap
