// Histograms of 64 slots (struct hist in
// bpf/lib/core/shared.h): their scale, and derived values.
#pragma once
#include <cstdint>
#include <string_view>

#include "lib/core/shared.h"

namespace coretap {

/// The unit of a number: its keys in JSON end with `suffix`.
struct Unit {
  std::string_view suffix;  ///< "ns"; empty: plain numbers
  std::string_view plural;  ///< "nanoseconds"
};
namespace unit {
inline constexpr Unit ns{"ns", "nanoseconds"};
inline constexpr Unit bytes{"bytes", "bytes"};
inline constexpr Unit sectors{"sectors", "sectors of 512 bytes"};
inline constexpr Unit pages{"pages", "pages"};
inline constexpr Unit plain{"", ""};
}  // namespace unit

/// Slot bounds: multiples of `step` units; powers of two of it, or one
/// `step` each (linear; the last slot also counts all larger values).
struct HistogramScale {
  Unit unit = unit::ns;
  std::uint64_t step = 1'000;
  bool linear = false;
  std::string_view title = {};  ///< of the first column; empty: from unit and step ("usecs")

  /// from <= value < below, in units.
  std::uint64_t from(int slot) const;
  std::uint64_t below(int slot) const;
  /// "usecs", "kbytes", "sectors"
  std::string_view column() const;
};

std::uint64_t histogram_count(const hist& h);

}  // namespace coretap
