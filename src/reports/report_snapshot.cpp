// Snapshots: what the loader itself reads, in the form of a file that users know.
#include <fmt/format.h>

#include "base/clock.hpp"
#include "program/session.hpp"
#include "reports/reporters.hpp"
#include "text/columns.hpp"
#include "text/value.hpp"

namespace coretap {

namespace {

class SnapshotReporter : public Reporter {
 public:
  explicit SnapshotReporter(const SnapshotReport& report) : report_(report) {}

  bool at_once() const override { return true; }

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
    for (auto* record : now_.records) show(s, stamp, record);
  }

 private:
  std::size_t numbers() const {
    return now_.records.empty() ? 0 : report_.series.read(now_.records[0]).size();
  }

  void show(Session& s, const std::string& stamp, const void* record) const {
    auto& element = report_.series.element;
    if (s.config.format == OutputFormat::json) {
      JsonLine line;
      line.text("type", "snapshot").text("time", stamp);
      columns_.json(line, record, s.names);
      line.key(report_.series.key).begin_array();
      for (auto& value : report_.series.read(record)) json_value(line, element, value, s.names);
      line.end_array();
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::csv) {
      auto line = stamp + ',' + columns_.csv(record, s.names);
      for (auto& value : report_.series.read(record))
        line += ',' + csv_value(element, value, s.names);
      s.out.line(line);
    } else {
      s.out.line(report_.text(record));
    }
  }

  const SnapshotReport& report_;
  Columns columns_;
  SnapshotReport::Reading now_;
  bool shown_ = false;
};

}  // namespace

std::unique_ptr<Reporter> make(const SnapshotReport& report) {
  return std::make_unique<SnapshotReporter>(report);
}

}  // namespace coretap
