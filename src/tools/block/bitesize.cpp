// bitesize: sizes of block I/O, as histograms by command.
#include "block/bitesize.h"

#include "bitesize.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<bitesize_bpf>;
using Sizes = bitesize_key;

namespace {

std::string comm(const Sizes& s) { return s.comm[0] ? text_in(s.comm) : "[unknown]"; }

}  // namespace

TOOL(bitesize) {
  return {
      .name = "bitesize",
      .summary = "sizes of block I/O, as histograms by command",
      .description =
          "Sizes of block requests as they are issued to the device, after merging and splitting, "
          "as one log2 histogram for each command name that submitted them. Requests without data "
          "(flushes) are not counted.\n\n"
          "The name is that of the task that made the request, not of the kernel thread that "
          "dispatched it. Data that the kernel writes back later is submitted by a kernel thread. "
          "[unknown] is for requests that were made before tracing started.",
      .overhead = "two hooks per I/O; counted in the kernel, no output per event",
      .examples = {{"bitesize", "by command, until Ctrl-C"},
                   {"bitesize -T 5", "every five seconds, with the time"},
                   {"bitesize -c postgres 10 1", "what postgres submits in ten seconds"},
                   {"bitesize -F -d sda", "reads and writes of one disk, separately"},
                   {"bitesize -- dd if=big of=/dev/null bs=1M", "what this command submits"}},
      .questions = {{"Is the disk busy with many small requests?", "bitesize 10 1"},
                    {"Which sizes does a database read and write?",
                     "bitesize -F -c postgres 10 1"}},
      .differs = {{Difference::both,
                   "The command is that of the task that submitted the I/O. Peers show the one "
                   "that issued it to the device, often a kworker."},
                  {Difference::libbpf_tools,
                   "-c compares whole names and takes a list. There it compares the start of "
                   "the name."}},
      .object = skeleton<bitesize_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('D', "disks", "one histogram per disk", setting(&Opt::by_disk)),
                  flag('F', "flags", "one histogram per operation", setting(&Opt::by_operation)),
                  shared::comm('c').also("whole-comm"), shared::request_disk(), shared::timestamp(),
                  shared::pid(), shared::tid(), shared::uid(), shared::cgroup(0),
                  shared::max_keys()},
      .other_meanings =
          {{'c', "comm",
            "whole names; in libbpf-tools the start of a name: --name TEXT finds a part "
            "(--whole-comm: without this note)"}},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}},
                {"issue to the device", {{{progs::on_issue}}}}},
      .maps = {{maps::requests, MapSize::block_requests}, {maps::bios, MapSize::block_bios}},
      .report = histogram<Sizes>(
                    maps::sizes, "request size",
                    {derived<Sizes, comm>("comm", "Process Name", as::comm, "command name"),
                     field<&Sizes::disk>("disk", "disk", as::disk, "the disk").with("disks"),
                     field<&Sizes::flags>("operation", "operation", as::block_flags, "operation")
                         .with("flags")})
                    .scaled({unit::bytes, 1024}),
      .announce = "Tracing sizes of block I/O",
  };
}
