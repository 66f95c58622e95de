// --help, from the tool's table.
#pragma once
#include <string>

#include "coretap/tool.hpp"

namespace coretap {

std::string help_text(const Tool& tool);
/// "[OPTIONS] [INTERVAL [COUNT]] [-- COMMAND ARGS]"
std::string synopsis(const Tool& tool);
/// "-d, --disk DISK"
std::string option_words(const Option& option);
/// Text broken into lines of at most `columns`, each indented.
std::string wrap(std::string_view text, int indent, int columns = 80);

}  // namespace coretap
