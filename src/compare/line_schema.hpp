// Meanings of the keys of JSON lines: as their tool declares them, or, of a tool that this coretap
// does not have, by their names.
#pragma once
#include <map>
#include <string>
#include <string_view>

#include "coretap/schema.hpp"

namespace coretap::compare {

/// Lines of one type.
struct LineKind {
  bool rows = false;       ///< sums by keys, in each interval
  bool histogram = false;  ///< an array of ranges and counts
  std::map<std::string, OutputKey, std::less<>> keys = {};

  /// Guesses if it is not declared.
  OutputKey of(std::string_view key) const;
  /// Is a word of this key a label, of rows or, if it has few values, of events?
  bool labels_rows(std::string_view key) const;
  bool labels_events(std::string_view key) const;

 private:
  const OutputKey* declared(std::string_view key) const;
};

class LineSchema {
 public:
  LineSchema() = default;
  explicit LineSchema(std::string_view tool);
  const LineKind& of(std::string_view type) const;

 private:
  std::map<std::string, LineKind, std::less<>> kinds_;
  bool known_ = false;
};

}  // namespace coretap::compare
