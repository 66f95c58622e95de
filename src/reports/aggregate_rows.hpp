// Rows of an aggregate: what each key's counters grew by since the reading before, in order.
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

  /// LiveReport::running.
  using Running = void (*)(std::uint64_t* counters, std::uint64_t now_ns);

  explicit AggregateRows(const AggregateReport& report, Running running = nullptr)
      : report_(report),
        running_(running),
        deltas_(running ? report.value_size / 8 : report.event_counters) {}

  /// By these fields of the report ("total_ns,count"), the largest first; empty: by key.
  void order(std::string_view sort);
  void reverse(bool smallest_first) { reversed_ = smallest_first; }

  /// The counters of a value: those of all CPUs together, where it has one for each; with what is
  /// under way now.
  Counters counters(const char* value, std::size_t cpus, std::uint64_t now_ns) const;
  /// Its largest values of this interval, one for each of AggregateReport::largest.
  Counters largest(const char* value, std::size_t cpus, std::uint32_t interval) const;

  /// A row (key and counters) for each key that had events since the reading before; with the
  /// largest values by key.
  std::vector<std::string> since_last(Reading now, const Reading& largest,
                                      const FieldContext& context);
  /// Adds up those that AggregateReport::one_row_for says are one.
  void merge(std::vector<std::string>& rows, const FieldContext& context) const;
  /// Adds up those of which these fields are the same; of largest values the largest stays.
  void merge_by(std::vector<std::string>& rows, const std::vector<Field>& keys,
                const FieldContext& context) const;
  /// Sorts rows again, after order() or reverse().
  void sort(std::vector<std::string>& rows, const FieldContext& context) const;

  /// Events in all rows so far.
  std::uint64_t events() const { return events_; }
  CounterDeltas& deltas() { return deltas_; }

 private:
  void add_up(std::string& to, const std::string& from) const;
  /// Adds up rows of which `same` is the same.
  template <class Same>
  void merge(std::vector<std::string>& rows, const FieldContext& context, Same&& same) const;

  const AggregateReport& report_;
  Running running_;
  std::vector<const Field*> sort_;
  bool reversed_ = false;
  std::uint64_t events_ = 0;
  CounterDeltas deltas_;
};

}  // namespace coretap
