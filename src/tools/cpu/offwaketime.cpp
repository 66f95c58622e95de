// offwaketime: stacks in which tasks block, and stacks of the wakers.
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
          "Time from blocking until running again, summed by the task and the stacks in which it "
          "blocked, together with its waker and the waker's stacks: cause and effect in one "
          "entry. The time of preempted tasks has no waker and is not counted; offcputime shows "
          "it.\n\n"
          "Wakers are recorded in their own context. If an interrupt woke the task, the waker is "
          "[irq] or [softirq], not the interrupted task. Filters apply to the blocked task.",
      .overhead = "one hook per context switch and one per wake-up, each with stack walks",
      .examples = {{"offwaketime 10", "ten seconds, all threads"},
                   {"offwaketime -p 1234", "what this process waits for, until Ctrl-C"},
                   {"offwaketime -K --svg out.svg 30", "kernel stacks, as a flame graph"}},
      .questions = {{"In which code did a task block, and which code ended the wait?",
                     "offwaketime -p 1234 10"},
                    {"Which code releases the locks that programs wait for?",
                     "offwaketime -m 1000 10"}},
      .differs = {{Difference::bcc,
                   "The blocked task has its own name and stacks. There they are those of the "
                   "task that leaves the CPU when the blocked one gets it. --state works, and a "
                   "list of pids can have more than five."},
                  {Difference::bcc,
                   "The time of preempted tasks is not counted: no task woke them."}},
      .object = skeleton<offwaketime_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined({shared::task_filters(false),
                         shared::off_cpu<Opt>(),
                         {shared::reasons()},
                         shared::stacks()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}},
                {"wake-ups", {{{progs::on_waking}}}},
                waits_under_way()},
      .report = StackReport{"microseconds off the CPU", StackReport::time, StackReport::chain}
                    .with_waits()
                    .with_reasons(),
      .announce = "Tracing blocked time (us) by the task's and the waker's stack",
      .exclusive = shared::off_cpu_rules(),
      .check = shared::check_off_cpu,
  };
}
