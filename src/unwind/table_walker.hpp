// Walks user stacks by unwind tables: the loader's part of bpf/lib/stack/unwind.bpf.h.
#pragma once
#include <memory>

#include "unwind/walker.hpp"

namespace coretap::unwind {

#ifdef __x86_64__
inline constexpr bool kSupported = true;
#else
inline constexpr bool kSupported = false;  // distributions for arm64 mostly keep frame pointers
#endif

std::unique_ptr<StackWalker> make_table_walker();

/// Before load: sets the sizes of the maps, or disables them.
void size_maps(Session& s);

}  // namespace coretap::unwind
