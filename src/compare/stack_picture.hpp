// A differential flame graph of two recordings of stacks. Pure.
#pragma once
#include <string>
#include <vector>

#include "compare/comparison.hpp"

namespace coretap::compare {

/// Widths are the values per second of the second side; what only the first one has is as wide as
/// there. Red and blue are the changes that `c` has found in these recordings.
std::string differential_svg(const Comparison& c, const std::vector<Series>& a,
                             const std::vector<Series>& b);

}  // namespace coretap::compare
