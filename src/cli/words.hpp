// A command line in one text.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"

namespace coretap {

/// Splits a command line into words like a shell: blanks, quotes and backslashes.
Result<std::vector<std::string>> command_words(std::string_view line);

}  // namespace coretap
