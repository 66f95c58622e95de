// How the rows of an aggregate are shown; one class per layout.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "coretap/reports.hpp"
#include "lib/aggregate/fine.h"
#include "program/session.hpp"
#include "reports/aggregate_rows.hpp"

namespace coretap {

/// The data that a layout shows in one report.
struct AggregateReading {
  std::vector<std::string>& rows;            ///< key and counters of each row, in order
  const AggregateRows& order;                ///< to sort them again
  const std::vector<std::uint64_t>& totals;  ///< AggregateReport::totals, since tracing started
  std::string stamp;                         ///< time for JSON and CSV
};

class AggregateLayout {
 public:
  virtual ~AggregateLayout() = default;
  virtual void configure(Session&) {}
  virtual Result<void> open(Session&) { return {}; }
  /// Before the first report: prints titles, or sets up the terminal.
  virtual void begin(Session&) {}
  virtual void show(Session&, AggregateReading&) = 0;
  virtual Result<void> finish(Session&) { return {}; }
  /// For the functions of these names in Reporter.
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
std::unique_ptr<AggregateLayout> make_percentile_layout(const AggregateReport& report);

/// The load averages, as /proc/loadavg has them.
std::string machine_loads();

/// Histograms of a run that is recorded, or was, may have fine slots (bpf/lib/aggregate/fine.h).
void set_fine(AggregateReport& report);
bool is_fine(const AggregateReport& report);
fine_hist fine_hist_of(const AggregateReport& report, const std::string& row);
/// Fine slots are folded; `step`: of its scale.
hist hist_of(const AggregateReport& report, const std::string& row, std::uint64_t step);
/// "disk = sda, flags = Write": the requested keys of a histogram, without stacks.
std::string histogram_title(const AggregateReport& report, Session& s, const std::string& row);

/// CSV columns and JSON keys that follow the keys of a percentile layout.
std::vector<OutputKey> percentile_columns(const HistogramScale& scale);
std::vector<OutputKey> percentile_keys(const HistogramScale& scale);

}  // namespace coretap
