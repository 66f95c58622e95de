// The page cache: shared by tools with bpf/lib/fs/page_cache.bpf.h.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/hooks.hpp"
#include "lib/fs/page_cache.h"

namespace coretap::page_cache {

using Sums = page_cache_sums;

inline std::uint64_t less(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

// A fault's miss may be counted in one interval and the fault in the previous one.
inline std::uint64_t misses(const Sums& s) { return s.missed; }
inline std::uint64_t hits(const Sums& s) { return less(s.accessed, s.missed); }
// A page may be added in one interval and dirtied or accessed in the next.
inline std::uint64_t read_ahead(const Sums& s) { return less(s.added, s.written + s.missed); }

/// Without accesses there is no ratio.
inline Value hit_ratio(const Sums& s) {
  auto all = hits(s) + misses(s);
  if (!all) return {};
  return static_cast<double>(hits(s)) / static_cast<double>(all);
}

inline std::vector<Hook> hooks() {
  constexpr std::string_view kMarks =
      "this kernel has no tracepoint for accesses: hits on mapped files are not seen, and repeated "
      "reads of one page count once";
  return {{"accesses",
           {{{ProgramName("on_read"), ProgramName("on_map"), ProgramName("on_fault")}},
            {.programs = {ProgramName("folio_accessed")}, .caveat = kMarks},
            {.programs = {ProgramName("folio_accessed_kprobe")}, .caveat = kMarks},
            {.programs = {ProgramName("page_accessed")}, .caveat = kMarks},
            {.programs = {ProgramName("page_accessed_kprobe")}, .caveat = kMarks}}},
          {"pages added", {{{ProgramName("on_add")}}}},
          {"pages dirtied", {{{ProgramName("on_dirty_folio")}}, {{ProgramName("on_dirty_page")}}}}};
}

}  // namespace coretap::page_cache
