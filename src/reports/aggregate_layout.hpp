// How the rows of an aggregate are shown; one class per layout.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "coretap/reports.hpp"
#include "program/session.hpp"
#include "reports/aggregate_rows.hpp"

namespace coretap {

inline bool is_stack(const Field& f) { return f.format.kind == Format::stack; }

/// What a layout shows at one report.
struct AggregateReading {
  std::vector<std::string>& rows;            ///< key and counters of each, in order
  const AggregateRows& order;                ///< sorts them again
  const std::vector<std::uint64_t>& totals;  ///< AggregateReport::totals, since tracing began
  std::string stamp;                         ///< time of JSON and CSV
};

class AggregateLayout {
 public:
  virtual ~AggregateLayout() = default;
  virtual void configure(Session&) {}
  virtual Result<void> open(Session&) { return {}; }
  /// Before the first report: titles, or the terminal.
  virtual void begin(Session&) {}
  virtual void show(Session&, AggregateReading&) = 0;
  virtual Result<void> finish(Session&) { return {}; }
  /// For Reporter's functions of these names.
  virtual std::vector<int> wakes() const { return {}; }
  virtual std::vector<int> signals() const { return {}; }
  virtual void poll(Session&, AggregateRows&) {}
  virtual void signalled(Session&, int) {}
  virtual bool wants_end() const { return false; }
  virtual bool keeps_file() const { return false; }
};

std::unique_ptr<AggregateLayout> make_histogram_layout(const AggregateReport& report);
std::unique_ptr<AggregateLayout> make_heatmap_layout(const AggregateReport& report);
std::unique_ptr<AggregateLayout> make_table_layout(const AggregateReport& report);
std::unique_ptr<AggregateLayout> make_interval_layout(const AggregateReport& report);
std::unique_ptr<AggregateLayout> make_percentile_layout(const AggregateReport& report);
/// Instead of any of them, for Session::exporter.
std::unique_ptr<AggregateLayout> make_exporter_layout();

/// "disk = sda, flags = Write": the keys of a histogram that are asked for, without stacks.
std::string histogram_title(const AggregateReport& report, Session& s, const std::string& row);

/// Columns of CSV, and keys of JSON, that follow a percentile layout's keys.
std::vector<OutputKey> percentile_columns(const HistogramScale& scale);
std::vector<OutputKey> percentile_keys(const HistogramScale& scale);

}  // namespace coretap
