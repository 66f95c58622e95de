// One row per interval, from counters without a key.
#include <fmt/format.h>

#include "coretap/clock.hpp"
#include "reports/aggregate_layout.hpp"
#include "text/columns.hpp"
#include "text/terminal.hpp"

namespace coretap {

namespace {

class IntervalLayout : public AggregateLayout {
 public:
  explicit IntervalLayout(const AggregateReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields);
    timed_ = s.config.holds(report_.time_when);
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("time," + columns_.keys());
    else if (s.config.format == OutputFormat::text)
      s.out.title(
          cut_to((timed_ ? fmt::format("{:<8} ", "TIME") : "") + columns_.titles(), line_limit()));
  }

  void show(Session& s, AggregateReading& r) override {
    for (auto& row : r.rows) {
      s.ledger.shown++;
      if (s.config.format == OutputFormat::json) {
        JsonLine line("interval", s.tool.name);
        line.text("time", r.stamp);
        columns_.json(line, row.data(), s.names);
        s.out.line(line.finish());
      } else if (s.config.format == OutputFormat::csv) {
        s.out.line(r.stamp + ',' + columns_.csv(row.data(), s.names));
      } else {
        s.out.line(cut_to((timed_ ? wall_time() + ' ' : "") + columns_.row(row.data(), s.names),
                          line_limit()));
      }
    }
  }

 private:
  const AggregateReport& report_;
  Columns columns_;
  bool timed_ = false;
};

}  // namespace

std::unique_ptr<AggregateLayout> make_interval_layout(const AggregateReport& report) {
  return std::make_unique<IntervalLayout>(report);
}

}  // namespace coretap
