// mdflush: flush requests to software RAID, with the process.
#include "block/mdflush.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "mdflush.skel.h"

using namespace coretap;
using Event = mdflush_event;

namespace {

Value latency(const Event& e) { return unless_0(e.latency_ns); }

}  // namespace

TOOL(mdflush) {
  return {
      .name = "mdflush",
      .summary = "flushes that reach software RAID (md), with the process",
      .description =
          "One line per request to an md array to flush the caches of its disks, when it reaches "
          "the array: fsync, a file system's journal, or a write that needs a flush before it. All "
          "disks of the array flush then, and requests behind it wait.\n\n"
          "With --latency, the line is printed when the array is done, with the time that it took. "
          "Not seen then: flushes with data that the array passes to a disk unchanged, which raid0 "
          "may do; they count as unmatched when the kernel reuses their memory.",
      .overhead =
          "one hook per I/O of all disks, two with --latency, and an event per flush of an array",
      .examples = {{"mdflush", "all arrays until Ctrl-C"},
                   {"mdflush -l -d md0", "one array, with the time of each flush"},
                   {"mdflush -- git commit -a", "what a command flushes"}},
      .questions = {{"Which process makes the RAID flush its disks?", "mdflush"},
                    {"How long do flushes of the RAID take?", "mdflush --latency"}},
      .object = skeleton<mdflush_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined({{flag('l', "latency", "print each flush when it is done, with its time",
                               setting(&rodata_of<mdflush_bpf>::with_latency)),
                          shared::disk()},
                         shared::task_filters()}),
      .hooks = {{"requests", {{{progs::on_bio}}}},
                {"ends of requests", {{{progs::on_end}}}, "latency"}},
      .maps = {{maps::flushes, MapSize::per_cpu, "latency"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid, id::comm),
               field<&Event::disk>("disk", "DEVICE", as::wide(as::disk, -16), "the array"),
               derived<Event, latency>("latency_ns", "LAT(ms)", as::precise(as::milliseconds, 3),
                                       "time until the array was done")
                   .with("latency"),
               who<&Event::who>(id::tid, id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, {}}}),
      .announce = "Tracing flushes of md arrays",
  };
}
