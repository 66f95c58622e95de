// `coretap why`: the causes of lost time in words, with the next command to run.
#pragma once
#include <string>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/options.hpp"

namespace coretap {

std::vector<Option> why_options();
int run_why(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
