// biolatency: block I/O latency as a histogram.
#include "block/biolatency.h"

#include "biolatency.skel.h"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<biolatency_bpf>;
using Key = biolatency_key;

TOOL(biolatency) {
  return {
      .name = "biolatency",
      .summary = "block I/O latency as a histogram",
      .description =
          "Time of each block request from its issue to the device until it is complete, as a log2 "
          "histogram. With --queued the time in the I/O scheduler's queue counts too. A request "
          "that completes in parts counts once, when the last part is done.\n\n"
          "Task filters apply to the submitter of the I/O. Data that the kernel writes back later "
          "belongs to no process; with --cgroup it counts where the io controller charges it. A "
          "flush that the kernel makes for several waiting requests is attributed to the first.",
      .overhead = "two hooks per I/O (three with --queued or a task filter), no output per event",
      .examples = {{"biolatency", "one histogram of everything until Ctrl-C"},
                   {"biolatency -D 1 10", "per disk, ten reports of one second"},
                   {"biolatency -mT 5", "in milliseconds, every five seconds, with the time"},
                   {"biolatency --heatmap disk.svg 1 60",
                    "a heat map of one minute, for any browser"},
                   {"biolatency -F -d sda", "per set of request flags, only sda"},
                   {"biolatency -- dd if=big of=/dev/null", "only what this command submits"}},
      .questions = {{"Is the disk slow?", "biolatency -D 1 10"},
                    {"Does I/O wait in the scheduler's queue or in the device?", "biolatency -Q"},
                    {"Are reads or writes slow, or flushes and discards?", "biolatency -F -e"}},
      .differs = {{Difference::bcc,
                   "-j prints one JSON object per line instead of a Python dictionary. -D and "
                   "-F can be used together."},
                  {Difference::libbpf_tools,
                   "-D is --disks. There --disk is the name of both -D and -d."},
                  {Difference::libbpf_tools,
                   "A cgroup filter applies to the task that submits the I/O. There it applies to "
                   "the task that runs when the request completes, usually another one."},
                  {Difference::libbpf_tools,
                   "A request that completes in parts ends with its last part instead of its "
                   "first. Operations have the names that the running kernel gives them; there "
                   "a fixed table misnames some."}},
      .object = skeleton<biolatency_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('Q', "queued", "include the time queued in the I/O scheduler",
                       setting(&Opt::queued)),
                  flag('D', "disks", "one histogram per disk", setting(&Opt::by_disk)),
                  flag('F', "flags", "one histogram per operation and its flags",
                       setting(&Opt::by_flags)),
                  flag('e', "extension", "print average, total and count below each histogram"),
                  shared::request_disk(), shared::milliseconds(), shared::timestamp(),
                  shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .hooks = {{"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "task-filter|by"},
                {"insertion into the queue", {{{progs::on_insert}}}, "queued"},
                {"issue to the device", {{{progs::on_issue}}}},
                {"completion", {{{progs::on_complete}}}}},
      .maps = {{maps::requests, MapSize::block_requests},
               {maps::bios, MapSize::block_bios},
               {maps::request_owners, MapSize::block_requests, "by"}},
      .report = histogram<Key>(
          maps::latency, "latency",
          {field<&Key::disk>("disk", "disk", as::disk, "the disk").with("disks"),
           field<&Key::flags>("flags", "flags", as::block_flags, "operation and flags")
               .with("flags")},
          "extension"),
      .announce = "Tracing block device I/O",
  };
}
