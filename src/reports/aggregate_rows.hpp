// Rows of an aggregate: the growth of each key's counters since the previous reading, sorted.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/reports.hpp"
#include "reports/counter_deltas.hpp"

namespace coretap {

class AggregateRows {
 public:
  using Counters = CounterDeltas::Counters;
  using Reading = CounterDeltas::Reading;

  /// `running`: any counter that grew makes a row (LiveReport::running).
  explicit AggregateRows(const AggregateReport& report, bool running = false)
      : report_(report), deltas_(running ? report.value_size / 8 : report.event_counters) {}

  /// Sorts by these fields of the report ("total_ns,count"), the largest number and the
  /// alphabetically first text first; empty: by key.
  void order(std::string_view sort);
  void reverse(bool reversed) { reversed_ = reversed; }

  /// A row (key and counters) for each key that had events since the previous reading. `largest`:
  /// the largest values by key.
  std::vector<std::string> since_last(Reading now, const Reading& largest,
                                      const FieldContext& context);
  /// A row with this key and these counters.
  std::string row_of(const std::string& key, const Counters& counters) const;
  /// Adds up rows that are the same for AggregateReport::one_row_for.
  void merge(std::vector<std::string>& rows, const FieldContext& context) const;
  /// Adds up rows with equal keys.
  void merge_equal(std::vector<std::string>& rows, const FieldContext& context) const;
  /// Adds up rows in which these fields are equal, if there are any; for largest values keeps the
  /// largest.
  void merge_by(std::vector<std::string>& rows, const std::vector<Field>& keys,
                const FieldContext& context) const;
  /// Sorts rows again after order() or reverse().
  void sort(std::vector<std::string>& rows, const FieldContext& context) const;

  /// Events in all rows until now.
  std::uint64_t events() const { return events_; }
  CounterDeltas& deltas() { return deltas_; }

 private:
  void add_up(std::string& to, const std::string& from) const;
  /// Adds up rows with equal `same`.
  template <class Same>
  void merge(std::vector<std::string>& rows, const FieldContext& context, Same&& same) const;

  const AggregateReport& report_;
  std::vector<const Field*> sort_;
  bool reversed_ = false;
  std::uint64_t events_ = 0;
  CounterDeltas deltas_;
};

}  // namespace coretap
