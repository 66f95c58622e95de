// Aggregates whose readings the loader completes.
#pragma once
#include <cstdint>
#include <memory>

#include "coretap/report_kind.hpp"
#include "coretap/reports.hpp"

namespace coretap {

struct LiveReport {
  AggregateReport aggregate;
  /// Adds time in progress at the reading to the counters of a key,
  /// and clears start times. Every counter that grew then makes a row. For counters without a key
  /// it may set those that the kernel program does not count: they grow from when tracing begins.
  void (*running)(void* counters, std::uint64_t now_ns) = nullptr;
  /// For AggregateReport::totals that are not in a map; their values at the
  /// start of tracing are subtracted. Also called for a report without values.
  void (*read_totals)(void* counters) = nullptr;
};

/// For these pointers, a function that takes a tool's counters as the type that they have.
template <class Counters, auto Function, class... More>
void of_counters(void* counters, More... more) {
  Function(*static_cast<Counters*>(counters), more...);
}

std::shared_ptr<const ReportKind> make_kind(LiveReport report);

}  // namespace coretap
