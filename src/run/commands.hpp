// `coretap list`, `find` and `doctor`; src/docs/commands.hpp has the table of all commands.
#pragma once
#include <string>
#include <vector>

#include "cli/config.hpp"

namespace coretap {

/// Each takes checked options and words, such as names of tools, and returns the exit status.
int run_list(const Config& config, const std::vector<std::string>& words);
int run_find(const Config& config, const std::vector<std::string>& words);
int run_doctor(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
