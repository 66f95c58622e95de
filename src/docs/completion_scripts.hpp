// The scripts of completion/, embedded in the executable.
#pragma once
#include <string_view>
#include <vector>

#include "coretap/options.hpp"

namespace coretap {

/// The script for a shell: "bash", "zsh" or "fish"; empty: there is none.
std::string_view completion_script(std::string_view shell);
/// The shells that have a script.
std::vector<Completion> completion_shells();

}  // namespace coretap
