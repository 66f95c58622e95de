// Writes a field's value as JSON and CSV.
#pragma once
#include <string>

#include "coretap/fields.hpp"
#include "coretap/json.hpp"
#include "text/names.hpp"

namespace coretap {

/// JSON for one value of a field.
void json_value(JsonLine& line, const Field& field, const Value& value, const Names& names);
/// A record's field: its key and value.
void json_field(JsonLine& line, const Field& field, const void* record, const Names& names);
/// CSV for the same.
std::string csv_value(const Field& field, const Value& value, const Names& names);

}  // namespace coretap
