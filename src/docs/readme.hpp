// The table of tools in README.md.
#pragma once
#include <string>

namespace coretap {

std::string readme_tool_table();

}  // namespace coretap
