// log2 histograms as users know them, and as data.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "lib/shared.h"
#include "text/json.hpp"

namespace coretap {

/// Draws `unit : count distribution` from slot 0 to the last one that counted; "" if none did.
std::string draw_histogram(const hist& h, std::string_view unit);

std::uint64_t histogram_count(const hist& h);

/// "total_ns", "count" and "histogram": [{"from_ns", "below_ns", "count"}] of slots that counted.
void json_histogram(JsonLine& line, const hist& h, std::uint64_t unit_ns);

/// Bounds of a slot, in units: from <= value < below.
std::uint64_t slot_from(int slot);
std::uint64_t slot_below(int slot);

}  // namespace coretap
