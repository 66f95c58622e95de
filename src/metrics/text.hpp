// The metrics of tools as a text.
#pragma once
#include <string>

#include "coretap/tool.hpp"

namespace coretap::metrics {

/// For each of its reports: possible labels, * behind those that must be asked for, and families.
std::string metrics_text(const Tool& tool);

/// A line for each series of all tools: what rules and dashboards may rely on.
std::string series_of_all();

}  // namespace coretap::metrics
