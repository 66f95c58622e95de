// Manual pages in mdoc, from the tool's table and the kernel program in the executable.
#pragma once
#include <string>

#include "coretap/tool.hpp"

namespace coretap {

std::string man_page(const Tool& tool);
std::string coretap_man_page();

}  // namespace coretap
