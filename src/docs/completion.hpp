// Completion for shells: all tools and coretap itself, one script per shell.
#pragma once
#include <string>

#include "docs/naming.hpp"

namespace coretap {

std::string bash_completion(const Naming& naming = {});
std::string zsh_completion(const Naming& naming = {});
std::string fish_completion(const Naming& naming = {});

}  // namespace coretap
