// Percentiles by key, from fine counts of a kernel program
// (bpf/lib/aggregate/percentile.bpf.h): within 0.8 % of a counted value.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/reports.hpp"

namespace coretap {

/// Number of values in each bucket.
using FineCounts = std::map<std::uint32_t, std::uint64_t>;

std::uint64_t fine_from(std::uint32_t bucket);  ///< smallest value of the bucket
/// The value that `percent` (0 to 100) of all values do
/// not exceed: the middle of its bucket; 0 without values.
std::uint64_t fine_percentile(const FineCounts& counts, double percent);

/// PERCENTILES(map, Key) of the kernel program: a row for each set of keys,
/// with a column for each percentile, of the values since the previous report
/// and of all since the start of tracing. `Bucket`: the last member of Key.
template <class Key, auto Bucket>
AggregateReport percentiles(MapName map, std::string_view what, FieldList keys,
                            std::vector<double> usual) {
  AggregateReport r{
      .layout = AggregateReport::percentile_columns, .map = map, .fields = std::move(keys)};
  r.key_size = sizeof(Key);
  r.value_at = (sizeof(Key) + 7) / 8 * 8;
  r.value_size = sizeof(std::uint64_t);
  r.what = what;
  r.bucket_at = static_cast<std::size_t>(std::bit_cast<std::ptrdiff_t>(Bucket));
  r.usual_percentiles = std::move(usual);
  return r;
}

}  // namespace coretap
