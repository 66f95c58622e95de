// Names of files that are removed or changed: shared by tools with bpf/lib/fs/removal.bpf.h.
#pragma once
#include <iterator>
#include <string_view>
#include <vector>

#include "coretap/hooks.hpp"
#include "lib/fs/removal.h"

namespace coretap {

inline constexpr std::string_view kRemovalCalls[] = {"unlink",   "unlinkat",  "rmdir", "rename",
                                                     "renameat", "renameat2", "other"};
static_assert(std::size(kRemovalCalls) == REMOVAL_CALLS);

/// The entries of these calls, some of which do not exist on all architectures.
inline std::vector<Hook> removal_hooks(std::vector<Hook> others) {
  std::vector<Hook> all = {{"unlinkat", {{{"on_unlinkat"}}}},
                           {"renameat2", {{{"on_renameat2"}}}},
                           {"unlink", {{{"on_unlink"}}}, {}, "calls of unlink are not seen"},
                           {"rename", {{{"on_rename"}}}, {}, "calls of rename are not seen"},
                           {"renameat", {{{"on_renameat"}}}, {}, "calls of renameat are not seen"}};
  all.insert(all.begin(), others.begin(), others.end());
  return all;
}

}  // namespace coretap
