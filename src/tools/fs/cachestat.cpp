// cachestat: hits and misses of the page cache.
#include <cstdint>
#include <utility>
#include <vector>

#include "cachestat.skel.h"
#include "coretap/live_report.hpp"
#include "coretap/page_cache.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using namespace coretap::page_cache;

namespace {

std::uint64_t buffers_mb(const Sums&) { return memory_kb("Buffers") / 1024; }
std::uint64_t cached_mb(const Sums&) { return memory_kb("Cached") / 1024; }

/// The kernel counts refaults itself, before 5.9 (170b04b7ae49) those of files only.
void read_refaults(Sums& sums, std::uint64_t) {
  auto text = read_file("/proc/vmstat").value_or("");
  auto count = named_number(text, "workingset_refault_file");
  if (!count) count = named_number(text, "workingset_refault");
  sums.refaults = count.value_or(0);
}

AggregateReport counts(std::vector<Field> more) {
  return sums<Sums>(
      maps::pages_cpus,
      {derived<Sums, hits>("hits", "HITS", as::number, "accesses that found their page").counter(),
       derived<Sums, misses>("misses", "MISSES", as::number, "accesses whose page was read in")
           .counter(),
       field<&Sums::dirtied>("dirtied", "DIRTIES", as::number, "pages dirtied"),
       derived<Sums, hit_ratio>("hit_ratio", "HITRATIO%", as::percent,
                                "share of hits in all accesses, 0 to 1"),
       derived<Sums, buffers_mb>("buffers_mb", "BUFFERS_MB", as::wide(as::number, 12),
                                 "block device pages in the cache")
           .gauge(),
       derived<Sums, cached_mb>("cached_mb", "CACHED_MB", as::number, "file pages in the cache")
           .gauge(),
       derived<Sums, read_ahead>("read_ahead", "READAHEAD", as::number,
                                 "pages read in that were not accessed yet")
           .counter(),
       std::move(more),
       field<&Sums::accessed>("accessed", "ACCESSED", as::number, "accesses").with("json"),
       field<&Sums::added>("added", "ADDED", as::number, "pages added to the cache").with("json"),
       field<&Sums::written>("write_added", "WADDED", as::number, "of those, by a write")
           .with("json")});
}

}  // namespace

TOOL(cachestat) {
  return {
      .name = "cachestat",
      .summary = "page cache hits and misses",
      .description =
          "Each interval: accesses that found their page in the page cache (HITS) or had to read "
          "it in (MISSES), pages dirtied (DIRTIES), and the share of hits. A read is an access to "
          "each page in its range; a fault is one access. The first access to a page that "
          "read-ahead has brought in is a miss; what is read in without being accessed is in "
          "READAHEAD. Pages that write() adds are not misses. A large folio counts as many pages "
          "as it has. BUFFERS_MB and CACHED_MB are those of /proc/meminfo.\n\n"
          "For each file, only the pages that were read in last are tracked as unused: an access "
          "to earlier ones is a hit.\n\n"
          "With task filters, only what these tasks did themselves counts.\n\n"
          "--refaults adds the pages of files that reclaim had evicted and that came back: misses "
          "that more memory would have avoided. The kernel counts them, of the whole machine, also "
          "with task filters; workset shows more about them.",
      .overhead =
          "a hook per read and fault and per page added or dirtied; kernels before 6.12 "
          "have one per page touched. Counted in the kernel, no output per event",
      .examples = {{"cachestat", "a line per second"},
                   {"cachestat -T 5 12", "a minute, every five seconds, with the time"},
                   {"cachestat --refaults 5", "with the misses that more memory would avoid"},
                   {"cachestat -p 181", "what process 181 finds in the cache"},
                   {"cachestat -- grep -r word /usr/share/doc", "of one command"}},
      .questions = {{"Does the page cache help, or does everything come from the disk?",
                     "cachestat"},
                    {"Is there enough memory for the files that are read?",
                     "cachestat --refaults -T 5 12"},
                    {"Does this process find its files in the cache?", "cachestat -p 181"}},
      .differs = {{Difference::both,
                   "MISSES are accesses whose page had to be read. Peers calculate them from other "
                   "counters, so read-ahead that is never used counts as misses, and HITS may be 0 "
                   "even if all reads hit. Pages that were read ahead are in an additional column, "
                   "READAHEAD."},
                  {Difference::both,
                   "A large folio counts as many pages as it has. Peers count one."}},
      .object = skeleton<cachestat_bpf>(),
      .positionals = shared::interval_count(1),
      .options = {shared::timestamp(), shared::pid(), shared::tid(), shared::uid(), shared::comm(),
                  shared::cgroup(),
                  flag(0, "refaults",
                       "also pages that were evicted and came back (of the machine)")},
      .hooks = page_cache::hooks(),
      .report = counts({}),
      .other_reports = {{"refaults",
                         LiveReport{
                             counts({field<&Sums::refaults>(
                                 "refaulted_pages", "REFAULTS", as::number,
                                 "pages that were evicted and came back, of the whole machine")}),
                             of_counters<Sums, read_refaults>}}},
      .announce = "Tracing the page cache",
  };
}
