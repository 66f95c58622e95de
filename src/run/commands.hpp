// `coretap list` and `doctor`; src/docs/commands.hpp has the table of all commands.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"

namespace coretap {

/// Prints to standard error how many of all tools this build has, for commands about all tools.
void note_tools_in_build(std::string_view command);

/// Each takes checked options and words, such as names of tools, and returns the exit status.
int run_list(const Config& config, const std::vector<std::string>& words);
int run_doctor(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
