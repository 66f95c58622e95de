// The fields of a record that a report shows: as a table's row, as CSV, and in JSON.
#pragma once
#include <string>
#include <vector>

#include "cli/config.hpp"
#include "text/json.hpp"
#include "text/names.hpp"

namespace coretap {

class Columns {
 public:
  /// In tables those whose option is given; in JSON and CSV all that exist.
  void choose(const Config& config, const std::vector<Field>& fields);

  std::string titles() const;  ///< "PID     COMM", without spaces at its end
  std::string keys() const;    ///< "pid,comm"
  std::string row(const void* record, const Names& names) const;
  /// The lines below a row: the frames of its stacks.
  std::vector<std::string> below(const void* record, const Names& names) const;
  std::string csv(const void* record, const Names& names) const;
  void json(JsonLine& line, const void* record, const Names& names) const;

 private:
  std::vector<Field> fields_;
};

/// Without the spaces at its end.
std::string trimmed(std::string line);

}  // namespace coretap
