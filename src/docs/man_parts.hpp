// Parts that several manual pages share.
#pragma once
#include <vector>

#include "coretap/tool.hpp"
#include "docs/mdoc.hpp"

namespace coretap {

/// Keys of JSON objects, as items of a separate list.
void key_items(Page& p, const std::vector<OutputKey>& keys);

/// Command lines that begin with the tool's name, and their meanings.
void example_section(Page& p, std::string_view name, const std::vector<Example>& examples);

/// Questions, each with the command line that answers it.
void question_items(Page& p, const Tool& tool);

/// Differences from the tools of that name in other suites, and refused options. Writes nothing if
/// there are none.
void differences(Page& p, const Tool& tool);
bool has_differences(const Tool& tool);

}  // namespace coretap
