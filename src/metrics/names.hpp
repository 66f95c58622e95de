// Names, units and labels of metrics: they follow from the field tables.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/config.hpp"
#include "coretap/tool.hpp"
#include "text/units.hpp"

namespace coretap::metrics {

enum class Type { counter, gauge, histogram };
std::string_view name_of(Type type);

/// The buckets of a histogram: slots of struct hist from one to another; what is below counts in
/// the first, what is above in none but +Inf.
struct Buckets {
  int first = 0;
  std::vector<std::uint64_t> bounds;  ///< inclusive, of each, in the field's unit
};

struct Family {
  std::string name;  ///< "coretap_filetop_read_bytes_total"
  Type type = Type::counter;
  std::string help;
  BaseUnit unit;
  const Field* field =
      nullptr;  ///< that it is read from; nullptr: a histogram's row, 1 an event, or elements
  Buckets buckets = {};  ///< of histograms
  std::size_t at = 0;    ///< where in a series' values its first one is

  /// A histogram has its buckets, +Inf and the sum.
  std::size_t values() const { return type == Type::histogram ? buckets.bounds.size() + 2 : 1; }
  /// Lines of a page for one series.
  std::size_t lines() const { return type == Type::histogram ? buckets.bounds.size() + 3 : 1; }
};

struct Label {
  std::string name;
  const Field* field = nullptr;  ///< nullptr: the index of an element (MetricShape::elements)
  bool capped = false;           ///< any user can make values
};

/// What a report gives, for one command line.
struct Plan {
  MetricShape shape;  ///< the families' and labels' fields are in it
  std::vector<Label> labels;
  std::vector<Family> families;
  std::vector<Family> totals;  ///< without labels

  std::size_t values() const;
  std::size_t lines_per_series() const;
};

/// Has the field a bounded number of values, or one that can be capped, and does not count?
bool can_be_label(const Field& field);

/// Labels: the bounded keys, and of the capped ones those that are named. Fails for names that the
/// report does not have or that can be no label, and for reports without metrics.
Result<std::shared_ptr<const Plan>> make_plan(const Tool& tool, const Config& config,
                                              const std::vector<std::string>& labels);

}  // namespace coretap::metrics
