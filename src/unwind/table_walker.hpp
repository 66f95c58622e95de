// Walks user stacks by unwind tables: the loader's part of bpf/lib/stack/unwind.bpf.h.
#pragma once
#include <memory>

#include "coretap/config.hpp"
#include "unwind/walker.hpp"

namespace coretap::unwind {

/// Selects the walker for a run. `by_tables`: there are user stacks, and the program can walk by
/// unwind tables.
std::unique_ptr<StackWalker> make_walker(Config::Stacks::Unwind how, bool by_tables);

/// Before load: sets the sizes of the maps, or disables them.
void size_maps(Session& s);

}  // namespace coretap::unwind
