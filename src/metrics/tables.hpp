// Tables of ClickHouse for the lines of --json: `coretap serve --print tables`.
#pragma once
#include <string>
#include <vector>

#include "coretap/tool.hpp"

namespace coretap::metrics {

/// How lines are read into these tables, as comments in SQL.
std::string tables_head();

/// A statement that creates coretap_TOOL: a column for each key of all kinds of lines that the tool
/// writes. The column `type` tells them apart.
std::string table(const Tool& tool);

}  // namespace coretap::metrics
