// Units by the suffixes of keys: "latency_ns", "read_bytes".
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

namespace coretap {

/// Converts a number to a Prometheus base unit.
struct BaseUnit {
  std::string_view suffix = {};   ///< of a metric's name: "seconds"; empty: plain numbers
  std::uint64_t multiply = 1;     ///< for pages the page size
  std::uint64_t nanoseconds = 0;  ///< per unit of the key; not 0: the base unit is the second
  bool thousandths = false;       ///< numbers are signed, in thousandths
};

struct KeyUnit {
  std::string_view suffix;  ///< "_ns"
  std::string_view words;   ///< "nanoseconds"
  BaseUnit base;
};

std::span<const KeyUnit> key_units();
/// nullptr: the key has no unit.
const KeyUnit* unit_of_key(std::string_view key);

}  // namespace coretap
