// Keys of JSON lines and columns of CSV, from the same field lists that the reporters write.
#pragma once
#include <string>

#include "coretap/tool.hpp"

namespace coretap {

/// All of a tool as a text that says at a glance what has changed.
std::string keys(const Tool& tool);

}  // namespace coretap
