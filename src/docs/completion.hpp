// Completion for shells: all tools and coretap itself, one script per shell.
#pragma once
#include <string>

namespace coretap {

std::string bash_completion();
std::string zsh_completion();
std::string fish_completion();

}  // namespace coretap
