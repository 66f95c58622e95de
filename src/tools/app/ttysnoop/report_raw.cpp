#include "tools/app/ttysnoop/report_raw.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "app/ttysnoop.h"
#include "coretap/clock.hpp"
#include "coretap/json.hpp"
#include "coretap/lacking.hpp"
#include "coretap/reports.hpp"
#include "program/session.hpp"
#include "reports/reporter.hpp"

namespace coretap {

namespace {

constexpr std::string_view kHomeAndClear = "\033[H\033[2J";

class RawReporter : public Reporter {
 public:
  bool periodic() const override { return false; }

  void begin(Session& s) override {
    if (s.config.format == OutputFormat::csv)
      s.out.line("time,monotonic_ns,data_hex");
    else if (s.config.format == OutputFormat::text && isatty(STDOUT_FILENO) &&
             !s.config.given("keep-screen"))
      s.out.write(kHomeAndClear);
  }
  void record(Session& s, const void* data, std::size_t size) override {
    auto& event = *static_cast<const ttysnoop_event*>(data);
    if (size < sizeof event || event.data.at > size || size - event.data.at < event.data.bytes)
      return;
    s.ledger.shown++;
    auto bytes = text_of(event, event.data);
    auto at = event.head.time_ns;
    if (s.config.format == OutputFormat::text) {
      s.out.write(bytes);
    } else if (s.config.format == OutputFormat::csv) {
      s.out.line(fmt::format("{},{},{}", iso_time(at), at, hexadecimal(bytes)));
    } else {
      JsonLine line("bytes", s.tool.name);
      line.text("time", iso_time(at)).number("monotonic_ns", at);
      s.out.line(line.text("data_hex", hexadecimal(bytes)).finish());
    }
  }
};

OutputKey bytes_key() { return key("data_hex", "string", "what was written, two digits per byte"); }

class RawKind : public ReportKind {
 public:
  std::string_view name() const override { return "raw"; }
  std::unique_ptr<Reporter> reporter() const override { return std::make_unique<RawReporter>(); }
  std::size_t record_size() const override { return sizeof(ttysnoop_event); }
  std::string_view record_type() const override { return detail::name_of_type<ttysnoop_event>(); }
  bool can_be_recorded() const override { return true; }
  std::shared_ptr<const ReportKind> without(const std::vector<Lacking>& lacking,
                                            std::vector<std::string>&) const override {
    const auto needs = [](const Lacking& lack, std::size_t at, std::size_t bytes) {
      return lack.at < at + bytes && at < lack.at + lack.bytes;
    };
    for (auto& lack : lacking)
      if (needs(lack, offsetof(ttysnoop_event, head), sizeof ttysnoop_event::head) ||
          needs(lack, offsetof(ttysnoop_event, data), sizeof ttysnoop_event::data))
        return nullptr;
    return std::make_shared<RawKind>();
  }
  std::vector<JsonKind> json() const override {
    return {{"bytes",
             "one per write with --raw",
             {type_key("bytes"), time_key(), monotonic_key(), bytes_key()}}};
  }
  std::vector<OutputKey> csv() const override { return {time_key(), monotonic_key(), bytes_key()}; }
  void manual(Manual& m) const override {
    m.prose(
        "With --raw, only the bytes that were written are printed, in order. On a terminal, the "
        "screen is cleared first.");
  }
};

}  // namespace

std::shared_ptr<const ReportKind> make_kind(RawReport) { return std::make_shared<RawKind>(); }

}  // namespace coretap
