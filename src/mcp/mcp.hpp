// `coretap mcp`: the tools as functions for clients of the Model Context Protocol.
#pragma once
#include <string>
#include <vector>

#include "coretap/config.hpp"

namespace coretap {

int run_mcp(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
