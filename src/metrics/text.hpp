// The metrics of tools as text.
#pragma once
#include <string>

#include "coretap/tool.hpp"

namespace coretap::metrics {

/// For each report: possible labels (with * if they must be requested) and families.
std::string metrics_text(const Tool& tool);

/// A line for each series of all tools: the stable interface for rules and dashboards.
std::string series_of_all();

}  // namespace coretap::metrics
