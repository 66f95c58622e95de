// Keys of JSON lines and columns of CSV, from the same field lists that the reporters write.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/schema.hpp"
#include "coretap/tool.hpp"

namespace coretap {

/// The kinds of lines under --json, in their order.
std::vector<JsonKind> json_kinds(const Tool& tool);
/// Both as a text that says at a glance what has changed.
std::string keys(const Tool& tool);

}  // namespace coretap
