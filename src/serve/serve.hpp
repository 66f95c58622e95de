// `coretap serve`: metrics of tools that run all the time, for Prometheus and readers of its
// format.
#pragma once
#include <string>
#include <vector>

#include "coretap/config.hpp"

namespace coretap {

std::vector<Option> serve_options();
int run_serve(const Config& config, const std::vector<std::string>& words);

}  // namespace coretap
