// smpcalls: functions that CPUs call on other CPUs, and their duration.
#include "cpu/smpcalls.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "smpcalls.skel.h"

using namespace coretap;
using Opt = rodata_of<smpcalls_bpf>;
using Key = smpcalls_key;
using Sums = smpcalls_value;
using Line = Row<Key, Sums>;

namespace {

/// A function takes some time: 0 means that its run was not seen.
Value run_ns(const Line& l) { return unless_0(l.value.run_ns); }

}  // namespace

TOOL(smpcalls) {
  return {
      .name = "smpcalls",
      .summary = "functions that CPUs call on other CPUs, and how long that takes",
      .description =
          "The kernel runs functions on other CPUs by interrupting them (IPI): to flush address "
          "translations (TLB), to synchronise modified code, to read counters. For each "
          "function: how often one CPU called it on another, and the time from the call until it "
          "had run. Callers mostly wait that long, with preemption disabled. JSON and CSV have "
          "the function's own run time as run_ns; the rest is the wait for the other CPU.\n\n"
          "--kernel-stack groups calls by the caller's stack, --pids by the calling process. "
          "Wake-ups of tasks on other CPUs, and irq_work, are not function calls. Filters apply "
          "to the calling task.\n\n"
          "Before Linux 6.4 the tool traces the functions that make such calls: a call counts "
          "once, however many CPUs run its function; its time is the caller's wait; calls "
          "without a wait are only counted.",
      .overhead = "three hooks per call; two before Linux 6.4",
      .examples = {{"smpcalls", "all calls until Ctrl-C"},
                   {"smpcalls -T 1", "each second, with the time"},
                   {"smpcalls -K 10 1", "with the code that makes the calls"},
                   {"smpcalls -d 10 1", "the times of each function as a histogram"},
                   {"smpcalls -P 10 1", "by process"}},
      .questions = {{"Which code interrupts other CPUs?", "smpcalls -K 10 1"},
                    {"How long do callers wait for other CPUs?", "smpcalls -d 10 1"},
                    {"Which process makes other CPUs flush their TLBs?", "smpcalls -P 10 1"}},
      .object = skeleton<smpcalls_bpf>(),
      .positionals = shared::interval_count(),
      .options =
          joined({{flag('d', "distributed", "histograms of the times", setting(&Opt::distributed)),
                   flag('P', "pids", "by process and command name", setting(&Opt::by_pid)),
                   shared::kernel_stack(), shared::nanoseconds(), shared::timestamp(),
                   shared::top(), shared::sort(0), shared::max_keys()},
                  belonging_to("kernel-stack", {shared::stack_depth(), shared::stack_storage()}),
                  shared::task_filters()}),
      .hooks = {{.name = "calls of functions",
                 .candidates =
                     {{{progs::on_exit, progs::on_entry, progs::on_queue}},
                      {.programs = {progs::many_end, progs::single_end, progs::many, progs::single,
                                    progs::async},
                       .caveat = "a call counts once, however many CPUs run its function; its time "
                                 "is the caller's wait"}},
                 .instead = "hardirqs --vectors counts the interrupts of such calls (x86)"}},
      .maps = {{maps::calls, MapSize::per_cpu}},
      .report =
          table<Key, Sums>(
              maps::functions,
              {of_key<Line, &Key::function>("function", "FUNC", as::wide(as::symbol, -33),
                                            "the function"),
               of_value<Line, &Sums::count>("count", "CALLS", as::number, "calls"),
               of_value<Line, &Sums::total_ns>("total_ns", "TOTAL_usecs", as::whole_microseconds,
                                               "total time until it had run")
                   .nanoseconds("TOTAL_nsecs"),
               mean_of<Line, &Sums::total_ns, &Sums::timed>(
                   "average_ns", "AVG_usecs", as::wide(as::whole_microseconds, 9), "of one call")
                   .nanoseconds("AVG_nsecs"),
               of_value<Line, &Sums::longest>("max_ns", "MAX_usecs",
                                              as::wide(as::whole_microseconds, 9),
                                              "the longest of the interval")
                   .nanoseconds("MAX_nsecs"),
               derived<Line, run_ns>("run_ns", "RUN_usecs", as::whole_microseconds,
                                     "the part of total_ns in the function itself")
                   .nanoseconds("RUN_nsecs")
                   .with("json"),
               of_key<Line, &Key::pid>("pid", "PID", as::pid, "process of the caller").only("pids"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the caller")
                   .only("pids"),
               kernel_stack_of<Line, &Key::kernel_stack>().only("kernel-stack")},
              "total_ns,count")
              .with_largest<&Sums::longest>()
              .timed_with("timestamp"),
      .other_reports =
          {{"distributed",
            histogram<Key>(
                maps::durations, "times until the function had run",
                {of_key<Line, &Key::function>("function", "function", as::symbol, "the function"),
                 of_key<Line, &Key::pid>("pid", "pid", as::pid, "process of the caller")
                     .with("pids"),
                 of_key<Line, &Key::comm>("comm", "", as::comm, "command name of the caller")
                     .with("pids"),
                 kernel_stack_of<Line, &Key::kernel_stack>().with("kernel-stack")})}},
      .announce = "Tracing calls of functions on other CPUs",
  };
}
