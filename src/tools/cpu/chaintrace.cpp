// chaintrace: stacks in which tasks block, with those of the waker, the waker's waker, and so on.
#include "chaintrace.skel.h"
#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<chaintrace_bpf>;

namespace {

constexpr std::uint64_t kMostWakers = 8;

}  // namespace

TOOL(chaintrace) {
  return {
      .name = "chaintrace",
      .summary = "off-CPU time by chains of wakers, back to the interrupt",
      .description =
          "Time from blocking until running again, summed by the task and the stacks in which it "
          "blocked, its waker, the waker of that waker, and so on, each with the stacks in which "
          "it woke the next one. A chain ends at an interrupt ([irq], [softirq]: a disk, a "
          "network card, a timer), after --chain wakers, or at a waker that was itself woken "
          "more than --max-age earlier.\n\n"
          "Filters apply to the blocked task; wakers may be any task. The time of preempted "
          "tasks has no waker and is not counted.",
      .overhead =
          "one hook per context switch and one per wake-up, of all tasks, each with stack walks",
      .examples = {{"chaintrace -p 1234 10",
                    "what this process waits for, and what that waits for"},
                   {"chaintrace -n 8 -m 1000 10", "long chains behind waits of 1 ms and more"},
                   {"chaintrace --svg out.svg 30", "a flame graph that ends at the hardware"}},
      .questions = {{"What holds up the task that holds up my program?", "chaintrace -p 1234 10"},
                    {"Does a wait end in a disk, the network, a timer or another program?",
                     "chaintrace -n 8 -m 1000 10"}},
      .object = skeleton<chaintrace_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined({shared::task_filters(false),
                         shared::off_cpu<Opt>(),
                         {number('n', "chain", "WAKERS", "wakers in a chain, 1 to 8 (default: 4)",
                                 Range{1, kMostWakers}, setting(&Opt::chain_length)),
                          number(0, "max-age", "MS",
                                 "a wake-up that is older than this does not lengthen a chain "
                                 "(default: 1000)",
                                 setting(&Opt::chain_age_ns), 1'000'000)},
                         {shared::reasons()},
                         shared::stacks()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}},
                {"wake-ups", {{{progs::on_waking}}}},
                waits_under_way()},
      .report = StackReport{"microseconds off the CPU", StackReport::time, StackReport::chain}
                    .with_waits()
                    .with_reasons(),
      .announce = "Tracing blocked time (us) by chains of wakers",
      .exclusive = shared::off_cpu_rules(),
      .check = shared::check_off_cpu,
  };
}
