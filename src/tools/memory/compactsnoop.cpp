// compactsnoop: runs of memory compaction.
#include "memory/compactsnoop.h"

#include "compactsnoop.skel.h"
#include "coretap/fragmentation.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Event = compactsnoop_event;

namespace {

constexpr std::string_view kKinds[] = {"direct", "manual", "proactive", "kcompactd"};
static_assert(std::size(kKinds) == COMPACT_KINDS);
constexpr std::string_view kModes[] = {"ASYNC", "SYNC"};

std::string zone(const Event& e) { return zone_name(text_in(e.zone)); }

Value fragmentation(const Event& e) {
  if (e.order < 0) return {};  // the whole zone is compacted, not for an allocation
  return fragmentation_index(e.free_blocks, FREE_AREAS, e.order);
}

}  // namespace

TOOL(compactsnoop) {
  return {
      .name = "compactsnoop",
      .summary = "memory compaction: who ran it, for how long, and with what result",
      .description =
          "One line per run of compaction on one zone: direct (an allocation waits for it), manual "
          "(/proc/sys/vm/compact_memory), proactive, or by kcompactd. ORDER -1 means the whole "
          "zone.\n\n"
          "With --extended: FRAGIDX, the fragmentation index of the requested order when the run "
          "began (towards 0: lack of memory, towards 1: fragmentation, -1: would have succeeded, "
          "-: no order), the zone's watermarks and free memory in pages, and the pages scanned and "
          "migrated.\n\n"
          "`vmscan --counters` shows the kernel's own counters of compaction.",
      .overhead = "a few hooks per run of compaction, which is itself rare and slow",
      .examples = {{"compactsnoop", "all runs"},
                   {"compactsnoop -T -e", "with times, fragmentation index and watermarks"},
                   {"compactsnoop -K -d 10", "ten seconds, with kernel stacks"},
                   {"compactsnoop -p 181 --json", "what process 181 waits for, for a script"}},
      .questions = {{"Which task is held up by memory compaction (huge pages)?", "compactsnoop -T"},
                    {"Why does the kernel compact memory?", "compactsnoop -K -d 10"}},
      .differs = {{Difference::bcc,
                   "Manual compaction (/proc/sys/vm/compact_memory), proactive compaction and "
                   "kcompactd are shown, too; KIND is one of the columns of -e. FRAGIDX is - "
                   "instead of -1.000 if there is no order."}},
      .object = skeleton<compactsnoop_bpf>(),
      .options = joined({{shared::pid(), shared::tid(), shared::uid(), shared::comm(),
                          shared::name('n'), shared::cgroup(), shared::duration('d'),
                          shared::timestamp(), shared::extended(), shared::kernel_stack()},
                         belonging_to("kernel-stack", {shared::stack_depth()})}),
      .hooks = {{"zone and order",
                 {{{}, {has_arguments("mm_compaction_begin", 4)}},
                  {.programs = {progs::on_suitable, progs::on_isolate_migrate,
                                progs::on_isolate_free},
                   .caveat = "this kernel does not report which pages its fast search scanned: "
                             "MSCAN and FSCAN do not include them"}}},
                {"compaction", {{{progs::on_begin, progs::on_end}}}},
                {"migration", {{{progs::on_migrate}}}, {}, "migrated pages are not counted"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::comm, id::pid),
               field<&Event::node>("node", "NODE", as::wide(as::number, -4), "NUMA node").bounded(),
               derived<Event, zone>("zone", "ZONE", as::wide(as::text, -12), "memory zone")
                   .bounded(),
               field<&Event::order>("order", "ORDER", as::small,
                                    "2^order pages requested; -1: whole zone"),
               named<&Event::sync, kModes>("mode", "MODE", as::wide(as::text, -5),
                                           "SYNC may wait, ASYNC does not"),
               derived<Event, fragmentation>("fragmentation_index", "FRAGIDX", as::thousandths,
                                             "fragmentation index of the order")
                   .or_null()
                   .with("extended"),
               field<&Event::min>("min_pages", "MIN", as::pages, "the zone's min watermark, pages")
                   .no_metric()
                   .with("extended"),
               field<&Event::low>("low_pages", "LOW", as::pages, "the zone's low watermark, pages")
                   .no_metric()
                   .with("extended"),
               field<&Event::high>("high_pages", "HIGH", as::pages,
                                   "the zone's high watermark, pages")
                   .no_metric()
                   .with("extended"),
               field<&Event::free>("free_pages", "FREE", as::pages, "free pages of the zone")
                   .no_metric()
                   .with("extended"),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::milliseconds,
                                         "time of the run"),
               field<&Event::status>("status", "STATUS",
                                     as::enumerator("compact_result", "COMPACT_", -17),
                                     "result of the run"),
               named<&Event::kind, kKinds>("kind", "KIND", as::wide(as::text, -9),
                                           "what requested the run")
                   .with("extended"),
               field<&Event::migrate_scanned>("migrate_scanned_pages", "MSCAN", as::pages,
                                              "pages scanned for pages to move")
                   .with("extended"),
               field<&Event::free_scanned>("free_scanned_pages", "FSCAN", as::pages,
                                           "pages scanned for free pages")
                   .with("extended"),
               field<&Event::migrated>("migrated_pages", "MIGR", as::pages, "pages moved")
                   .with("extended"),
               who<&Event::who>(id::tid)},
              "kernel-stack")
              .timed_at_begin(),
      .announce = "Tracing memory compaction",
  };
}
