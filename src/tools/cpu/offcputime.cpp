// offcputime: where tasks leave the CPU, and how long until they are back.
#include "core/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "offcputime.skel.h"

using namespace coretap;
using Opt = rodata_of<offcputime_bpf>;

namespace {

Result<void> check_times(const Config& config) {
  if (config.number("min-block-time", 0) > config.number("max-block-time", UINT64_MAX))
    return Error{"--min-block-time is above --max-block-time", {}, "no wait can be both", kUsage};
  return {};
}

}  // namespace

TOOL(offcputime) {
  return {
      .name = "offcputime",
      .summary = "off-CPU time by kernel and user stack",
      .description =
          "Time from leaving the CPU until running again, summed by thread and by the kernel and "
          "user stack in which it left. Blocked time (waiting for I/O, locks, timers) and time of "
          "tasks that were preempted and stayed runnable are told apart: the latter end in the "
          "frame [runnable].\n\n"
          "Times are in microseconds. A task that is still off the CPU when tracing ends has not "
          "been counted yet. User stacks need code with frame pointers.",
      .overhead =
          "one hook per context switch with a walk of the user stack; the kernel stack is "
          "walked only for waits within --min-block-time and --max-block-time",
      .examples = {{"offcputime 10", "ten seconds, all threads"},
                   {"offcputime -p 1234,5678", "these processes, until Ctrl-C"},
                   {"offcputime -K -m 1000 5", "kernel stacks of waits of a millisecond and more"},
                   {"offcputime -df -p 1234 30 > out.folded", "folded stacks for a flame graph"},
                   {"offcputime --state 2 10", "uninterruptible sleeps only (disk, mostly)"}},
      .object = skeleton<offcputime_bpf>(),
      .positionals = Positionals::duration,
      .options = {shared::pid(), shared::tid(), shared::uid(0), shared::comm(), shared::cgroup(),
                  flag('u', "user-threads-only", "no kernel threads",
                       setting(&Opt::user_threads_only)),
                  flag('k', "kernel-threads-only", "only kernel threads",
                       setting(&Opt::kernel_threads_only)),
                  flag('U', "user-stacks-only", "no kernel stacks"),
                  flag('K', "kernel-stacks-only", "no user stacks"),
                  flag('d', "delimited", "a delimiter between kernel and user stack"),
                  flag('f', "folded", "one line per stack, for flame graphs"),
                  flag('s', "offset", "print offsets within functions"),
                  number('m', "min-block-time", "US", "only waits of at least so many microseconds",
                         setting(&Opt::min_block_ns), 1000),
                  number('M', "max-block-time", "US", "only waits of at most so many microseconds",
                         setting(&Opt::max_block_ns), 1000),
                  number(0, "state", "MASK",
                         "only tasks that left in one of these states: 0 runnable, "
                         "1 interruptible, 2 uninterruptible, 3 both",
                         setting(&Opt::state_mask), 1, setting(&Opt::state_on)),
                  shared::stack_depth(), shared::stack_storage()},
      .hooks = {{"context switches", {{{"on_switch"}}}}},
      .report = StackReport{"microseconds off the CPU"},
      .announce = "Tracing off-CPU time (us) by kernel and user stack",
      .exclusive = {{"user-threads-only", "kernel-threads-only"},
                    {"user-stacks-only", "kernel-stacks-only"},
                    {"folded", "json"},
                    {"folded", "csv"}},
      .check = check_times,
  };
}
