// Keys of JSON lines and columns of CSV, from the same field lists that the reporters write.
#pragma once
#include <string>

namespace coretap {

/// Those of all tools: what scripts may rely on, without words that explain it.
std::string keys_of_all();

}  // namespace coretap
