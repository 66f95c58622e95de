// cachetop: hits and misses of the page cache by process.
#include "fs/cachetop.h"

#include "cachetop.skel.h"
#include "coretap/kernel.hpp"
#include "coretap/page_cache.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Key = cachetop_key;
using page_cache::Sums;
using Line = Row<Key, Sums>;

namespace {

std::uint64_t hits(const Line& l) { return page_cache::hits(l.value); }
std::uint64_t misses(const Line& l) { return page_cache::misses(l.value); }
std::uint64_t read_ahead(const Line& l) { return page_cache::read_ahead(l.value); }
Value hit_ratio(const Line& l) { return page_cache::hit_ratio(l.value); }
std::string user(const Line& l) { return user_name(l.key.uid); }
/// The share of dirtied pages that were in the cache before the write.
Value write_hit_ratio(const Line& l) {
  if (!l.value.dirtied) return {};
  return static_cast<double>(page_cache::less(l.value.dirtied, l.value.written)) /
         static_cast<double>(l.value.dirtied);
}

}  // namespace

TOOL(cachetop) {
  return {
      .name = "cachetop",
      .summary = "page cache hits and misses by process, as a screen",
      .description =
          "By process: accesses that found their page in the page cache (HITS) or had to read it "
          "in (MISSES), pages dirtied (DIRTIES), the share of hits (READ_HIT%), and the share of "
          "the dirtied pages that was already in the cache (WRITE_HIT%). The numbers are those of "
          "cachestat: their sums over all processes are the same.\n\n"
          "A read is an access to each page in its range; a fault is one access. The first access "
          "to a page that read-ahead has brought in is a miss. Pages that write() adds are not "
          "misses. A large folio counts as many pages as it has. A page that is already dirty does "
          "not count again.",
      .overhead =
          "a hook per read and fault and per page added or dirtied; kernels before 6.12 "
          "have one per page touched. Counted in the kernel, no output per event",
      .examples = {{"cachetop", "redrawn every five seconds; q quits"},
                   {"cachetop -C 1 10", "ten reports of one second, one after another"},
                   {"cachetop -s misses -r 5", "the five with the most misses"},
                   {"cachetop -p 181", "what process 181 finds in the cache"}},
      .questions = {{"Which process reads files that are not in the cache?", "cachetop -s misses"},
                    {"Which process dirties the most pages?", "cachetop -s dirtied"}},
      .differs = {{Difference::bcc,
                   "MISSES are accesses whose page had to be read, and READ_HIT% is the share of "
                   "hits in all accesses. There both are calculated from other counters. Rows are "
                   "sorted by HITS, largest first; Buffers and Cached are in cachestat."}},
      .object = skeleton<cachetop_bpf>(),
      .positionals = shared::interval_count(5),
      .options = joined({shared::screen(), shared::task_filters(), {shared::max_keys()}}),
      .hooks = page_cache::hooks(),
      .report =
          table<Key, Sums>(
              maps::pages,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               derived<Line, user>("user", "UID", as::wide(as::text, -8), "name of the user")
                   .key_part()
                   .in_text()
                   .asking(),
               of_key<Line, &Key::uid>("uid", "", as::wide(as::pid, -6), "user id").with("json"),
               of_key<Line, &Key::comm>("comm", "CMD", as::comm, "command name of the thread"),
               derived<Line, hits>("hits", "HITS", as::wide(as::number, 8),
                                   "accesses that found their page")
                   .counter(),
               derived<Line, misses>("misses", "MISSES", as::wide(as::number, 8),
                                     "accesses whose page was read in")
                   .counter(),
               of_value<Line, &Sums::dirtied>("dirtied", "DIRTIES", as::wide(as::number, 8),
                                              "pages dirtied"),
               derived<Line, hit_ratio>("hit_ratio", "READ_HIT%", as::wide(as::percent, 10),
                                        "share of hits in all accesses, 0 to 1"),
               derived<Line, write_hit_ratio>(
                   "write_hit_ratio", "WRITE_HIT%", as::wide(as::percent, 10),
                   "share of dirtied pages that were already in the cache, 0 to 1"),
               derived<Line, read_ahead>("read_ahead", "READAHEAD", as::number,
                                         "pages read in that were not accessed yet")
                   .counter()
                   .with("json"),
               of_value<Line, &Sums::accessed>("accessed", "ACCESSED", as::number, "accesses")
                   .with("json"),
               of_value<Line, &Sums::added>("added", "ADDED", as::number,
                                            "pages added to the cache")
                   .with("json"),
               of_value<Line, &Sums::written>("write_added", "WADDED", as::number,
                                              "of those, by a write")
                   .with("json")},
              "hits,misses,dirtied", 20)
              .counted_by(3)
              .on_screen(),
      .announce = "Tracing the page cache",
  };
}
