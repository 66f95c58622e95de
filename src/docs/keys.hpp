// Keys of JSON lines and columns of CSV, from the field lists that the reporters use.
#pragma once
#include <string>

namespace coretap {

/// Keys of all tools, which scripts may rely on, without descriptions.
std::string keys_of_all();

}  // namespace coretap
