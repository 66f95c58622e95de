// Keys of JSON lines and columns of CSV, from the same field lists that the reporters write.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/tool.hpp"

namespace coretap {

struct Key {
  std::string name;
  std::string type;  ///< of JSON: "integer", "string", "number or null", "array of objects", ...
  std::string unit;  ///< "nanoseconds"; empty: none
  std::string doc;
  std::string_view when = {};     ///< a condition; empty: always there
  std::vector<Key> members = {};  ///< of the objects in an array
};

struct JsonKind {
  std::string type;     ///< the value of "type"
  std::string written;  ///< when a line of it is written
  std::vector<Key> keys;
};

/// The kinds of lines under --json, in their order.
std::vector<JsonKind> json_kinds(const Tool& tool);
/// The columns under --csv.
std::vector<Key> csv_columns(const Report& report);

/// Both as a text that says at a glance what has changed.
std::string keys(const Tool& tool);

}  // namespace coretap
