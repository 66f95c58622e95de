// swapin: page faults that wait for memory to be read back from swap.
#include "memory/swapin.h"

#include "coretap/faults.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "swapin.skel.h"

using namespace coretap;
using Key = swapin_key;
using Counts = swapin_counts;
using Line = Row<Key, Counts>;

TOOL(swapin) {
  return {
      .name = "swapin",
      .summary = "page faults that wait for swap-ins, with their latency",
      .description =
          "Processes whose memory is read back from swap: the page faults that waited for it "
          "(COUNT), the average and longest wait, the disk, and the bytes read. A wait is the time "
          "from the first read of a fault to the end of the fault. Because the kernel reads ahead, "
          "a fault may read several pages, and pages that are in memory when they are needed cause "
          "no wait. Reads without a fault (swapoff, MADV_WILLNEED) have bytes but no count.\n\n"
          "Not seen: pages that come from zswap, which is memory, and swap files on network file "
          "systems.",
      .overhead =
          "a hook per page fault and one per block I/O, some tens of nanoseconds "
          "while no page is swapped in",
      .examples = {{"swapin", "each second"},
                   {"swapin 10 6", "a minute, every ten seconds"},
                   {"swapin -s total_ns -r 5 10 1", "the five that waited most in ten seconds"}},
      .questions = {{"Which processes wait for swap?", "swapin"},
                    {"How long does a program wait for memory that was swapped out?",
                     "swapin -p 181 10 1"}},
      .differs = {{Difference::bcc,
                   "Page faults that waited for swap are counted, with their time. There, pages "
                   "that the kernel reads ahead count as swap-ins of the faulting process."}},
      .object = skeleton<swapin_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({{flag('T', "notime", "no line with the time of day"), shared::pid(),
                          shared::tid(), shared::uid(), shared::comm(), shared::cgroup()},
                         {shared::top('r'), shared::sort(), shared::max_keys()}}),
      .hooks = {faults::starts(),
                {"reads from swap", {{{progs::on_bio}}}},
                {"reads from disks in memory",
                 // bpf_cpumask_create: added in 6.3, which removed the traced function.
                 {{{progs::on_read}},
                  {{progs::on_read_kprobe}},
                  {{}, {{Need::function, "bpf_cpumask_create"}}}},
                 {},
                 "swap on zram is not seen"},
                {.name = "major faults",
                 .candidates = {{{progs::on_major}}},
                 .sampling = every(1)}},
      .report =
          table<Key, Counts>(
              maps::waits,
              {of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the task"),
               of_key<Line, &Key::pid>("pid", "PID", as::pid, "process"),
               of_value<Line, &Counts::count>("count", "COUNT", as::wide(as::number, 7),
                                              "faults that waited"),
               mean_of<Line, &Counts::total_ns, &Counts::count>(
                   "average_ns", "AVG(ms)", as::milliseconds, "their average wait"),
               of_value<Line, &Counts::longest>("max_ns", "MAX(ms)", as::milliseconds,
                                                "the longest wait of the interval"),
               of_value<Line, &Counts::total_ns>("total_ns", "TOTAL(ms)", as::milliseconds,
                                                 "total time of all waits")
                   .with("json"),
               of_value<Line, &Counts::bytes>("swapped_in_bytes", "READ(KB)",
                                              as::wide(as::kilobytes, 9), "bytes read from swap"),
               of_key<Line, &Key::disk>("disk", "DISK", as::disk, "the disk")},
              "count,bytes")
              .with_largest<&Counts::longest>()
              .timed_with("!notime"),
      .announce = "Tracing swap-ins",
  };
}
