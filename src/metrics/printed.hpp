// Output of `coretap serve --print`, and the metrics that tests/golden keeps.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "metrics/names.hpp"

namespace coretap::metrics {

/// For each report of a tool: possible labels (with * if they must be requested) and families.
std::string metrics_text(const Tool& tool);

/// A line for each series of all tools: the stable interface for rules and dashboards.
std::string series_of_all();

struct Shown {
  std::string title;  ///< title of the tool's row
  std::string entry;  ///< value of the label "entry"; empty: none
  std::shared_ptr<const Plan> plan;
};

/// JSON that Grafana 9 and later can import: a row for each tool, and a first row of common
/// metrics: running tools, events seen and lost, and costs.
std::string dashboard(const std::vector<Shown>& tools);

/// Alert rules about coretap itself, in YAML for Prometheus and compatible programs. Alerts about
/// the host's metrics are left to its owner.
std::string rules();

/// Instructions for reading lines of --json into tables of ClickHouse, as SQL comments.
std::string tables_head();

/// A statement that creates coretap_TOOL: a column for each key of all kinds of lines that the tool
/// writes. The column `type` distinguishes them.
std::string table(const Tool& tool);

}  // namespace coretap::metrics
