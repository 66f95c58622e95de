// Selects the walker for a run.
#pragma once
#include <memory>

#include "coretap/config.hpp"
#include "unwind/walker.hpp"

namespace coretap {

/// `by_tables`: there are user stacks, and the program can walk by unwind tables.
std::unique_ptr<StackWalker> make_walker(Config::Stacks::Unwind how, bool by_tables);

}  // namespace coretap
