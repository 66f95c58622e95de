// Contents of the generated files in tests/golden: written by coretap-docs, compared by the golden
// test.
#pragma once
#include <map>
#include <string>

namespace coretap {

/// Contents by path below tests/golden: keys and metrics of all tools, which are a stable
/// interface.
std::map<std::string, std::string> golden_documents();

}  // namespace coretap
