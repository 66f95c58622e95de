// Statistics of recordings whose intervals are not independent of each other. Values are
// logarithms, unless a function says otherwise. Pure.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "compare/series.hpp"

namespace coretap::compare {

inline constexpr std::size_t kGroups = 8;           ///< of consecutive intervals
inline constexpr std::size_t kLeastIntervals = 16;  ///< of a recording
inline constexpr double kLeastEvents = 8;           ///< in a key, or beyond a percentile
inline constexpr double kSure = 0.99;               ///< of ranges; 1 - kSure: share of false alarms
inline constexpr double kFound = 0.8;  ///< of changes as large as the smallest that can be found

/// Student's distribution: the probability of a value at least this far from 0, on both sides.
double two_sided_p(double t, double freedom);
/// The value that a share `probability` (at least 0.5) does not exceed.
double t_quantile(double probability, double freedom);

/// Counts by bucket of some intervals.
struct Sums {
  std::vector<double> counts;
  double count = 0, total = 0, seconds = 0;

  void add(const Histogram& h, double times = 1);
  void add(const Sums& more, double times = 1);
};

/// Not the logarithm: between the bounds of the bucket, on the geometric scale. `share`: 0 to 1.
double percentile(const Sums& sums, const Buckets& buckets, double share);
/// The share of values at or above the lower bound of a bucket.
double share_above(const Sums& sums, std::uint32_t bucket);

/// A value of one side.
struct Estimate {
  double value = 0;
  double variance = 0;  ///< of the value; values of neighbouring parts may correlate
  double least = 0;     ///< the variance that independent events would have
  double lag = 0;       ///< correlation of each part with the next
  /// Of the intervals that the parts consist of: the same, the variance that they would give if
  /// they were independent, and their number; 0: not known.
  double interval_lag = 0, interval_variance = 0;
  std::size_t intervals = 0;
  double freedom = 1;
  double low = 0, high = 0;  ///< of the value, for all that lost events may have been
};
/// `without`: the value of all parts but one, for each of them.
Estimate jackknife(double whole, std::span<const double> without);
/// Each from a recording of the same load.
Estimate from_recordings(std::span<const double> values);

/// Correlation of each value with the next.
double lag_1(std::span<const double> values);
/// The factor of the variance of a mean for values whose estimated correlation is this.
double inflation(double lag, std::size_t values);

/// Of groups of intervals, as that of the intervals implies it, which is estimated from many more
/// values.
struct Correlation {
  double group = 0;        ///< of each group with the next
  double independent = 1;  ///< intervals that would give the same error, of each interval
};
Correlation correlation(const Estimate& a, const Estimate& b);

struct Difference {
  double change = 0, low = 0, high = 0;  ///< kSure are in this range
  double p = 1;
  double smallest = 0;  ///< kFound of changes of this size are found
  double error = 0, freedom = 1;
};
/// Welch's test. `groups`: parts of a side that follow each other; 0: they are independent.
Difference difference(const Estimate& a, const Estimate& b, std::size_t groups);
/// Of pairs in the order of time, each b - a. `slack`: of each, for lost events.
Difference paired(std::span<const double> differences, double slack);

/// Replaces each p by that of Holm's procedure.
void holm(std::span<double> p);

/// The factor on the length of both recordings, of this estimate each, so that `change` is found.
double longer_for(const Estimate& one, double change);

/// First interval of a group of `count` intervals.
inline std::size_t group_begin(std::size_t group, std::size_t count) {
  return group * count / kGroups;
}

}  // namespace coretap::compare
