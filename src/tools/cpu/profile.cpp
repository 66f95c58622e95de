// profile: the running code, sampled by a clock.
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "profile.skel.h"

using namespace coretap;
using Opt = rodata_of<profile_bpf>;

namespace {

/// A program for each event.
Hook sampler(std::string_view name, ProgramName program, std::size_t event) {
  return {.name = name, .candidates = {{{program}}}, .sampling = at_hz(49), .event = event};
}

}  // namespace

TOOL(profile) {
  return {
      .name = "profile",
      .summary = "CPU use by kernel and user stack, sampled at a fixed rate",
      .description =
          "What runs on each CPU at each tick of a clock, counted by process and by kernel and "
          "user stack: where CPU time is spent. The idle task is excluded.\n\n"
          "The clock is a timer (cpu-clock): code that runs with interrupts disabled is sampled "
          "where it enables them. With --event other events are sampled: software events each "
          "time that they happen unless --period or --frequency is given, hardware events at the "
          "frequency. What a virtual machine has no counters for is refused. Several events, at most "
          "four, are sampled in one run, and each is shown on its own: JSON and CSV have its name, a "
          "folded stack and a flame graph have it as their first frame, a profile for pprof has a "
          "type of sample for each.\n\n"
          "Events of PMUs are named as `perf list` does: cpu/mem-loads,ldlat=30/P, "
          "cpu/event=0xcd,umask=1,name=loads/, or mem-loads if one PMU has it. u or k after the "
          "last slash (of other events after a colon) is user mode or the kernel, p to ppp asks for "
          "samples nearer to the instruction that caused them, P for the nearest that there are. "
          "PMUs outside the cores count, but cannot sample: `perfcount -e`.\n\n"
          "--ratio A/B shows how many events of one kind there are for each of the other, by function "
          "or, with --svg, as a flame graph: its width is that of A, its colour the ratio compared to "
          "that of everything, blue where it is higher. Each sample counts as its period, so values "
          "are estimates of the numbers of events; functions with few samples of B have no reliable "
          "ratio. --cpi is --ratio cycles/instructions: blue code waits, for memory mostly, red code "
          "computes.",
      .overhead = "a walk of both stacks per tick and CPU; at 49 Hz too little to measure",
      .examples = {{"profile 10", "ten seconds, all CPUs, at 49 Hz"},
                   {"profile -F 99 -p 1234", "one process at 99 Hz, until Ctrl-C"},
                   {"profile --functions 10", "a table of functions, with self and total share"},
                   {"profile --by container 10", "samples by container, ended processes included"},
                   {"profile --screen", "functions, redrawn each second"},
                   {"profile -e page-faults --functions 10", "the code that faults"},
                   {"profile -e cpu-clock,page-faults --folded 10", "two events at once"},
                   {"profile --cpi --svg out.svg 30", "cycles, coloured by cycles per instruction"},
                   {"profile -e cpu/mem-loads,ldlat=30/P --functions 10",
                    "the code that waits for memory (loads of 30 cycles and more)"},
                   {"profile --ratio cpu-clock/page-faults 10",
                    "CPU time per page fault, by function"},
                   {"profile --callers-of malloc 10", "the call tree that leads to malloc"},
                   {"profile --svg out.svg 30", "a flame graph, for any browser"},
                   {"profile -af 30 > out.folded",
                    "folded stacks, frames of the kernel and of JIT compilers marked"}},
      .questions = {{"What uses the CPU?", "profile 10"},
                    {"In which functions does a program spend its CPU time?",
                     "profile -F 99 -p 1234 --functions 10"},
                    {"Which command, container or service uses the CPU?",
                     "profile --by container 10"},
                    {"Which kernel code uses the CPU time?", "profile -K 10"},
                    {"Does code compute, or wait for memory (CPI)?", "profile --cpi 10"}},
      .differs = {{Difference::both, "User stacks are unwound without frame pointers, too."},
                  {Difference::bcc,
                   "-c must be at least 50000: a shorter period can keep a CPU in its timer "
                   "interrupt."},
                  {Difference::libbpf_tools, "Machines with more than 128 CPUs are sampled."}},
      .object = skeleton<profile_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{shared::pid(), shared::tid('L'), shared::uid(), shared::comm(), shared::cgroup(0)},
           {shared::frequency("samples per second and CPU (default: 49)", kMostClockHz),
            shared::sample_period(
                'c',
                "nanoseconds of a CPU's clock, or other events, per sample, instead of a "
                "frequency",
                1, "count"),
            shared::sampled_event('e')},
           shared::event_ratio(setting(&Opt::by_period)),
           {shared::cpu('C'),
            flag('I', "include-idle", "count the idle task too", setting(&Opt::include_idle))},
           shared::stacks('a')}),
      .elsewhere = {{'A', "address", "--json has the address of each frame"},
                    {0, "hash-storage-size", "use --stack-storage-size"}},
      // Not in lockstep with activity at 50 or 100 Hz.
      .hooks = {sampler("ticks", progs::on_sample, 0), sampler("second event", progs::on_second, 1),
                sampler("third event", progs::on_third, 2),
                sampler("fourth event", progs::on_fourth, 3)},
      .report = StackReport{"samples", StackReport::samples}
                    .of_event("cpu-clock")
                    .with_ratio("ratio|cpi"),
      .announce = "Sampling {cpus} by {stacks}",
      .exclusive =
          [] {
            auto rules = shared::stack_rules();
            rules.emplace_back("frequency", "period");
            for (std::string_view ratio : {"ratio", "cpi"})
              for (std::string_view other : {"event", "folded", "by", "tree", "inverted",
                                             "callers-of", "callees-of", "screen", "dot", "pprof"})
                rules.emplace_back(ratio, other);
            rules.emplace_back("ratio", "cpi");
            return rules;
          }(),
      .check = shared::check_sampled_event,
      .look_up = shared::look_up_sampled_event,
  };
}
