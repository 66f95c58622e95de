#include "text/units.hpp"

#include "coretap/kernel.hpp"

namespace coretap {

std::span<const KeyUnit> key_units() {
  static const KeyUnit kUnits[] = {
      {"_ns", "nanoseconds", {"seconds", 1, 1}},
      {"_us", "microseconds", {"seconds", 1, 1'000}},
      {"_ms", "milliseconds", {"seconds", 1, 1'000'000}},
      {"_bytes", "bytes", {"bytes", 1}},
      {"_sectors", "sectors of 512 bytes", {"bytes", 512}},
      {"_kb", "KiB", {"bytes", 1 << 10}},
      {"_mb", "MiB", {"bytes", 1 << 20}},
      {"_pages", "pages", {"bytes", page_bytes()}},
      {"_ratio", "0 to 1", {"ratio"}},
  };
  return kUnits;
}

const KeyUnit* unit_of_key(std::string_view key) {
  for (auto& unit : key_units())
    if (key.ends_with(unit.suffix)) return &unit;
  return nullptr;
}

}  // namespace coretap
