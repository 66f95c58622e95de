// What a tool shows. The library reads, writes and flushes; a tool only says what there is.
#pragma once
#include <cstddef>
#include <string_view>
#include <variant>
#include <vector>

#include "coretap/fields.hpp"

namespace coretap {

/// log2 histograms of durations (bpf/lib/hist.bpf.h), one for each set of keys.
struct HistogramReport {
  std::string_view what;     ///< "latency": names the values in JSON
  std::vector<Field> keys;   ///< fields of the key; those whose option is given tell reports apart
  std::size_t key_size = 0;  ///< bytes of the kernel's key
  std::string_view extension = {};  ///< option that adds the avg/total/count line
};

/// One line per record from the ring buffer (bpf/lib/emit.bpf.h). Records start with struct
/// event_head.
struct EventReport {
  std::vector<Field> fields;
  std::size_t record_size = 0;       ///< bytes, without the stack
  std::string_view stack_when = {};  ///< option under which a struct stack follows the record
};

/// Totals by kernel and user stack (bpf/lib/stack.bpf.h).
struct StackReport {
  std::string_view value_title;  ///< "microseconds blocked"
};

/// Per-CPU counters (CPU_SLOTS sums), summed and subtracted: one row per interval.
struct SumReport {
  std::vector<Field> fields;
  std::size_t record_size = 0;
};

using Report = std::variant<HistogramReport, EventReport, StackReport, SumReport>;

template <class Key>
HistogramReport histogram(std::string_view what, std::vector<Field> keys,
                          std::string_view extension = {}) {
  return {what, std::move(keys), sizeof(Key), extension};
}
template <class Record>
EventReport events(std::vector<Field> fields, std::string_view stack_when = {}) {
  return {std::move(fields), sizeof(Record), stack_when};
}
template <class Record>
SumReport sums(std::vector<Field> fields) {
  return {std::move(fields), sizeof(Record)};
}

}  // namespace coretap
