// Aggregates whose readings the loader completes.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/report_kind.hpp"
#include "coretap/reports.hpp"

namespace coretap {

struct LiveReport {
  AggregateReport aggregate;
  /// Adds time in progress at the reading to the counters of a key,
  /// and clears start times. Every counter that grew then makes a row.
  void (*running)(std::uint64_t* counters, std::uint64_t now_ns) = nullptr;
  /// For AggregateReport::totals that are not in a map; their values at the
  /// start of tracing are subtracted. Also called for a report without values.
  void (*read_totals)(std::uint64_t* counters) = nullptr;
};

template <class Value, void (*Add)(Value&, std::uint64_t now_ns)>
LiveReport with_running(AggregateReport report) {
  // NOLINTNEXTLINE(readability-non-const-parameter): Add writes there
  auto add = [](std::uint64_t* counters, std::uint64_t now_ns) {
    Add(*reinterpret_cast<Value*>(counters), now_ns);
  };
  return {std::move(report), add};
}

template <class Record, void (*Read)(Record&)>
LiveReport with_totals_by(AggregateReport report, std::string_view title,
                          std::vector<Field> counters) {
  // NOLINTNEXTLINE(readability-non-const-parameter): Read writes there
  auto read = [](std::uint64_t* to) { Read(*reinterpret_cast<Record*>(to)); };
  return {std::move(report).template with_totals<Record>({}, title, std::move(counters)), nullptr,
          read};
}

std::shared_ptr<const ReportKind> make_kind(LiveReport report);

}  // namespace coretap
