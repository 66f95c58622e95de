// A Grafana dashboard for the metrics of tools: `coretap serve --print dashboard`. Pure: converts
// plans to JSON that Grafana 9 and later can import.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "metrics/names.hpp"

namespace coretap::metrics {

struct Shown {
  std::string title;  ///< title of the tool's row
  std::string entry;  ///< value of the label "entry"; empty: none
  std::shared_ptr<const Plan> plan;
};

/// A row for each tool, and a first row of common metrics: running tools, events seen and lost, and
/// costs.
std::string dashboard(const std::vector<Shown>& tools);

}  // namespace coretap::metrics
