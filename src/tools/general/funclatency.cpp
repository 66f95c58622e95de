// funclatency: time that functions and system calls take, as histograms.
#include "general/funclatency.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "funclatency.skel.h"

using namespace coretap;
using Opt = rodata_of<funclatency_bpf>;
using Key = funclatency_key;

namespace {

std::uint64_t target(const Key& key) { return key.target; }

}  // namespace

TOOL(funclatency) {
  return {
      .name = "funclatency",
      .summary = "time that functions and system calls take, as histograms",
      .description =
          "A log2 histogram of the times from entry to return of the functions of the kernel, of "
          "libraries and programs, and of the system calls that the patterns name. The time a call "
          "waits off the CPU is part of it, and so are the calls that it makes.\n\n"
          "A pattern is FUNCTION or MODULE:FUNCTION for the kernel, LIBRARY:FUNCTION for a library "
          "or program (c:malloc, bash:readline, /usr/bin/bash:readline), or sys_NAME for a system "
          "call where the kernel has no such function; * stands for any text. Functions and files "
          "of one name are added up. Without a pattern system calls are timed.\n\n"
          "Each call is timed by itself: recursion, calls within calls and calls from interrupts "
          "do not confuse it. A call that never returns (longjmp, a thread that ends, a return "
          "that the kernel misses) counts as unmatched when that is noticed; a call that is under "
          "way at the end, or was when tracing began, does not count. Filters by task ask the "
          "task that makes the call.",
      .overhead =
          "two programs per call: about a tenth of a microsecond for a system call or a function "
          "of the kernel, two traps (a few microseconds) for a user function",
      .examples = {{"funclatency", "all system calls, until Ctrl-C"},
                   {"funclatency vfs_read", "one function of the kernel"},
                   {"funclatency -u -i 1 -d 10 'vfs_fsync*'",
                    "in microseconds, each second for ten seconds"},
                   {"funclatency -F sys_read sys_write", "two system calls, each by itself"},
                   {"funclatency -p 181 c:malloc", "a function of the C library in one process"},
                   {"funclatency -m -P mariadbd:'*dispatch_command*'",
                    "of a program, in milliseconds, by process"}},
      .questions = {{"How long does this function take?", "funclatency vfs_read"},
                    {"How long do the fsync calls of a process take?",
                     "funclatency -u -p 1234 sys_fsync"}},
      .differs = {{Difference::both,
                   "Recursion and calls within calls are timed each by itself, to a depth of 32 "
                   "calls of a task."},
                  {Difference::bcc, "Without a pattern system calls are timed."},
                  {Difference::bcc,
                   "-l is the depth of calls within calls that are timed, the innermost left out "
                   "beyond it, and need not be given."},
                  {Difference::libbpf_tools,
                   "Several functions and patterns can be given. The best way to attach is chosen "
                   "(--explain shows it), so there is no -k."}},
      .object = skeleton<funclatency_bpf>(),
      .positionals = {shared::target_arguments("sys_*")},
      .options = {shared::pid(), shared::tid(0), shared::uid(0), shared::comm(),
                  shared::cgroup('c'), shared::interval(), shared::duration('d'),
                  shared::timestamp('T'), shared::microseconds(), shared::milliseconds(),
                  flag('F', "function", "one histogram per function", setting(&Opt::by_target)),
                  flag('P', "pids", "one histogram per process", setting(&Opt::by_process)),
                  number('l', "level", "N", "calls within calls that are timed (default: 32)",
                         Range{1, CALL_LEVELS}, setting(&Opt::call_levels)),
                  shared::regular_expressions('r'), shared::debug(), shared::max_probes(),
                  shared::max_keys()},
      .elsewhere = {{'k', "kprobes", "the best way is chosen; --explain shows it"}},
      .hooks = {traced_calls("calls")},
      .report =
          histogram<Key>(
              "latencies", "latency",
              {derived<Key, target>("target", "Function", as::target, "function").with("function"),
               who<Key>(id::pid.titled("pid").with("pids"))})
              .scaled({unit::ns, 1})
              .with_averages(),
      .announce = "Timing calls",
  };
}
