// Compares two recordings, or two sets of them: which values changed, by how much at least, and
// which changes would have been found. Pure.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "compare/statistics.hpp"

namespace coretap::compare {

struct Line {
  enum class Verdict {
    more,
    less,
    same,     ///< no change that is certain and large enough
    few,      ///< too few intervals or events
    lost,     ///< lost events may have been any
    untested  ///< a single value, or only its range is known
  };
  enum class Kind {
    value,  ///< in the histogram's unit
    range,  ///< the same, between a and a_below
    share,  ///< of 1
    rate,   ///< per second
  };
  std::string what;  ///< "p99", "max", "above", "events/s", "share"
  std::string key;   ///< empty: all keys together
  Kind kind = Kind::value;
  double bound = 0;  ///< of "above"
  std::optional<double> a = {}, b = {};
  double a_below = 0, b_below = 0;  ///< of a range
  /// Parts of a: 0.05 is +5 %. Nothing: not known.
  std::optional<double> change = {}, low = {}, high = {}, smallest = {};
  std::optional<double> p = {};  ///< with that of all lines together (Holm)
  double contribution = 0;       ///< of a key to the change of all, by size
  Verdict verdict = Verdict::untested;
  bool gone_or_new = false;       ///< one side has no event of this key
  bool of_row = false;            ///< of a key of a table, of a function or of a stack
  std::optional<Unit> unit = {};  ///< if it is not that of the histograms
};

/// The part of a change that a key causes: of 1, and may be negative.
struct Contribution {
  std::string what, key;
  double part = 0;
  bool changed = false;  ///< the value of this key alone changed
};

struct Comparison {
  Facts a, b;
  double seconds_a = 0, seconds_b = 0;  ///< of each recording, if there are several
  std::size_t recordings_a = 1, recordings_b = 1;
  bool paired = false;
  HistogramScale scale{};              ///< of values
  std::vector<std::string> different;  ///< facts
  std::vector<Line> lines;
  std::vector<Contribution> contributions;
  std::size_t rare = 0;  ///< keys with too few events to be compared
  /// Of stacks: what is counted ("time_ns"); empty: the recordings have no stacks.
  std::string whole = {};
};

/// A value that is compared although it is not among the usual ones.
struct Wanted {
  std::string what, key;
  auto operator<=>(const Wanted&) const = default;
};

struct Choices {
  double at_least = 0.05;  ///< smaller changes do not count
  bool paired = false;     ///< recordings alternate: a[i] and b[i] follow each other
  std::vector<Wanted> wanted = {};
};

/// Of all time: functions and stacks with less on both sides are not compared.
inline constexpr double kLeastPartOfStacks = 0.005;
inline constexpr std::size_t kLeastRecordings = 3;  ///< of a set
inline constexpr std::size_t kLeastPairs = 6;

/// One recording on each side, or at least kLeastRecordings.
Result<Comparison> compare(const std::vector<Series>& a, const std::vector<Series>& b,
                           const Choices& choices);

/// The share of values below a percentile: "p99.9" -> 0.999.
std::optional<double> share_of_percentile(std::string_view what);

/// How much longer two recordings like this one must be so that a change is found.
struct Plan {
  struct Line {
    std::string what;
    double smallest = 0;  ///< change that is found at this length; parts of the value
    double seconds = 0;   ///< of each recording
  };
  Facts facts;
  double seconds = 0;
  double change = 0;
  std::vector<Line> lines;
};
Result<Plan> plan(const Series& one, double change);

}  // namespace coretap::compare
