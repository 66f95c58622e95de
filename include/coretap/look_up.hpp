// Lookups in the directory-entry cache: shared by tools with bpf/lib/fs/look_up.bpf.h.
#pragma once
#include <string_view>

#include "coretap/hooks.hpp"

namespace coretap {

inline constexpr std::string_view kInsteadOfLookups =
    "opensnoop -x and statsnoop -x show which names programs look for in vain";

/// bpf_get_func_ret came with 5.17.
inline Hook lookup_hook() {
  return {.name = "look-ups",
          .candidates = {{{ProgramName("on_lookup")},
                          {has_enumerator("bpf_func_id", "BPF_FUNC_get_func_ret")}},
                         {{ProgramName("on_lookup_kprobe"), ProgramName("on_lookup_kretprobe")}}},
          .instead = kInsteadOfLookups};
}

}  // namespace coretap
