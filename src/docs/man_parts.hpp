// What several manual pages are made of.
#pragma once
#include <vector>

#include "coretap/tool.hpp"
#include "docs/mdoc.hpp"

namespace coretap {

/// Keys of JSON objects, as items of a list of their own.
void key_items(Page& p, const std::vector<OutputKey>& keys);

/// Questions, each with the command line that answers it.
void question_items(Page& p, const Tool& tool);

/// What differs from the peers' tools of that name; with the options that are refused. No lines
/// where nothing does.
void differences(Page& p, const Tool& tool);
bool has_differences(const Tool& tool);

}  // namespace coretap
