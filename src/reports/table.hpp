// Counters by key that only grow: what they grew by from one reading to the next, as rows.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/reports.hpp"
#include "reports/counter_deltas.hpp"

namespace coretap {

class TableRows {
 public:
  using Counters = Growth::Counters;
  using Reading = Growth::Reading;

  /// Rows by these fields of the report ("total_ns,count"), at most so many; 0: all.
  void order(const TableReport& report, std::string_view sort, std::uint64_t top,
             bool largest_last = false);

  /// A row (key and counters) for each key that had events since the reading before.
  std::vector<std::string> since_last(Reading now);
  /// Events in all rows so far, those beyond the top included.
  std::uint64_t events() const { return events_; }
  Growth& growth() { return growth_; }

 private:
  const TableReport* report_ = nullptr;
  std::vector<const Field*> sort_;
  std::uint64_t top_ = 0, events_ = 0;
  bool largest_last_ = false;
  Growth growth_;
};

}  // namespace coretap
