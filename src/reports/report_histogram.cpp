// Histogram tools: reads the kernel's counters and shows what was added since the last reading.
#include <bpf/libbpf.h>

#include <cstring>

#include <fmt/format.h>

#include "base/clock.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"
#include "reports/counter_deltas.hpp"
#include "reports/histogram.hpp"
#include "reports/reporters.hpp"
#include "text/value.hpp"

namespace coretap {

namespace {

class HistogramReporter : public Reporter {
 public:
  explicit HistogramReporter(const HistogramReport& report) : report_(report) {}

  void configure(Session& s) override {
    unit_ns_ = s.config.given("milliseconds") ? 1'000'000 : report_.unit_ns;
    set_variable(s, "hist_unit_ns", unit_ns_);
    keyed_ = false;
    for (auto& key : report_.keys)
      if (s.config.holds(key.when)) {
        keyed_ = true;
        keys_.push_back(&key);
      }
    set_variable(s, "hist_keyed", keyed_);
  }

  Result<void> open(Session& s) override {
    if (report_.totals_size)
      if (auto opened = totals_.open(s.map("sums")); !opened) return opened;
    if (keyed_) return {};
    return cpus_.open(s.map("hist_cpus"));
  }

  void begin(Session& s) override {
    if (s.config.format != OutputFormat::csv) return;
    std::string header = "time,";
    for (auto* key : keys_) header += fmt::format("{},", key->key);
    s.out.line(header + "from_ns,below_ns,count");
  }

  void report(Session& s) override {
    auto grown = growth_.since_last(read(s));
    if (keyed_) forget_idle(s.map("hist_keys"), growth_);
    bool text = s.config.format == OutputFormat::text;
    if (text) {
      if (s.config.given("timestamp"))
        s.out.line(fmt::format("\n{}", wall_time()));
      else
        s.out.write("\n");
      if (report_.totals_size) s.out.line(totals_line(s));
    }
    auto stamp = iso_time(monotonic_ns());
    for (auto& [key, counters] : grown) {
      hist delta;
      memcpy(&delta, counters.data(), sizeof delta);
      s.ledger.shown += histogram_count(delta);
      show(s, key, delta, stamp);
    }
    if (grown.empty() && s.config.format == OutputFormat::json) show(s, "", hist{}, stamp);
  }

 private:
  static constexpr std::size_t kCounters = sizeof(hist) / 8;

  Growth::Reading read(Session& s) const {
    Growth::Reading all;
    Growth::Counters counters(kCounters);
    if (!keyed_) {
      cpus_.sum(counters.data(), kCounters);
      all.emplace("", counters);
      return all;
    }
    each_entry(s.map("hist_keys"), [&](const char* key, const char* value) {
      memcpy(counters.data(), value, sizeof(hist));
      all.emplace(std::string(key, report_.key_size), counters);
    });
    return all;
  }

  std::vector<std::uint64_t> read_totals() const {
    std::vector<std::uint64_t> sums(report_.totals_size / 8);
    totals_.sum(sums.data(), sums.size());
    return sums;
  }

  std::string totals_line(Session& s) const {
    auto sums = read_totals();
    std::string values;
    for (auto& t : report_.totals) {
      if (!s.config.holds(t.when)) continue;
      auto format = t.format;
      format.width = 0;
      values += (values.empty() ? "" : "/") + coretap::show(format, t.read(sums.data()), s.names);
    }
    return fmt::format("{}: {}", report_.totals_title, values);
  }

  void show(Session& s, const std::string& key, const hist& h, const std::string& stamp) const {
    if (s.config.format == OutputFormat::json) {
      JsonLine line;
      line.text("type", "histogram").text("time", stamp);
      if (!key.empty())
        for (auto* k : keys_) {
          line.key(k->key);
          json_value(line, *k, k->read(key.data()), s.names);
        }
      if (report_.totals_size) {
        auto sums = read_totals();
        for (auto& t : report_.totals) {
          line.key(t.key);
          json_value(line, t, t.read(sums.data()), s.names);
        }
      }
      json_histogram(line, h, unit_ns_);
      s.out.line(line.finish());
    } else if (s.config.format == OutputFormat::csv) {
      for (int i = 0; i < HIST_SLOTS; i++) {
        if (!h.slots[i]) continue;
        auto row = stamp + ',';
        for (auto* k : keys_) row += csv_value(*k, k->read(key.data()), s.names) + ',';
        s.out.line(fmt::format("{}{},{},{}", row, slot_from(i) * unit_ns_, slot_below(i) * unit_ns_,
                               h.slots[i]));
      }
    } else {
      std::string title;
      for (auto* k : keys_) {
        auto format = k->format;
        format.width = 0;
        auto value = coretap::show(format, k->read(key.data()), s.names);
        // As the peers write it: "pid = 123 comm"; a field without a title follows the one before.
        title += k->title.empty()
                     ? ' ' + value
                     : fmt::format("{}{} = {}", title.empty() ? "" : ", ", k->title, value);
      }
      if (!title.empty()) s.out.line(title);
      s.out.write(draw_histogram(h, unit_ns_ == 1000 ? "usecs" : "msecs"));
      if (!report_.extension.empty() && s.config.given(report_.extension)) {
        auto count = histogram_count(h);
        auto total = h.total_ns / unit_ns_;
        s.out.line(fmt::format("avg = {} {}, total: {} {}, count: {}", total / count,
                               unit_ns_ == 1000 ? "usecs" : "msecs", total,
                               unit_ns_ == 1000 ? "usecs" : "msecs", count));
      }
      if (!title.empty()) s.out.write("\n");
    }
  }

  const HistogramReport& report_;
  std::vector<const Field*> keys_;
  CpuSlots cpus_, totals_;
  Growth growth_{HIST_SLOTS};
  std::uint64_t unit_ns_ = 1000;
  bool keyed_ = false;
};

}  // namespace

std::unique_ptr<Reporter> make(const HistogramReport& report) {
  return std::make_unique<HistogramReporter>(report);
}

}  // namespace coretap
