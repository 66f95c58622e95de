#include "tools/memory/workset/report_counters.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "coretap/report_kind.hpp"
#include "metrics/exporter.hpp"
#include "program/session.hpp"
#include "reports/reporter.hpp"
#include "text/columns.hpp"
#include "text/terminal.hpp"

namespace coretap {

namespace {

using workset::Groups;

std::uint64_t refaults(const WorksetRow& row) {
  return row.added[workset::refaulted_anon].value_or(0) +
         row.added[workset::refaulted_file].value_or(0);
}

class WorksetReporter : public Reporter {
 public:
  explicit WorksetReporter(const WorksetReport& report) : report_(report) {}

  void configure(Session& s) override { columns_.choose(s.config, report_.fields); }

  Result<void> open(Session& s) override {
    by_group_ = !s.config.rows.by.empty();
    if (!by_group_) {
      auto host = workset::host_counters();
      if (!host) return host.error();
      host_ = *host;
      return {};
    }
    auto groups = workset::read_groups();
    if (!groups) return groups.error();
    groups_ = std::move(*groups);
    return {};
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("time," + columns_.keys());
    else if (s.config.format == OutputFormat::text && !by_group_)
      s.out.title(cut_to(fmt::format("{:<8} {}", "TIME", columns_.titles()), line_limit()));
  }

  void report(Session& s) override {
    auto rows = by_group_ ? rows_by_group(s) : host_row(s);
    s.ledger.shown += rows.size();
    if (s.exporter) {
      for (auto& row : rows) s.exporter->add(s, &row);
      return;
    }
    if (auto top = s.config.rows.top; top && rows.size() > top) rows.resize(top);
    if (s.config.format == OutputFormat::text) {
      text(s, rows);
      return;
    }
    const bool csv = s.config.format == OutputFormat::csv;
    auto stamp = iso_time(monotonic_ns());
    for (auto& row : rows)
      s.out.line(
          columns_.line({csv, by_group_ ? "row" : "interval", s.tool.name, stamp}, &row, s.names));
  }

 private:
  std::vector<WorksetRow> host_row(Session& s) {
    auto now = workset::host_counters();
    if (!now) {
      s.complete(now.error());
      return {};
    }
    auto before = std::exchange(host_, *now);
    return {{workset::growth(host_, &before)}};
  }

  /// A cgroup that is new since the last report has all its counts from this interval.
  std::vector<WorksetRow> rows_by_group(Session& s) {
    auto now = workset::read_groups();
    if (!now) {
      s.complete(now.error());
      return {};
    }
    auto before = std::exchange(groups_, std::move(*now));
    std::vector<WorksetRow> rows;
    for (auto& [id, group] : groups_) {
      auto found = before.find(id);
      auto* old = found == before.end() ? nullptr : &found->second.counters;
      if (auto added = workset::growth(group.counters, old); workset::any(added))
        rows.push_back({added, group.path, id});
    }
    auto amount = [](const WorksetRow& row) {
      return std::pair(refaults(row), row.added[workset::evicted].value_or(0));
    };
    std::ranges::stable_sort(rows, std::ranges::greater(), amount);
    return rows;
  }

  void text(Session& s, const std::vector<WorksetRow>& rows) const {
    auto limit = line_limit();
    if (by_group_) {
      s.out.line(wall_time());
      s.out.title(cut_to(columns_.titles(), limit));
    }
    for (auto& row : rows)
      s.out.line(cut_to((by_group_ ? "" : wall_time() + ' ') + columns_.row(&row, s.names), limit));
    if (by_group_) s.out.write("\n");
  }

  const WorksetReport& report_;
  Columns columns_;
  workset::Counters host_ = {};
  Groups groups_;
  bool by_group_ = false;
};

class WorksetKind : public ReportKind {
 public:
  explicit WorksetKind(WorksetReport report) : report_(std::move(report)) {}

  std::string_view name() const override { return "counters"; }
  std::unique_ptr<Reporter> reporter() const override {
    return std::make_unique<WorksetReporter>(report_);
  }
  std::vector<Field> fields() const override { return report_.fields; }
  bool adds_up() const override { return true; }
  bool has_program() const override { return false; }
  std::string source() const override { return "/proc/vmstat, or memory.stat of each cgroup"; }

  MetricShape metrics(const Config& config) const override {
    const bool by_group = !config.rows.by.empty();
    MetricShape shape{.kind = by_group ? MetricShape::rows : MetricShape::one_row};
    for (auto& f : report_.fields)
      if (f.only_with.empty() || config.holds(f.only_with)) shape.fields.push_back(f);
    return shape;
  }

  std::vector<JsonKind> json() const override {
    JsonKind host{"interval", "one per report", {type_key("interval"), time_key()}};
    JsonKind group{"row", "one per cgroup that changed", {type_key("row"), time_key()}};
    const WorksetRow prototype;
    for (auto& f : report_.fields) {
      if (f.only_with != kNamedByOnly) host.keys.push_back(key_of(f, &prototype));
      if (f.only_with != "!by") group.keys.push_back(key_of(f, &prototype));
    }
    return {host, group};
  }
  std::vector<OutputKey> csv() const override {
    std::vector<OutputKey> all = {time_key()};
    const WorksetRow prototype;
    for (auto& f : report_.fields) all.push_back(csv_key_of(f, &prototype, f.only_with));
    return all;
  }

  void manual(Manual& m) const override {
    m.prose(
        "A line per interval, with the growth of the kernel's counters in /proc/vmstat; with --by "
        "cgroup a table per interval, with a row for each cgroup whose counters grew, most refaults "
        "first. Nothing is attached or loaded, and no capability is needed.");
    m.fields(report_.fields);
  }

  Result<void> check(Config& c) const override {
    for (auto& by : c.rows.by)
      if (by != "cgroup")
        return usage(fmt::format("--by: workset has no rows by '{}'", by), "--by cgroup");
    if (c.rows.top && c.rows.by.empty())
      return usage("--top has no meaning for one row", "add --by cgroup");
    if (c.tasks != Config::Tasks())
      return Error{"the kernel does not count refaults by task",
                   {},
                   "--distances counts those of some tasks only",
                   kUsage};
    return {};
  }

 private:
  WorksetReport report_;
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(WorksetReport report) {
  return std::make_shared<WorksetKind>(std::move(report));
}

}  // namespace coretap
