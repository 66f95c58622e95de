// Walks user stacks by unwind tables: what the loader does for bpf/lib/unwind.bpf.h.
#pragma once
#include <memory>

#include "unwind/walker.hpp"

namespace coretap::unwind {

#ifdef __x86_64__
inline constexpr bool kSupported = true;
#else
inline constexpr bool kSupported = false;  // arm64's distributions keep frame pointers, mostly
#endif

std::unique_ptr<StackWalker> make_table_walker();

/// Before load: how large its maps are, or that they are not needed.
void size_maps(Session& s);

}  // namespace coretap::unwind
