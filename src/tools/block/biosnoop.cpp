// biosnoop: each block I/O with the task that submitted it and how long it took.
#include "block/biosnoop.h"

#include "biosnoop.skel.h"
#include "coretap/disks.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<biosnoop_bpf>;
using Event = biosnoop_event;

namespace {

// A device flush has no sector.
Value sector(const Event& e) { return value_if(e.bytes, e.sector); }
Value queued(const Event& e) { return value_if(e.queue_known, e.queued_ns); }
Value pattern(const Event& e) {
  return value_if(e.pattern != BIOSNOOP_NO_PATTERN,
                  std::string(e.pattern == BIOSNOOP_SEQUENTIAL ? "S" : "R"));
}
Value error(const Event& e) { return block_error(e.status); }

}  // namespace

TOOL(biosnoop) {
  return {
      .name = "biosnoop",
      .summary = "each block I/O with its process, disk, size and latency",
      .description =
          "One line per disk request, when it is complete: the task that submitted it, the "
          "operation and its flags (T: R read, W write, D discard, F flush; then F forced unit "
          "access, A read-ahead, S synchronous, M metadata), the sector, the size, and the time "
          "from its issue to the device until all of it was complete. With --queued, also the time "
          "in the I/O scheduler's queue before the issue.\n\n"
          "The submitter is the task that made the request, not the one that its completion "
          "interrupted; data that the kernel writes back later is submitted by a kernel thread. "
          "With --cgroup, such I/O counts where the io controller charges it. A flush that the "
          "kernel makes for several waiting requests is attributed to the first, and has no "
          "sector. Columns of an I/O whose submission was not seen show a dash.",
      .overhead = "three hooks per I/O (four with --queued), and an event for each that is shown",
      .examples = {{"biosnoop", "all block I/O until Ctrl-C"},
                   {"biosnoop -Q -d sda 10", "ten seconds of sda, with the time in the queue"},
                   {"biosnoop -m 20", "only what took 20 ms or more"},
                   {"biosnoop -tP -p 181",
                    "of process 181, with the time of day, and whether it is "
                    "sequential"},
                   {"biosnoop -- sync", "what this command submits"}},
      .questions = {{"Which process keeps the disk busy?", "biosnoop"},
                    {"Which I/O was slow, and whose?", "biosnoop -Q -m 20"},
                    {"Is the I/O sequential or random?", "biosnoop -P"}},
      .differs = {{Difference::bcc,
                   "T has the operation and its flags, such as RA or WS, instead of R or W."},
                  {Difference::libbpf_tools,
                   "A cgroup filter applies to the task that submits the I/O. There it applies to "
                   "the tasks that run when the request is queued, issued and completed, so most "
                   "I/O is lost."}},
      .object = skeleton<biosnoop_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {flag('Q', "queued", "print the time queued in the I/O scheduler",
                       setting(&Opt::queued)),
                  shared::request_disk(),
                  number('m', "min", "MS", "only I/O that took at least this many milliseconds",
                         setting(&Opt::min_ns), kMillisecond),
                  flag('P', "pattern",
                       "print S for I/O that begins where the disk's previous one ended, R for "
                       "random",
                       setting(&Opt::with_pattern)),
                  shared::timestamp('t'), shared::pid(), shared::tid(0), shared::uid(),
                  shared::comm(), shared::name('n'), shared::cgroup()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}},
                {"insertion into the queue", {{{progs::on_insert}}}, "queued"},
                {"issue to the device", {{{progs::on_issue}}}},
                {"completion", {{{progs::on_complete}}}}},
      .maps = {{maps::requests, MapSize::block_requests},
               {maps::bios, MapSize::block_bios},
               {maps::next_sectors, MapSize::disks}},
      .report =
          events<Event>(
              {owner<&Event::owner>(id::comm, id::pid),
               field<&Event::disk>("disk", "DISK", as::disk, "the disk"),
               field<&Event::flags>("rwbs", "T", as::rwbs, "operation and flags, in letters"),
               derived<Event, sector>("sector", "SECTOR", as::number, "first sector of 512 bytes"),
               field<&Event::bytes>("bytes", "BYTES", as::wide(as::number, 8), "length"),
               derived<Event, pattern>("pattern", "P", as::wide(as::text, -1),
                                       "S: begins where the disk's previous I/O ended; R: not")
                   .with("pattern"),
               derived<Event, queued>("queued_ns", "QUE(ms)", as::precise(as::milliseconds, 3),
                                      "time in the I/O scheduler's queue")
                   .with("queued"),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::precise(as::milliseconds, 3),
                                         "time from issue to completion"),
               derived<Event, error>("error", "ERROR", as::error,
                                     "what it failed with; null: it succeeded")
                   .with("json"),
               field<&Event::flags>("flags", "FLAGS", as::block_flags, "operation and flags")
                   .unbounded()
                   .with("json"),
               owner<&Event::owner>(id::tid, id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::since_start, "TIME(s)", 11, "!timestamp"},
                      {TimeColumn::wall, "TIMESTAMP", 12, "timestamp"}}),
      .announce = "Tracing block device I/O",
  };
}
