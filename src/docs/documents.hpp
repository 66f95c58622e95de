// Generated files of the tree, written by coretap-docs.
#pragma once
#include <map>
#include <string>

namespace coretap {

/// Contents by path below tests/golden, which the golden test compares: keys and metrics of all
/// tools, which are a stable interface.
std::map<std::string, std::string> golden_documents();

/// Keys of JSON lines and columns of CSV of all tools, from the field lists that the reporters use,
/// without descriptions.
std::string keys_of_all();

/// The table of tools in docs/tools.md.
std::string tool_table();

}  // namespace coretap
