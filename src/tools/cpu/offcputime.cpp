// offcputime: stacks in which tasks leave the CPU, and the time until they are back.
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "offcputime.skel.h"

using namespace coretap;
using Opt = rodata_of<offcputime_bpf>;

TOOL(offcputime) {
  return {
      .name = "offcputime",
      .summary = "off-CPU time by kernel and user stack",
      .description =
          "Time from leaving the CPU until running again, summed by thread and by the kernel and "
          "user stack at which it left. Blocked time (waiting for I/O, locks, timers) and the "
          "time of tasks that were preempted and stayed runnable are separate: stacks of the "
          "latter end in the frame [runnable].\n\n"
          "Times are in microseconds. Waits that are under way when tracing ends are marked "
          "[still waiting].",
      .overhead =
          "one hook per context switch with a walk of the user stack; the kernel stack is "
          "walked only for waits within --min-block-time and --max-block-time",
      .examples = {{"offcputime 10", "ten seconds, all threads"},
                   {"offcputime -p 1234,5678", "these processes, until Ctrl-C"},
                   {"offcputime -K -m 1000 5", "kernel stacks of waits of a millisecond and more"},
                   {"offcputime -p 1234 --svg out.svg 30", "a flame graph, for any browser"},
                   {"offcputime --state 2 10", "uninterruptible sleeps only (disk, mostly)"},
                   {"offcputime -p 1234 --reasons 10", "with what each wait was for"}},
      .questions = {{"What does a program wait for that is slow without using the CPU?",
                     "offcputime -p 1234 10"},
                    {"In which code does it wait for locks?", "offcputime -p 1234 -m 1000 10"},
                    {"Why are tasks in uninterruptible sleep (state D), and the load high?",
                     "offcputime --state 2 10"}},
      .differs = {{Difference::both,
                   "Stacks of preempted tasks end in the frame [runnable], and waits that are "
                   "under way at the end are shown, marked [still waiting]. Peers mix the former "
                   "with blocked time, and omit the latter."},
                  {Difference::both, "User stacks are unwound without frame pointers, too."},
                  {Difference::libbpf_tools,
                   "--state is a mask, as its help says. There the whole value is compared, so "
                   "that sleeps with other bits never match, and idle CPUs distort the times of "
                   "processes 1, 2 and so on."}},
      .object = skeleton<offcputime_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined({shared::task_filters(false),
                         shared::off_cpu<Opt>(),
                         {shared::reasons()},
                         shared::stacks()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}}, waits_under_way()},
      .report = StackReport{"microseconds off the CPU"}.with_waits().with_reasons(),
      .announce = "Tracing off-CPU time (us) by {stacks}",
      .exclusive = shared::off_cpu_rules(),
      .check = shared::check_off_cpu,
  };
}
