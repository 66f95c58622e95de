// readahead: time from the read-ahead of a page to its first use.
#include "fs/readahead.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "readahead.skel.h"

using namespace coretap;
using Sums = readahead_sums;

namespace {

// Counters of the CPUs are not read at the same moment: the result must not be negative.
std::uint64_t still_unused(const Sums& s) {
  auto gone = s.used + s.dropped;
  return s.read > gone ? s.read - gone : 0;
}

}  // namespace

TOOL(readahead) {
  return {
      .name = "readahead",
      .summary = "how soon pages that were read ahead are used, and how many are not",
      .description =
          "Ages of pages in the page cache, from the moment they are added by read-ahead until a "
          "task uses them for the first time: by a read, or by a fault on a mapping of the file. "
          "Ages well above the device's latency mean that read-ahead is too early; pages that stay "
          "unused mean that it reads too much.\n\n"
          "Pages that a read itself waits for are added in the same way and are included, with "
          "small ages. A large folio is used as a whole and counts as many pages as it has. A "
          "fault that also maps pages beside its own uses them, too. UNUSED counts pages read ahead since tracing "
          "started that no task has used so far; pages that were removed from the cache before a "
          "task used them are in DROPPED.\n\n"
          "Filters apply to the task that reads ahead, not to those that use the pages.",
      .overhead = "a hook per page added or dropped, and per read and fault; counted in the kernel",
      .examples = {{"readahead", "one histogram of everything until Ctrl-C"},
                   {"readahead -d 10", "of ten seconds"},
                   {"readahead -T 5", "every five seconds, with the time"},
                   {"readahead -- grep -r word /usr/share/doc", "of what one command reads"}},
      .questions = {{"Does read-ahead read pages that no task uses?", "readahead 10"},
                    {"Is read-ahead too early, or read_ahead_kb too large?", "readahead -d 10"}},
      .differs = {{Difference::both,
                   "Use through mapped memory counts. Peers do not see it, and report too many "
                   "pages as unused. All functions that read ahead are traced; peers trace one. "
                   "Pages are counted; peers count folios."}},
      .object = skeleton<readahead_bpf>(),
      .positionals = shared::interval_count(),
      .options = {shared::duration('d'), shared::timestamp(), shared::pid(), shared::tid(),
                  shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"read-ahead",
                 {{{progs::on_unbounded, progs::on_order}},
                  {{progs::in_unbounded, progs::in_order}},
                  {{progs::in_unbounded_kprobe, progs::in_order_kprobe}},
                  {{progs::in_unbounded}},
                  {{progs::in_unbounded_kprobe}}}},
                {"pages added", {{{progs::on_add}}}},
                {"pages dropped", {{{progs::on_delete}}}},
                {"first use",
                 {{{progs::on_read, progs::on_map, progs::on_fault}},
                  {{progs::folio_used, progs::in_map, progs::in_fault}},
                  {{progs::folio_used_kprobe, progs::in_map_kprobe, progs::in_fault_kprobe}},
                  {{progs::page_used, progs::in_map, progs::in_fault}},
                  {{progs::page_used_kprobe, progs::in_map_kprobe, progs::in_fault_kprobe}}}}},
      .maps = {{maps::unused, MapSize::cached_pages}},
      .report = histogram<Sums>(maps::ages_cpus, "age", {})
                    .in_milliseconds()
                    .with_totals<Sums>(
                        maps::pages_cpus, "Readahead unused/total pages",
                        {derived<Sums, still_unused>("unused_pages", "UNUSED", as::pages,
                                                     "pages not used so far")
                             .gauge(),
                         field<&Sums::read>("read_pages", "READ", as::pages, "pages read ahead"),
                         field<&Sums::used>("used_pages", "USED", as::pages, "pages used since")
                             .with("json"),
                         field<&Sums::dropped>("dropped_pages", "DROPPED", as::pages,
                                               "pages dropped before they were used")
                             .with("json")}),
      .announce = "Tracing read-ahead",
  };
}
