// A page of metrics in Prometheus' text format (version 0.0.4).
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "metrics/names.hpp"

namespace coretap::metrics {

/// The value of a label: valid UTF-8, at most 128 bytes.
std::string label_value(std::string_view text);

/// `{disk="sda",operation="W"}`; empty without labels.
std::string labels_text(const std::vector<std::pair<std::string_view, std::string>>& labels);

class Page {
 public:
  void family(std::string_view name, Type type, std::string_view help);
  void sample(std::string_view name, std::string_view labels, std::string_view value);
  void sample(std::string_view name, std::string_view labels, std::uint64_t value);
  /// A family with one sample.
  template <class Value>
  void one(std::string_view name, Type type, std::string_view help, std::string_view labels,
           const Value& value) {
    family(name, type, help);
    sample(name, labels, value);
  }
  /// Samples of a family; `values` starts at its first value, `labels` as from labels_text().
  void samples(const Family& family, std::string_view labels, const std::uint64_t* values);

  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// A number in the family's base unit: an integer, with decimals for times, or always with three
/// decimals for thousandths.
std::string in_base_unit(const BaseUnit& unit, std::uint64_t value);

/// Merges pages of several sources: families of one name are joined, with the first one's help.
class MergedPage {
 public:
  void add(std::string_view page);
  std::string text() const;

 private:
  std::vector<std::string> order_;
  std::map<std::string, std::pair<std::string, std::string>, std::less<>>
      families_;  ///< by name: head, samples
};

}  // namespace coretap::metrics
