// Names, units and labels of metrics, derived from the field tables.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/tool.hpp"
#include "text/units.hpp"

namespace coretap::metrics {

enum class Type { counter, gauge, histogram };
std::string_view name_of(Type type);

/// The buckets of a histogram: a range of slots of struct hist. Values below it count in the first
/// bucket, values above it only in +Inf.
struct Buckets {
  int first = 0;
  std::vector<std::uint64_t> bounds;  ///< inclusive upper bounds, in the field's unit
};

struct Family {
  std::string name;  ///< "coretap_filetop_read_bytes_total"
  Type type = Type::counter;
  std::string help;
  BaseUnit unit;
  const Field* field = nullptr;  ///< source; nullptr: a histogram's row, 1 per event, or elements
  Buckets buckets = {};          ///< of histograms
  std::size_t at = 0;            ///< index of its first value in a series

  /// Number of values; a histogram has its buckets, +Inf and the sum.
  std::size_t values() const { return type == Type::histogram ? buckets.bounds.size() + 2 : 1; }
  /// Number of lines on a page for one series.
  std::size_t lines() const { return type == Type::histogram ? buckets.bounds.size() + 3 : 1; }
};

struct Label {
  std::string name;
  const Field* field = nullptr;  ///< nullptr: the index of an element (MetricShape::elements)
  bool capped = false;           ///< users can create any number of values
};

/// The metrics of a report, for one command line.
struct Plan {
  MetricShape shape;  ///< contains the fields of families and labels
  std::vector<Label> labels;
  std::vector<Family> families;
  std::vector<Family> totals;  ///< without labels

  std::size_t values() const;
  std::size_t lines_per_series() const;
};

/// True if the field has a bounded or cappable number of values and is not an amount.
bool can_be_label(const Field& field);

/// Uses as labels the bounded keys, and the capped keys in `labels`. Fails for names that the
/// report does not have or that cannot be labels, and for reports without metrics.
Result<std::shared_ptr<const Plan>> make_plan(const Tool& tool, const Config& config,
                                              const std::vector<std::string>& labels);

}  // namespace coretap::metrics
