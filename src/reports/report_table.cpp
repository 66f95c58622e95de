// Table tools: counters by key, the largest rows first.
#include <bpf/libbpf.h>

#include <cstring>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "reports/reporters.hpp"
#include "reports/table.hpp"
#include "text/columns.hpp"

namespace coretap {

namespace {

class TableReporter : public Reporter {
 public:
  explicit TableReporter(const TableReport& report) : report_(report) {}

  void configure(Session& s) override {
    columns_.choose(s.config, report_.fields);
    keyed_ = report_.keyed_when.empty() || s.config.holds(report_.keyed_when);
    rows_.order(report_, s.config.sort.empty() ? report_.sort : s.config.sort, s.config.top,
                report_.largest_last && s.config.sort.empty());
  }

  Result<void> open(Session& s) override {
    return keyed_ ? Result<void>() : slots_.open(s.map("table_slots"));
  }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv) s.out.line("time," + columns_.keys());
  }

  void report(Session& s) override {
    auto before = rows_.events();
    auto rows = rows_.since_last(read(s));
    if (keyed_) forget_idle(s.map("table"), rows_.growth());
    s.ledger.shown += rows_.events() - before;
    show(s, rows);
  }

 private:
  using Counters = TableRows::Counters;

  TableRows::Reading read(Session& s) const {
    TableRows::Reading all;
    std::size_t counters = report_.value_size / 8;
    if (keyed_) {
      each_entry(s.map("table"), [&](const char* key, const char* value) {
        Counters c(counters);
        memcpy(c.data(), value, report_.value_size);
        all.emplace(std::string(key, report_.key_size), std::move(c));
      });
      return all;
    }
    Counters sum(slots_.size() / 8);
    slots_.sum(sum.data(), sum.size());
    for (std::uint32_t number = 0; number < sum.size() / counters; number++) {
      auto first = sum.begin() + static_cast<std::ptrdiff_t>(number * counters);
      if (!*first) continue;
      std::string key(report_.key_size, '\0');
      memcpy(key.data(), &number, sizeof number);
      all.emplace(std::move(key), Counters(first, first + static_cast<std::ptrdiff_t>(counters)));
    }
    return all;
  }

  void show(Session& s, const std::vector<std::string>& rows) const {
    auto stamp = iso_time(monotonic_ns());
    if (s.config.format == OutputFormat::json) {
      for (auto& r : rows) {
        JsonLine line;
        line.text("type", "row").text("time", stamp);
        columns_.json(line, r.data(), s.names);
        s.out.line(line.finish());
      }
    } else if (s.config.format == OutputFormat::csv) {
      for (auto& r : rows) s.out.line(stamp + ',' + columns_.csv(r.data(), s.names));
    } else {
      if (s.config.holds(report_.time_when)) s.out.line(fmt::format("[{}]", wall_time()));
      s.out.line(columns_.titles());
      for (auto& r : rows) s.out.line(columns_.row(r.data(), s.names));
      s.out.write("\n");
    }
  }

  const TableReport& report_;
  Columns columns_;
  TableRows rows_;
  CpuSlots slots_;
  bool keyed_ = true;
};

}  // namespace

std::unique_ptr<Reporter> make(const TableReport& report) {
  return std::make_unique<TableReporter>(report);
}

}  // namespace coretap
