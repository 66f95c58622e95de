// funccount: calls of functions, tracepoints and USDT probes.
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "funccount.skel.h"
#include "lib/targets/count_calls.h"

using namespace coretap;
using Line = Row<count_calls_key, count_calls_counts>;

namespace {

std::vector<Option> options() {
  return {shared::pid(),
          shared::tid(0),
          shared::uid(),
          shared::comm(),
          shared::cgroup(0),
          shared::cpu('c'),
          shared::interval(),
          shared::duration('d'),
          shared::timestamp('T'),
          shared::regular_expressions('r'),
          shared::debug(),
          shared::max_probes(),
          shared::return_trampoline(),
          shared::top('n'),
          shared::sort(0)};
}

}  // namespace

TOOL(funccount) {
  return {
      .name = "funccount",
      .summary = "calls of functions, tracepoints and USDT probes",
      .description =
          "Counts the calls of the kernel, library and program functions, the tracepoints and "
          "the USDT probes that match the patterns; a target that is never called has no row. "
          "Without a pattern system calls are counted.\n\n"
          "A pattern is FUNCTION or MODULE:FUNCTION for the kernel, LIBRARY:FUNCTION for a "
          "library or program (c:malloc, bash:readline, /usr/bin/bash:readline), "
          "t:CATEGORY:EVENT for tracepoints, u:LIBRARY:PROBE or, with --pid, u::PROBE for USDT "
          "probes; * matches any text. A leading r: counts returns (r::vfs_read). sys_NAME is a "
          "system call if the kernel has no such function. FUNCTION+0x1c is an instruction "
          "within the function, LIBRARY:0xADDRESS one at an address as objdump shows it. "
          "Functions and files with the same name are counted together.\n\n"
          "Filters by task apply to the running task. Calls that the kernel does not pass to the "
          "BPF program, such as one made while it runs, count as missed.",
      .overhead =
          "a few tens of nanoseconds per tracepoint or system call, more per kernel function, and "
          "a microsecond or more per user function; counted in the kernel, no output per event",
      .examples = {{"funccount 'vfs_*'", "functions of the kernel whose names start with vfs_"},
                   {"funccount -i 1 -d 5 't:sched:*'",
                    "tracepoints of the scheduler, five seconds"},
                   {"funccount -p 181 c:malloc c:free", "two functions of the C library"},
                   {"funccount -r '^tcp_(send|recv)msg$'", "by a regular expression"},
                   {"funccount 'ext4:ext4_*'", "functions of a module"},
                   {"funccount -p 181 'u::*'", "all USDT probes of a process"}},
      .questions = {{"How often is this function called?", "funccount 'vfs_*'"},
                    {"Which tracepoints fire, and how often?", "funccount -i 1 't:block:*'"},
                    {"How often does a process call malloc?", "funccount -p 1234 c:malloc"}},
      .differs = {{Difference::bcc,
                   "Without a pattern system calls are counted. sys_NAME is counted by its "
                   "tracepoint where the kernel has no kprobes."}},
      .object = skeleton<funccount_bpf>(),
      .positionals = {shared::target_arguments("t:syscalls:sys_enter_*")},
      .options = options(),
      .hooks = {traced("calls", words_of_command_line, reads_nothing)},
      .report =
          table<count_calls_key, count_calls_counts>(
              maps::calls_cpus,
              {of_key<Line, &count_calls_key::target>("target", "FUNC", as::target,
                                                      "function, tracepoint or probe"),
               of_value<Line, &count_calls_counts::count>("count", "COUNT", as::pages, "calls")},
              "count")
              .by_slots()
              .ascending()
              .timed_with("timestamp"),
      .announce = "Counting calls",
  };
}
