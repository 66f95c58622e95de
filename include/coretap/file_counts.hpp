// Reads and writes of files: shared by tools with bpf/lib/fs/file_counts.bpf.h.
#pragma once
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/reports.hpp"
#include "lib/fs/file_counts.h"

namespace coretap {

/// For a Row whose value is a struct file_counts.
template <class Line>
std::vector<Field> counts_of_files() {
  using Counts = file_counts;
  return {
      of_value<Line, &Counts::reads>("reads", "READS", as::wide(as::number, 6), "calls that read"),
      of_value<Line, &Counts::writes>("writes", "WRITES", as::wide(as::number, 6),
                                      "calls that wrote"),
      of_value<Line, &Counts::read_bytes>("read_bytes", "R_Kb", as::wide(as::kilobytes, 7),
                                          "bytes read"),
      of_value<Line, &Counts::write_bytes>("write_bytes", "W_Kb", as::wide(as::kilobytes, 7),
                                           "bytes written"),
      {.key = "bytes",
       .title = "BYTES",
       .format = as::number,
       .doc = "bytes read and written",
       .read = [](const void* row, const FieldContext&) -> Value {
         auto& counts = static_cast<const Line*>(row)->value;
         return std::uint64_t{counts.read_bytes + counts.write_bytes};
       },
       .shown_with = "json",
       .role = Role::derived},
  };
}

/// For AggregateReport::sorted_also_by.
inline std::vector<std::pair<std::string_view, std::string_view>> words_of_peers_for_counts() {
  return {{"all", "bytes"}, {"rbytes", "read_bytes"}, {"wbytes", "write_bytes"}};
}

}  // namespace coretap
