// The fields of a record that a report shows: as a table row, CSV, or JSON.
#pragma once
#include <string>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/json.hpp"
#include "text/names.hpp"

namespace coretap {

/// The time of an event in a table, after a number of columns.
struct TimeInRow {
  std::string_view text = {};
  std::size_t after = 0;
};

class Columns {
 public:
  /// Selects, for tables, the fields whose option is given; for JSON and CSV, all that exist.
  void choose(const Config& config, const std::vector<Field>& fields,
              const std::vector<ColumnOrder>& orders = {});

  std::string titles(TimeInRow time = {}) const;  ///< "PID     COMM", without trailing spaces
  std::string keys() const;                       ///< "pid,comm"
  std::string row(const void* record, const Names& names, TimeInRow time = {}) const;
  /// The lines below a row: the frames of its stacks.
  std::vector<std::string> below(const void* record, const Names& names) const;
  std::string csv(const void* record, const Names& names) const;
  void json(JsonLine& line, const void* record, const Names& names) const;
  /// A line of JSON or CSV: the time, and the record's fields.
  struct LineOf {
    bool csv;
    std::string_view type, tool, time;
  };
  std::string line(const LineOf& of, const void* record, const Names& names) const;

 private:
  std::vector<Field> fields_;
};

/// Asks for everything that outputs of these fields may need: while a run is recorded, for outputs
/// that are made from the recording.
void ask_all(const std::vector<Field>& fields, const void* record, const Names& names);

/// Removes trailing spaces.
std::string trimmed(std::string line);

}  // namespace coretap
