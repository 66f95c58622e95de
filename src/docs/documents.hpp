// The generated files that are kept in tests/golden, in memory: written by coretap-docs, compared
// by the golden test.
#pragma once
#include <map>
#include <string>

namespace coretap {

/// Contents by path below tests/golden: the keys of all tools, which are a contract, and page and
/// help of one tool of each kind of report, which show what a change of the words does.
std::map<std::string, std::string> golden_documents();

}  // namespace coretap
