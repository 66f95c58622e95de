#include "coretap/percentiles.hpp"

#include <algorithm>
#include <cmath>

#include "lib/aggregate/percentile.h"

namespace coretap {

namespace {

/// The power of two of a bucket's width; numbers beyond the last bucket have the width of the last.
std::uint32_t width_of(std::uint32_t bucket) {
  constexpr std::uint32_t kMost = 63 - FINE_BITS;
  return bucket < 2 * FINE_STEPS ? 0 : std::min(bucket / FINE_STEPS - 1, kMost);
}

}  // namespace

std::uint64_t fine_from(std::uint32_t bucket) {
  if (bucket < 2 * FINE_STEPS) return bucket;
  return (FINE_STEPS + std::uint64_t{bucket} % FINE_STEPS) << width_of(bucket);
}

std::uint64_t fine_percentile(const FineCounts& counts, double percent) {
  std::uint64_t all = 0, before = 0;
  for (auto& [bucket, count] : counts) all += count;
  auto wanted = std::max(1.0, std::ceil(static_cast<double>(all) * percent / 100));
  for (auto& [bucket, count] : counts) {
    before += count;
    if (static_cast<double>(before) >= wanted)
      return fine_from(bucket) + (std::uint64_t{1} << width_of(bucket)) / 2;
  }
  return 0;
}

}  // namespace coretap
