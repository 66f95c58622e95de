// `coretap compare`: whether two recordings differ, and by how much.
#pragma once
#include <string>
#include <vector>

#include "coretap/config.hpp"
#include "coretap/options.hpp"

namespace coretap {

std::vector<Option> compare_options();
int run_compare(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
