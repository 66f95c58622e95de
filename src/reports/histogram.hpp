// Text, JSON and CSV of histograms.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/histogram.hpp"
#include "coretap/json.hpp"
#include "coretap/schema.hpp"
#include "lib/aggregate/fine.h"

namespace coretap {

/// The values per step: --milliseconds and --nanoseconds apply to histograms of times.
std::uint64_t step_of(const HistogramScale& scale, const Config& config);

/// The step of fine slots (bpf/lib/aggregate/fine.h): an eighth of that of the slots, if that is a
/// number, so that eight of them are one slot.
std::uint64_t fine_step(std::uint64_t step);
/// The slot that has all values of a fine slot.
int slot_of_fine(std::uint32_t fine, std::uint64_t step);
hist folded(const fine_hist& h, std::uint64_t step);
/// "fine_step" and "fine": [[slot, count], ...] of those with values, for `coretap compare`.
void json_fine(JsonLine& line, const fine_hist& h, std::uint64_t step);

/// Draws `unit : count distribution` from slot 0 to the last slot with values.
/// `columns`: width in characters.
/// Returns "" if there are no values.
std::string draw_histogram(const hist& h, const HistogramScale& scale, int columns = 80);

/// A line of a histogram: its label and the number of values.
struct Bar {
  std::string label;
  std::uint64_t count = 0;
};
/// The same for any lines; `title` above the labels, `counts` above the numbers.
std::string draw_bars(const std::vector<Bar>& bars, std::string_view title, std::string_view counts,
                      int columns = 80);

/// "avg = 4 usecs, total: 40 usecs, count: 10"
std::string histogram_summary(const hist& h, const HistogramScale& scale);

/// "count", "total_ns" and "histogram": [{"from_ns", "below_ns", "count"}] of slots with values;
/// the keys end with the unit.
void json_histogram(JsonLine& line, const hist& h, const HistogramScale& scale);

/// "total_ns"; "total" for plain numbers.
std::string with_unit(std::string_view name, const HistogramScale& scale);

/// These keys, and those of a slot, which are CSV columns.
std::vector<OutputKey> histogram_keys(const HistogramScale& scale);
std::vector<OutputKey> slot_keys(const HistogramScale& scale);

}  // namespace coretap
