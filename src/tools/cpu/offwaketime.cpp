// offwaketime: in which stack tasks block, and in which stack what wakes them.
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "offwaketime.skel.h"

using namespace coretap;
using Opt = rodata_of<offwaketime_bpf>;

TOOL(offwaketime) {
  return {
      .name = "offwaketime",
      .summary = "off-CPU time by blocked stack and waker's stack",
      .description =
          "From leaving the CPU blocked until running again, summed by the task and the stacks in "
          "which it blocked, together with who woke it and in which stacks: cause and effect in one "
          "entry. Time of tasks that were preempted has no waker and is not counted; offcputime "
          "shows it.\n\n"
          "Wakers are taken in their own context. Where an interrupt woke the task, the waker is "
          "[irq] or [softirq] rather than the task that was interrupted. Filters are about the task "
          "that was blocked.",
      .overhead = "one hook per context switch and one per wake-up, each with stack walks",
      .examples = {{"offwaketime 10", "ten seconds, all threads"},
                   {"offwaketime -p 1234", "what this process waits for, until Ctrl-C"},
                   {"offwaketime -K --svg out.svg 30", "kernel stacks, as a flame graph"}},
      .questions = {{"In which code did it block, and whose code ended the wait?",
                     "offwaketime -p 1234 10"},
                    {"Who releases the locks that programs wait for?", "offwaketime -m 1000 10"}},
      .differs = {{Difference::bcc,
                   "Name and stacks of the blocked task are its own. There they are those of "
                   "the task that leaves the CPU when the blocked one gets it. --state works, "
                   "and lists of pids have more than five."},
                  {Difference::bcc,
                   "Time of tasks that were preempted is not counted: no task woke them."}},
      .object = skeleton<offwaketime_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined({shared::task_filters(false), shared::off_cpu<Opt>(), shared::stacks()}),
      .hooks = {{"context switches", {{{"on_switch"}}}},
                {"wake-ups", {{{"on_waking"}}}},
                waits_under_way()},
      .report = StackReport{"microseconds off the CPU", StackReport::time, StackReport::chain}
                    .with_waits(),
      .announce = "Tracing blocked time (us) by the task's and the waker's stack",
      .exclusive = shared::stack_rules(),
      .check = shared::check_off_cpu,
  };
}
