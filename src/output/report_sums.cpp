// Counter tools: one row per interval, from per-CPU counters that only grow.
#include <bpf/libbpf.h>

#include <vector>

#include <fmt/format.h>

#include "core/clock.hpp"
#include "core/session.hpp"
#include "output/reporters.hpp"

namespace coretap {

namespace {

class SumReporter : public Reporter {
 public:
  explicit SumReporter(const SumReport& report)
      : report_(report), before_(report.record_size / 8) {}

  void configure(Session& s) override {
    for (auto& f : report_.fields)
      if (s.config.holds(f.when) || s.config.format != OutputFormat::text) fields_.push_back(&f);
  }

  Result<void> open(Session& s) override { return slots_.open(s.map("sums")); }

  void begin(Session& s) override {
    std::string header;
    if (s.config.format == OutputFormat::csv) {
      header = "time";
      for (auto* f : fields_) header += fmt::format(",{}", f->key);
    } else if (s.config.format == OutputFormat::text) {
      if (s.config.given("timestamp")) header = fmt::format("{:<8} ", "TIME");
      for (auto* f : fields_)
        header += f->format.width < 0 ? fmt::format("{:<{}} ", f->title, -f->format.width)
                                      : fmt::format("{:>{}} ", f->title, f->format.width);
    } else {
      return;
    }
    while (header.ends_with(' ')) header.pop_back();
    s.out.line(header);
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
      for (auto* f : fields_) {
        line.key(f->key);
        json_value(line, *f, f->read(delta.data()), s.names);
      }
      s.out.line(line.finish());
      return;
    }
    std::string row;
    if (s.config.format == OutputFormat::csv) {
      row = iso_time(monotonic_ns());
      for (auto* f : fields_) row += ',' + csv_value(*f, f->read(delta.data()), s.names);
    } else {
      if (s.config.given("timestamp")) row = wall_time() + ' ';
      for (auto* f : fields_) row += show(f->format, f->read(delta.data()), s.names) + ' ';
      while (row.ends_with(' ')) row.pop_back();
    }
    s.out.line(row);
  }

 private:
  const SumReport& report_;
  std::vector<const Field*> fields_;
  CpuSlots slots_;
  std::vector<std::uint64_t> before_;
};

}  // namespace

std::unique_ptr<Reporter> make(const SumReport& report) {
  return std::make_unique<SumReporter>(report);
}

}  // namespace coretap
