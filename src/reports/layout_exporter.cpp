// Rows for an exporter: prints nothing.
#include "metrics/exporter.hpp"
#include "reports/aggregate_layout.hpp"

namespace coretap {

namespace {

class ExporterLayout : public AggregateLayout {
 public:
  void show(Session& s, AggregateReading& r) override {
    for (auto& row : r.rows) s.exporter->add(s, row.data());
    s.exporter->set_totals(s, r.totals.data());
  }
};

}  // namespace

std::unique_ptr<AggregateLayout> make_exporter_layout() {
  return std::make_unique<ExporterLayout>();
}

}  // namespace coretap
