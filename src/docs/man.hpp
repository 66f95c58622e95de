// Manual pages in mdoc, from the tool's table and the kernel program in the executable.
#pragma once
#include <string>

#include "coretap/tool.hpp"
#include "docs/naming.hpp"

namespace coretap {

std::string man_page(const Tool& tool, const Naming& naming = {});
std::string coretap_man_page(const Naming& naming = {});

}  // namespace coretap
