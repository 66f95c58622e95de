// Counter tools: one row per interval, from per-CPU counters that only grow.
#include <bpf/libbpf.h>

#include <vector>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "program/session.hpp"
#include "reports/reporters.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

class SumReporter : public Reporter {
 public:
  explicit SumReporter(const SumReport& report)
      : report_(report), before_(report.record_size / 8) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields);
    timed_ = s.config.holds(report_.time_when);
  }

  Result<void> open(Session& s) override { return slots_.open(s.map("sums")); }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("time," + columns_.keys());
    else if (s.config.format == OutputFormat::text)
      s.out.line((timed_ ? fmt::format("{:<8} ", "TIME") : "") + columns_.titles());
  }

  void report(Session& s) override {
    std::vector<std::uint64_t> now(before_.size()), delta(before_.size());
    slots_.sum(now.data(), now.size());
    for (std::size_t i = 0; i < now.size(); i++) delta[i] = now[i] - before_[i];
    before_ = now;
    s.ledger.shown++;
    if (s.config.format == OutputFormat::json) {
      JsonLine line;
      line.text("type", "interval").text("time", iso_time(monotonic_ns()));
      columns_.json(line, delta.data(), s.names);
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::csv) {
      s.out.line(iso_time(monotonic_ns()) + ',' + columns_.csv(delta.data(), s.names));
    } else {
      s.out.line((timed_ ? wall_time() + ' ' : "") + columns_.row(delta.data(), s.names));
    }
  }

 private:
  const SumReport& report_;
  Columns columns_;
  CpuSlots slots_;
  bool timed_ = false;
  std::vector<std::uint64_t> before_;
};

}  // namespace

std::unique_ptr<Reporter> make(const SumReport& report) {
  return std::make_unique<SumReporter>(report);
}

}  // namespace coretap
