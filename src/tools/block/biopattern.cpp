// biopattern: random and sequential I/O by disk.
#include "block/biopattern.h"

#include "biopattern.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Key = biopattern_key;
using Counts = biopattern_value;
using Line = Row<Key, Counts>;

namespace {

Value part(std::uint64_t of, const Counts& c) {
  auto all = c.random + c.sequential;
  if (!all) return {};  // a single request has no pattern
  return static_cast<double>(of) / static_cast<double>(all);
}
Value random_ratio(const Line& l) { return part(l.value.random, l.value); }
Value sequential_ratio(const Line& l) { return part(l.value.sequential, l.value); }

}  // namespace

TOOL(biopattern) {
  return {
      .name = "biopattern",
      .summary = "random and sequential I/O, by disk",
      .description =
          "Requests as they are issued to each disk: sequential ones start where the disk's "
          "previous request, of any process, ended; all others are random (%SEQ, %RND). COUNT and "
          "KBYTES are all requests with data and their bytes. The first request of a disk has none "
          "before it, and is in COUNT only.\n\n"
          "With task filters, only requests that these tasks submitted count.\n\n"
          "Requests are compared in the order of their issue; completions come in another order if "
          "a device works on several requests at a time. Several simultaneous sequential streams "
          "appear random, as they are to the disk. A request that the device refuses for the "
          "moment and that is issued again counts again.",
      .overhead =
          "one hook per I/O, two with a task filter; counted in the kernel, no output per event",
      .examples = {{"biopattern", "by disk, until Ctrl-C"},
                   {"biopattern 1 10", "ten reports of one second"},
                   {"biopattern -T -d sda 5", "one disk, every five seconds, with the time"}},
      .questions = {{"Is the I/O of a disk random or sequential?", "biopattern 10 1"}},
      .differs = {{Difference::both,
                   "Requests are compared when they are issued. Peers use completions, which come "
                   "in another order if a device works on several requests at a time, and count "
                   "flushes as accesses."},
                  {Difference::bcc,
                   "Lines start with the time with -T, as in libbpf-tools. There they always do."},
                  {Difference::both, "%RND and %SEQ have two decimals."}},
      .object = skeleton<biopattern_bpf>(),
      .positionals = shared::interval_count(),
      .options = {shared::request_disk(), shared::timestamp(), shared::pid(), shared::tid(),
                  shared::uid(), shared::comm(), shared::cgroup(), shared::max_keys()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "task-filter|by"},
                {"issue to the device", {{{progs::on_issue}}}}},
      .maps = {{maps::requests, MapSize::block_requests, "task-filter|by"},
               {maps::bios, MapSize::block_bios, "task-filter|by"},
               {maps::next_sectors, MapSize::disks}},
      .report =
          table<Key, Counts>(
              maps::disks,
              {of_key<Line, &Key::disk>("disk", "DISK", as::disk, "the disk"),
               derived<Line, random_ratio>("random_ratio", "%RND", as::percent,
                                           "share of random requests after the first, 0 to 1"),
               derived<Line, sequential_ratio>("sequential_ratio", "%SEQ", as::percent,
                                               "share of sequential ones, 0 to 1"),
               of_value<Line, &Counts::ios>("ios", "COUNT", as::wide(as::number, 8),
                                            "requests with data"),
               of_value<Line, &Counts::bytes>("total_bytes", "KBYTES", as::wide(as::kilobytes, 10),
                                              "their bytes"),
               of_value<Line, &Counts::random>("random", "RANDOM", as::number, "random requests")
                   .with("json"),
               of_value<Line, &Counts::sequential>("sequential", "SEQUENTIAL", as::number,
                                                   "sequential requests")
                   .with("json")},
              "ios")
              .as_lines(),
      .announce = "Tracing patterns of block I/O",
  };
}
