// A recording as comparisons need it: counts by interval of time, and facts about the run.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coretap/histogram.hpp"
#include "coretap/result.hpp"

namespace coretap::compare {

/// Bounds of the buckets of all histograms of a recording.
struct Buckets {
  enum Kind {
    slots,  ///< those of struct hist: powers of two of a step, or single steps (HistogramScale)
    fine,   ///< 2^bits in each power of two of `grain`
  };
  Kind kind = slots;
  HistogramScale scale{};
  unsigned bits = 3;
  std::uint64_t grain = 1;

  /// 8 buckets in each power of two of an eighth of the step, so that 8 of them are one slot of
  /// struct hist; of the step itself if it cannot be divided by 8.
  static Buckets fine_of(const HistogramScale& scale);
  /// So narrow that their width is below 0.1 % of a value.
  static Buckets of_values(Unit unit);

  /// from <= value < below.
  double from(std::uint32_t bucket) const;
  double below(std::uint32_t bucket) const;
  std::uint32_t of(std::uint64_t value) const;
  /// Bucket numbers are less.
  std::uint32_t count() const;
  bool same(const Buckets& other) const;
  /// The slot of struct hist that has all values of a bucket of fine_of().
  std::uint32_t slot(std::uint32_t bucket) const;
};

struct Histogram {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counts;  ///< by bucket
  std::uint64_t total = 0;                                      ///< sum of the values
  std::uint64_t largest = 0;                                    ///< 0: not known
};

/// A line of a report: {"events", "comm=sh"}; an empty key: the report has no keys.
struct Name {
  std::string what, key;
  // clang-tidy 14 takes a 0 in defaulted code for a pointer.
  auto operator<=>(const Name&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct Interval {
  double seconds = 0;  ///< that its counts cover, without gaps
  /// By the number of a name (Series::number). A name has several entries in some intervals.
  std::vector<std::pair<std::uint32_t, Histogram>> histograms = {};
  std::vector<std::pair<std::uint32_t, std::uint64_t>> counts = {};
};

struct Facts {
  std::string name;          ///< of the tool
  std::string host, kernel;  ///< empty: not known
  std::string counted;       ///< options that decide which events count
  std::uint64_t lost = 0;    ///< events that happened and are in no interval
  std::uint64_t kept = 0;    ///< events in intervals; 0: not known
  std::vector<std::pair<std::string, std::string>> others = {};  ///< {"CPUs", "4"}, {"version", …}

  double lost_share() const;
};

struct Series {
  Facts facts;
  Buckets buckets;
  std::vector<Name> names;
  std::vector<Interval> intervals;
  /// By name: of how many events its counts are sums; 0 or none: counts are numbers of events.
  std::vector<std::uint64_t> events = {};
  /// {"bytes", "ios"}: the mean of the first ones is per event of the second ones.
  std::map<std::string, std::string> means = {};
  /// Names are those of functions and stacks (kSelf ...), which contain each other; all are parts
  /// of this one ("time_ns").
  std::string whole = {};

  /// The number of a name, which is added if it is new.
  std::uint32_t number(const Name& name);
  double seconds() const;

 private:
  std::map<Name, std::uint32_t> numbers_;
};

/// Values of stacks, with the keys "function=read" and "stack=sh;main;read".
inline constexpr std::string_view kSelf = "self", kTotal = "total", kStack = "stack";
inline constexpr std::string_view kStackKey = "stack=";

/// With fine buckets folded to slots.
Series folded(Series series);

/// Reads a recording, or the lines that a tool printed with --json and an interval.
Result<Series> read_series(const std::string& path);
/// The same of their text; `path` is for messages.
Result<Series> series_of_lines(std::string_view text, const std::string& path);

}  // namespace coretap::compare
