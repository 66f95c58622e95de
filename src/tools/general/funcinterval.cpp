// funcinterval: time between consecutive calls, as histograms.
#include "general/funcinterval.h"

#include <fmt/format.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "funcinterval.skel.h"
#include "tools/general/funcinterval/limits.hpp"

using namespace coretap;
using Opt = rodata_of<funcinterval_bpf>;
using Key = funcinterval_key;

TOOL(funcinterval) {
  return {
      .name = "funcinterval",
      .summary = "time between consecutive calls, as histograms",
      .description =
          "A log2 histogram of the times from one call to the next, for each of the functions of "
          "the kernel, of libraries and programs, the tracepoints and the USDT probes that match "
          "the patterns. Times are from entry to entry, whichever process or CPU makes the "
          "calls; with --per-thread or --per-cpu, between the calls of one thread or on one CPU. "
          "These times, too, are added up in the histogram of the target. Without a pattern the "
          "time between system calls is shown.\n\n"
          "A pattern is FUNCTION or MODULE:FUNCTION for the kernel, LIBRARY:FUNCTION for a "
          "library or program (c:malloc, bash:readline, /usr/bin/bash:readline), "
          "t:CATEGORY:EVENT for tracepoints, u:LIBRARY:PROBE or, with --pid, u::PROBE for USDT "
          "probes; * matches any text. A leading r: traces returns (r::vfs_read). sys_NAME is a "
          "system call if the kernel has no such function. FUNCTION+0x1c is an instruction "
          "within the function, LIBRARY:0xADDRESS one at an address as objdump shows it. "
          "Functions and files with the same name are one target.\n\n"
          "The first call ends no interval: N calls make N - 1 intervals, with --per-thread one "
          "less for each thread. A report has the intervals that ended since the previous one. A "
          "filtered call neither starts nor ends an interval; filters by task apply to the "
          "running task. Calls that the kernel does not pass to the BPF program, such as one "
          "made while it runs, count as missed; the interval then lasts to the next call.\n\n"
          "CPUs exchange the time of the last call atomically. If the kernel cannot do this "
          "(before 5.12, on arm64 before 5.18), two CPUs that call at the same moment may both "
          "count the time since the same call; the tool reports this at the start. With "
          "--per-thread or --per-cpu only an interrupt that makes the same call can cause it.",
      .overhead =
          "a few tens of nanoseconds per tracepoint or system call, more per kernel function, and "
          "a microsecond or more per user function; CPUs that call at a high rate wait for each "
          "other to write the time of the last call, unless --per-cpu or --per-thread is given",
      .examples = {{"funcinterval t:block:block_rq_issue",
                    "time between I/O requests, until Ctrl-C"},
                   {"funcinterval -u -i 1 -d 10 vfs_fsync",
                    "a function of the kernel, in microseconds, each second for ten seconds"},
                   {"funcinterval -p 181 c:malloc", "a function of the C library in one process"},
                   {"funcinterval --per-thread sys_clock_nanosleep",
                    "between the calls of each thread"},
                   {"funcinterval --per-cpu -u t:timer:hrtimer_expire_entry",
                    "between timers that expire on one CPU"}},
      .questions = {{"How much time passes between two calls of this function?",
                     "funcinterval vfs_fsync"},
                    {"Is this function called at regular intervals?",
                     "funcinterval -u -p 1234 sys_epoll_wait"}},
      .differs = {{Difference::bcc,
                   "Several functions and patterns can be given; each target has a histogram with "
                   "its name, the average and the number of intervals. Without a pattern system "
                   "calls are traced."},
                  {Difference::bcc,
                   "No interval is counted twice when CPUs call at the same moment."}},
      .object = skeleton<funcinterval_bpf>(),
      .positionals = {shared::target_arguments("t:raw_syscalls:sys_enter")},
      .options = {shared::pid(), shared::tid(0), shared::uid(0), shared::comm(), shared::cgroup(0),
                  shared::cpu('c'), shared::interval(), shared::duration('d'),
                  shared::timestamp('T'), shared::microseconds(), shared::milliseconds(),
                  flag(0, "per-thread", "time between the calls of one thread",
                       setting(&Opt::per_thread)),
                  flag(0, "per-cpu", "time between the calls on one CPU", setting(&Opt::per_cpu)),
                  shared::regular_expressions('r'), shared::debug(), shared::max_probes(),
                  shared::return_trampoline()},
      .hooks = {traced("calls", words_of_command_line, reads_nothing)},
      .report = histogram<Key>(maps::intervals_cpus, "interval",
                               {field<&Key::target>("target", "Function", as::target,
                                                    "function, tracepoint or probe")})
                    .by_slots()
                    .scaled({unit::ns, 1})
                    .with_averages(),
      .announce = "Timing intervals between calls",
      .exclusive = {{"per-thread", "per-cpu"}},
      .check_plan = funcinterval_limits,
  };
}
