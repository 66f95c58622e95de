// The keys of JSON lines and the columns of CSV, as listed in
// the documentation and checked by tests against the output.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "coretap/fields.hpp"

namespace coretap {

/// The meaning of a value, for programs that add up lines or compare them.
enum class Meaning : std::uint8_t {
  unknown,
  label,     ///< a word for what the line is about
  id,        ///< a number for it
  sum,       ///< grows with events: that of several lines can be added up
  duration,  ///< of the event
  other,     ///< follows from others, or is a current state
};

struct OutputKey {
  std::string name;
  std::string type;  ///< in JSON: "integer", "string", "number or null", "array of objects", ...
  std::string unit;  ///< "nanoseconds"; empty: none
  std::string doc;
  When when = {};                       ///< a condition; empty: always present
  std::vector<OutputKey> members = {};  ///< of the objects in an array
  bool negative = false;                ///< the integer may be negative
  Meaning meaning = Meaning::unknown;
  bool few = false;       ///< a label with few values, which users cannot add to
  std::string sums = {};  ///< of a sum: the key that counts its events; empty: not one key

  OutputKey as(Meaning is, std::string counted_by = {}) && {
    meaning = is;
    sums = std::move(counted_by);
    return std::move(*this);
  }
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
