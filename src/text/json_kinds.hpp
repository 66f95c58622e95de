// The keys of --json lines, from the field lists that the reporters write.
#pragma once
#include <vector>

#include "coretap/schema.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// The kinds of lines, in the order of output.
std::vector<JsonKind> json_kinds(const Tool& tool);

}  // namespace coretap
