// Units by the ends of keys: "latency_ns", "read_bytes".
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace coretap {

/// How a number becomes one of Prometheus' base units.
struct BaseUnit {
  std::string_view suffix = {};   ///< of a metric's name: "seconds"; empty: plain numbers
  std::uint64_t multiply = 1;     ///< pages by their size
  std::uint64_t nanoseconds = 0;  ///< in one of the key's unit; not 0: the base unit is the second
  bool thousandths = false;       ///< numbers are signed, and in thousandths of one
};

struct KeyUnit {
  std::string_view suffix;  ///< "_ns"
  std::string_view words;   ///< "nanoseconds"
  BaseUnit base;
};

std::span<const KeyUnit> key_units();
/// nullptr: the key has none.
const KeyUnit* unit_of_key(std::string_view key);

}  // namespace coretap
