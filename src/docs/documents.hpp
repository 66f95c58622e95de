// All generated files, in memory: written by coretap-docs, compared by the golden test.
#pragma once
#include <map>
#include <string>

#include "docs/naming.hpp"

namespace coretap {

/// Contents by path below the output directory.
std::map<std::string, std::string> documents(const Naming& naming = {});

}  // namespace coretap
