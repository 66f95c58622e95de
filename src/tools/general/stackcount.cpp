// stackcount: stacks that lead to functions, tracepoints and USDT probes.
#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "stackcount.skel.h"

using namespace coretap;
using Opt = rodata_of<stackcount_bpf>;

namespace {

/// Counts per process; kernel stacks alone are summed over processes unless -P or -p is given.
Result<void> apart(Config& c) {
  if (!c.given("kernel-stacks-only") || !c.tasks.pids.empty()) c.set(setting(&Opt::by_process), 1);
  return {};
}

}  // namespace

TOOL(stackcount) {
  return {
      .name = "stackcount",
      .summary = "stacks that lead to functions, tracepoints and USDT probes",
      .description =
          "Counts the stacks that lead to the functions of the kernel, of libraries and "
          "programs, the tracepoints or the USDT probes that match the patterns. Each stack is "
          "shown once, the most frequent last, with the process and the number of times.\n\n"
          "A pattern is FUNCTION or MODULE:FUNCTION for the kernel, LIBRARY:FUNCTION for a "
          "library or program (c:malloc, bash:readline, /usr/bin/bash:readline), "
          "t:CATEGORY:EVENT for tracepoints, u:LIBRARY:PROBE or, with --pid, u::PROBE for USDT "
          "probes; * matches any text. A leading r: traces returns (r::vfs_read). sys_NAME is a "
          "system call if the kernel has no such function. FUNCTION+0x1c is an instruction "
          "within the function, LIBRARY:0xADDRESS one at an address as objdump shows it.\n\n"
          "With --kernel-stacks-only the stacks of all processes are added up, unless --perpid "
          "or --pid is given. A user function has no kernel stack. With an interval each report "
          "has the stacks since the previous one. If a traced interrupt arrives while a stack is "
          "walked, it is counted as untracked.",
      .overhead =
          "a walk of both stacks per call: about a microsecond for a function of the kernel or a "
          "tracepoint, more per user function; tracing frequent functions slows the machine",
      .examples = {{"stackcount submit_bio", "the stacks that submit block I/O"},
                   {"stackcount -K 't:sched:sched_switch' -D 10",
                    "kernel stacks that leave the CPU, for ten seconds"},
                   {"stackcount -p 181 c:malloc", "code that allocates in process 181"},
                   {"stackcount -f 'tcp_sendmsg' > out.folded", "for flame graphs"},
                   {"stackcount --svg out.svg t:block:block_rq_issue",
                    "a flame graph for any browser"}},
      .questions = {{"Who calls this function?", "stackcount vfs_fsync"},
                    {"Which code makes this system call?", "stackcount sys_fsync"},
                    {"What leads to page faults?", "stackcount t:exceptions:page_fault_user"}},
      .differs =
          {{Difference::bcc,
            "User stacks are always those of one process. Rows have the id of the process "
            "in parentheses, and frames are indented by four. Without a pattern stacks of all system calls are counted."}},
      .object = skeleton<stackcount_bpf>(),
      .positionals = {shared::target_arguments("t:syscalls:sys_enter_*")},
      .options = joined(
          {{shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(0),
            shared::cpu('c'), shared::interval(), shared::duration('D'), shared::timestamp('T'),
            shared::regular_expressions('r'), shared::debug(0), shared::max_probes(),
            shared::return_trampoline(),
            flag('P', "perpid", "separate stacks for each process", setting(&Opt::by_process))},
           shared::stacks()}),
      .elsewhere = {{'v', "verbose",
                     "--json has the address of each frame; --debug and --explain show what is "
                     "traced"}},
      .hooks = {traced("calls")},
      .report = StackReport{"calls", StackReport::samples}.at_intervals(),
      .announce = "Counting stacks",
      .exclusive =
          [] {
            auto rules = shared::stack_rules();
            rules.emplace_back("svg", "interval");
            rules.emplace_back("pprof", "interval");
            return rules;
          }(),
      .look_up = apart,
  };
}
