// wakeuptime: stacks of wakers, and the time that the woken tasks were blocked.
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "wakeuptime.skel.h"

using namespace coretap;
using Opt = rodata_of<wakeuptime_bpf>;

TOOL(wakeuptime) {
  return {
      .name = "wakeuptime",
      .summary = "blocked time of tasks, by waker and the waker's kernel stack",
      .description =
          "Time from leaving the CPU until being woken, summed by the names of the task and its "
          "waker and by the waker's kernel stack. It shows what blocked tasks were waiting for: "
          "the code that ended the wait.\n\n"
          "Wakers are recorded in their own context (sched_waking). If an interrupt woke the "
          "task, the waker is [irq] or [softirq], not the interrupted task. Filters apply to the "
          "blocked task.",
      .overhead =
          "one hook per context switch without stacks, and one per wake-up with a walk of the "
          "waker's stack",
      .examples = {{"wakeuptime 10", "ten seconds, all tasks"},
                   {"wakeuptime -p 1234", "the wakers of this process, until Ctrl-C"},
                   {"wakeuptime -m 1000 --svg out.svg 30",
                    "waits of a millisecond and more, as a flame graph"}},
      .questions = {{"Which tasks wake this process?", "wakeuptime -p 1234"},
                    {"Which code are blocked tasks waiting for?", "wakeuptime -m 1000 10"}},
      .differs = {{Difference::both,
                   "If an interrupt woke the task, the waker is [irq] or [softirq]. Peers show "
                   "the task that was interrupted."},
                  {Difference::libbpf_tools,
                   "Wakers are recorded in their own context. There the waker of a task on "
                   "another CPU is the task that runs on that CPU."}},
      .object = skeleton<wakeuptime_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {shared::task_filters(false),
           shared::off_cpu<Opt>(),
           {flag(0, "user-stacks",
                 "also the waker's user stack; grouped by its process then, not by its name"),
            shared::unwind(), shared::unwind_memory()},
           shared::kernel_stacks()}),
      .elsewhere = {{'v', "", "--json has the address of each frame; --verbose is about the run"}},
      .hooks = {{"context switches", {{{progs::on_switch}}}},
                {"wake-ups", {{{progs::on_waking}}}},
                waits_under_way()},
      .report = StackReport{"microseconds blocked", StackReport::time, StackReport::waker}
                    .user_stacks_with("user-stacks")
                    .with_waits(),
      .announce = "Tracing blocked time (us) by waker and its stack",
      .exclusive = {{"folded", "json"}, {"folded", "csv"}},
      .check = shared::check_off_cpu,
  };
}
