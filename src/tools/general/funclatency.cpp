// funclatency: durations of functions and system calls, as histograms.
#include "general/funclatency.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "funclatency.skel.h"

using namespace coretap;
using Opt = rodata_of<funclatency_bpf>;
using Key = funclatency_key;

TOOL(funclatency) {
  return {
      .name = "funclatency",
      .summary = "time that functions and system calls take, as histograms",
      .description =
          "A log2 histogram of the times from entry to return of the functions of the kernel, of "
          "libraries and programs, and of the system calls that match the patterns. Time that a "
          "call waits off the CPU is included, and so are the calls that it makes.\n\n"
          "A pattern is FUNCTION or MODULE:FUNCTION for the kernel, LIBRARY:FUNCTION for a "
          "library or program (c:malloc, bash:readline, /usr/bin/bash:readline), or sys_NAME for "
          "a system call if the kernel has no such function; * matches any text. Functions and "
          "files with the same name are added up. Without a pattern system calls are timed.\n\n"
          "Each call is timed separately, including recursive and nested calls and calls from "
          "interrupts. A call that never returns (longjmp, a thread that exits, a return that "
          "the kernel misses) counts as unmatched when that is noticed; a call that is under way "
          "when tracing starts or ends does not count. Filters by task apply to the task that "
          "makes the call.",
      .overhead =
          "two programs per call: about a tenth of a microsecond for a system call or a function "
          "of the kernel, two traps (a few microseconds) for a user function",
      .examples = {{"funclatency", "all system calls, until Ctrl-C"},
                   {"funclatency vfs_read", "one function of the kernel"},
                   {"funclatency -u -i 1 -d 10 'vfs_fsync*'",
                    "in microseconds, each second for ten seconds"},
                   {"funclatency -F sys_read sys_write", "two system calls, a histogram for each"},
                   {"funclatency -p 181 c:malloc", "a function of the C library in one process"},
                   {"funclatency -m -P mariadbd:'*dispatch_command*'",
                    "of a program, in milliseconds, by process"}},
      .questions = {{"How long does this function take?", "funclatency vfs_read"},
                    {"How long do the fsync calls of a process take?",
                     "funclatency -u -p 1234 sys_fsync"}},
      .differs = {{Difference::both,
                   "Recursive and nested calls are timed separately, to a depth of 32 calls per "
                   "task."},
                  {Difference::bcc, "Without a pattern system calls are timed."},
                  {Difference::bcc,
                   "-l is optional: the depth to which nested calls are timed. Calls nested "
                   "deeper are left out."},
                  {Difference::libbpf_tools,
                   "Several functions and patterns can be given. The tool chooses the best way "
                   "to attach (--explain shows it), so there is no -k."}},
      .object = skeleton<funclatency_bpf>(),
      .positionals = {shared::target_arguments("sys_*")},
      .options = {shared::pid(), shared::tid(0), shared::uid(0), shared::comm(),
                  shared::cgroup('c'), shared::interval(), shared::duration('d'),
                  shared::timestamp('T'), shared::microseconds(), shared::milliseconds(),
                  flag('F', "function", "one histogram per function", setting(&Opt::by_target)),
                  flag('P', "pids", "one histogram per process", setting(&Opt::by_process)),
                  number('l', "level", "N", "depth to which nested calls are timed (default: 32)",
                         Range{1, CALL_LEVELS}, setting(&Opt::call_levels)),
                  shared::regular_expressions('r'), shared::debug(), shared::max_probes(),
                  shared::return_trampoline(), shared::max_keys()},
      .elsewhere = {{'k', "kprobes", "the best way to attach is chosen; --explain shows it"}},
      .hooks = {traced_calls("calls", reads_stack)},
      .report =
          histogram<Key>(
              maps::latencies, "latency",
              {field<&Key::target>("target", "Function", as::target, "function").with("function"),
               who<Key>(id::pid.titled("pid").with("pids"))})
              .scaled({unit::ns, 1})
              .with_averages(),
      .announce = "Timing calls",
  };
}
