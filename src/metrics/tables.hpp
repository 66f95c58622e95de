// ClickHouse tables for the lines of --json: `coretap serve --print tables`.
#pragma once
#include <string>
#include <vector>

#include "coretap/tool.hpp"

namespace coretap::metrics {

/// Instructions for reading lines into these tables, as SQL comments.
std::string tables_head();

/// A statement that creates coretap_TOOL: a column for each key of all kinds of lines that the tool
/// writes. The column `type` distinguishes them.
std::string table(const Tool& tool);

}  // namespace coretap::metrics
