// seeksize: seek distances of disks between requests, as histograms by command.
#include "block/seeksize.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "seeksize.skel.h"

using namespace coretap;
using Opt = rodata_of<seeksize_bpf>;
using Seeks = seeksize_key;

namespace {

constexpr std::string_view kDirections[] = {"forwards", "backwards"};

std::string comm(const Seeks& s) { return s.comm[0] ? text_in(s.comm) : "[unknown]"; }

}  // namespace

TOOL(seeksize) {
  return {
      .name = "seeksize",
      .summary = "how far disks seek, as histograms by command",
      .description =
          "For each block request, as it is issued to the device, the distance in sectors of 512 "
          "bytes from the end of the disk's previous request, of any process, to its start: one "
          "log2 histogram for each command name that submitted requests. Sequential I/O has the "
          "distance 0 and is in the first slot. With --signed, distances forwards and backwards "
          "are separate. Requests without data (flushes) and the first request of each disk are "
          "not counted.\n\n"
          "The name is that of the task that made the request, not of the kernel thread that "
          "dispatched it. Data that the kernel writes back later is submitted by a kernel thread. "
          "[unknown] is for requests that were made before tracing started.",
      .overhead = "two hooks per I/O; counted in the kernel, no output per event",
      .examples = {{"seeksize", "by command, until Ctrl-C"},
                   {"seeksize -T 5", "every five seconds, with the time"},
                   {"seeksize -D -c postgres 10 1", "of postgres, by disk, in ten seconds"},
                   {"seeksize --signed -d sda", "forwards and backwards separately, of one disk"}},
      .questions = {{"Which program makes the disk seek?", "seeksize 10 1"}},
      .object = skeleton<seeksize_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('D', "disks", "one histogram per disk", setting(&Opt::by_disk)),
                  flag(0, "signed", "one histogram per direction", setting(&Opt::by_direction)),
                  shared::comm('c'), shared::request_disk(), shared::timestamp(), shared::pid(),
                  shared::tid(), shared::uid(), shared::cgroup(0), shared::max_keys()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}},
                {"issue to the device", {{{progs::on_issue}}}}},
      .maps = {{maps::requests, MapSize::block_requests},
               {maps::bios, MapSize::block_bios},
               {maps::next_sectors, MapSize::disks}},
      .report = histogram<Seeks>(
                    maps::distances, "seek distance",
                    {derived<Seeks, comm>("comm", "Process Name", as::comm, "command name"),
                     field<&Seeks::disk>("disk", "disk", as::disk, "the disk").with("disks"),
                     named<&Seeks::backwards, kDirections>("direction", "direction", as::text,
                                                           "forwards (also 0) or backwards")
                         .with("signed")})
                    .scaled({unit::sectors, 1}),
      .announce = "Tracing how far disks seek",
  };
}
