// The metrics of a tool as a text that says at a glance what has changed.
#pragma once
#include <string>

#include "coretap/tool.hpp"

namespace coretap::metrics {

/// For each of its reports: possible labels, * behind those that must be asked for, and families.
std::string metrics_text(const Tool& tool);

}  // namespace coretap::metrics
