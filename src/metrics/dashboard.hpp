// A dashboard of Grafana for the metrics of tools: `coretap serve --print dashboard`. Pure: plans
// in, JSON out, as Grafana 9 and later import it.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "metrics/names.hpp"

namespace coretap::metrics {

struct Shown {
  std::string title;  ///< of the tool's row
  std::string entry;  ///< value of its label of this name; empty: it has none
  std::shared_ptr<const Plan> plan;
};

/// A row for each tool, and a first one of what all have: which run, what they see and lose, and
/// what they cost.
std::string dashboard(const std::vector<Shown>& tools);

}  // namespace coretap::metrics
