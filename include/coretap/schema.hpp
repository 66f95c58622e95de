// The keys of JSON lines and the columns of CSV, as listed in
// the documentation and checked by tests against the output.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"

namespace coretap {

struct OutputKey {
  std::string name;
  std::string type;  ///< in JSON: "integer", "string", "number or null", "array of objects", ...
  std::string unit;  ///< "nanoseconds"; empty: none
  std::string doc;
  When when = {};                       ///< a condition; empty: always present
  std::vector<OutputKey> members = {};  ///< of the objects in an array
  bool negative = false;                ///< the integer may be negative
};

struct JsonKind {
  std::string type;     ///< the value of "type"
  std::string written;  ///< when a line of it is written
  std::vector<OutputKey> keys;
};

/// The unit is derived from the end of the name: "_ns", "_bytes".
OutputKey key(std::string name, std::string type, std::string doc, When when = {},
              std::vector<OutputKey> members = {});
/// A field's key; its type is that of its value for a record of this many zero bytes.
OutputKey key(const Field& field, std::size_t record_size, When when = {});
/// The same for a record that must not be all zeros.
OutputKey key_of(const Field& field, const void* record, When when = {});

/// The same for CSV, which has no arrays.
OutputKey csv_key_of(const Field& field, const void* record, When when = {});
OutputKey csv_key(const Field& field, std::size_t record_size, When when = {});

/// Keys common to several kinds.
OutputKey type_key(const std::string& type);
OutputKey time_key();
OutputKey monotonic_key();
/// A kernel stack in JSON, and in CSV.
OutputKey kernel_stack_key(When when = {});
OutputKey folded_kernel_stack_key(When when = {});
/// A user stack in JSON: its frames and their reliability.
std::vector<OutputKey> user_stack_keys(When when = {});

}  // namespace coretap
