// Conditions on a tool's metrics, which its own process judges each second.
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/result.hpp"
#include "metrics/names.hpp"
#include "metrics/series.hpp"

namespace coretap::metrics {

/// "coretap_runqlat_seconds p99 > 20ms for 10s". Series with these labels are added up; of gauges,
/// each is compared.
struct Threshold {
  enum class Measure { value, rate, percentile };
  enum class Unit { none, time, size };

  std::string text;  ///< as given, with single spaces
  std::string metric;
  std::vector<std::pair<std::string, std::string>> labels;  ///< name and value
  Measure measure = Measure::value;
  double percent = 0;  ///< of a percentile
  bool above = true;   ///< otherwise below
  double limit = 0;    ///< in the base unit
  Unit unit = Unit::none;
  double seconds = 0;  ///< how long without a break

  /// "34 ms", "812/s".
  std::string words(double value) const;
};

inline constexpr std::string_view kThresholdForms =
    "METRIC{LABEL=\"VALUE\"} p99 > 20ms for 10s, with p99 for histograms, N/s for counters";

/// True for text that is meant as one.
bool names_metric(std::string_view text);
Result<Threshold> parse_threshold(std::string_view text);
/// False: an entry of this name and plan does not have it. Fails if it has the metric, but not so.
Result<bool> applies(const Threshold& threshold, const Plan& plan, std::string_view entry);

class Judge {
 public:
  /// `number`: of the threshold in the list; `value` in the base unit.
  using Over = std::function<void(std::size_t number, double value)>;

  /// Takes those that apply; `plan` must outlive this object.
  Judge(const std::vector<Threshold>& thresholds, const Plan& plan, std::string_view entry,
        Over over);

  bool any() const { return !rules_.empty(); }
  /// Call it each second. A condition calls `over` once until it is no longer true.
  void look(const SeriesTable& series, const std::vector<std::uint64_t>& totals,
            std::uint64_t now_ns);

 private:
  struct Rule {
    Threshold threshold;
    std::size_t number = 0;
    const Family* family = nullptr;
    std::optional<std::size_t> total = {};  ///< its place among the totals
    std::vector<std::pair<std::size_t, std::string>> labels = {};
    std::vector<std::uint64_t> before = {};
    std::uint64_t before_ns = 0, since_ns = 0;
    bool told = false;
  };

  std::optional<double> measure(Rule& rule, const SeriesTable& series,
                                const std::vector<std::uint64_t>& totals, std::uint64_t now_ns);

  std::vector<Rule> rules_;
  Over over_;
};

}  // namespace coretap::metrics
