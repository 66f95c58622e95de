// Names of files that are removed or changed: shared by tools with bpf/lib/fs/removal.bpf.h.
#pragma once
#include <iterator>
#include <string_view>

#include "lib/fs/removal.h"

namespace coretap {

inline constexpr std::string_view kRemovalCalls[] = {"unlink",   "unlinkat",  "rmdir", "rename",
                                                     "renameat", "renameat2", "other"};
static_assert(std::size(kRemovalCalls) == REMOVAL_CALLS);

}  // namespace coretap
