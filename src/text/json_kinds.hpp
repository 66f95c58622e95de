// What the lines under --json have, from the same field lists that the reporters write.
#pragma once
#include <vector>

#include "coretap/schema.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// The kinds of lines, in their order.
std::vector<JsonKind> json_kinds(const Tool& tool);

}  // namespace coretap
