// cachestat: hits and misses of the page cache.
#include "fs/cachestat.h"

#include "base/files.hpp"
#include "cachestat.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Sums = cachestat_sums;

namespace {

constexpr std::string_view kMarks =
    "this kernel has no tracepoint for accesses: hits on mapped files are not seen, and repeated "
    "reads of one page count once";

// A write's page may be added in one interval and dirtied in the next: never below nothing.
std::uint64_t misses(const Sums& s) { return s.added > s.written ? s.added - s.written : 0; }
std::uint64_t hits(const Sums& s) { return s.accessed > misses(s) ? s.accessed - misses(s) : 0; }

Value ratio(const Sums& s) {
  auto all = hits(s) + misses(s);
  if (!all) return {};  // nothing was wanted: no ratio
  return static_cast<double>(hits(s)) / static_cast<double>(all);
}

std::uint64_t buffers_mb(const Sums&) { return memory_kb("Buffers") / 1024; }
std::uint64_t cached_mb(const Sums&) { return memory_kb("Cached") / 1024; }

}  // namespace

TOOL(cachestat) {
  return {
      .name = "cachestat",
      .summary = "page cache hits and misses",
      .description =
          "Each interval: pages that were wanted and found in the page cache (HITS), pages read in "
          "from a file system, read-ahead included (MISSES), pages dirtied (DIRTIES), and the share "
          "of hits. Pages that write() makes are not misses. A large folio counts as many pages "
          "as it has. BUFFERS_MB and CACHED_MB are those of /proc/meminfo.\n\n"
          "With filters by task, only what those tasks did themselves.",
      .overhead =
          "a hook per read and fault and per page added or dirtied; kernels before 6.12 "
          "have one per page touched. Counted in the kernel, no output per event",
      .examples = {{"cachestat", "a line per second"},
                   {"cachestat -T 5 12", "a minute, every five seconds, with the time"},
                   {"cachestat -p 181", "what process 181 finds in the cache"},
                   {"cachestat -- grep -r word /usr/share/doc", "of one command"}},
      .questions = {{"Is the page cache of use, or does everything come from the disk?",
                     "cachestat"},
                    {"Is there enough memory for the files that are read?", "cachestat -T 5 12"},
                    {"Does this process find its files in the cache?", "cachestat -p 181"}},
      .object = skeleton<cachestat_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::timestamp(), shared::pid(), shared::tid(), shared::uid(), shared::comm(),
                  shared::cgroup()},
      .hooks = {{"accesses",
                 {{{"on_read", "on_map", "on_fault"}},
                  {.programs = {"folio_accessed"}, .caveat = kMarks},
                  {.programs = {"folio_accessed_kprobe"}, .caveat = kMarks},
                  {.programs = {"page_accessed"}, .caveat = kMarks},
                  {.programs = {"page_accessed_kprobe"}, .caveat = kMarks}}},
                {"pages added", {{{"on_add"}}}},
                {"pages dirtied", {{{"on_dirty_folio"}}, {{"on_dirty_page"}}}}},
      .report = sums<Sums>(
          "pages",
          {derived<Sums, hits>("hits", "HITS", as::number, "pages wanted and found"),
           derived<Sums, misses>("misses", "MISSES", as::number, "pages read in"),
           field<&Sums::dirtied>("dirtied", "DIRTIES", as::number, "pages dirtied"),
           derived<Sums, ratio>("hit_ratio", "HITRATIO", as::percent, "hits of all wanted, 0 to 1"),
           derived<Sums, buffers_mb>("buffers_mb", "BUFFERS_MB", as::wide(as::number, 12),
                                     "block device pages in the cache"),
           derived<Sums, cached_mb>("cached_mb", "CACHED_MB", as::number,
                                    "file pages in the cache"),
           field<&Sums::accessed>("accessed", "ACCESSED", as::number, "pages wanted").with("json"),
           field<&Sums::added>("added", "ADDED", as::number, "pages added to the cache")
               .with("json"),
           field<&Sums::written>("write_added", "WADDED", as::number, "of those, by a write")
               .with("json")}),
      .announce = "Tracing the page cache",
  };
}
