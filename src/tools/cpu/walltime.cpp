// walltime: every nanosecond of each thread is in one state.
#include <string>

#include "coretap/config.hpp"
#include "coretap/irq.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tools/cpu/walltime/report_accounts.hpp"
#include "tools/cpu/walltime/states.hpp"
#include "walltime.skel.h"

using namespace coretap;

namespace {

constexpr std::uint64_t kMostHz = 999;

Result<void> check(const Config& c) {
  auto unknown = wall::By::unknown(c.rows.by);
  if (unknown.empty()) return {};
  return usage("--by: there is no key '" + std::string(unknown) + "'",
               "there are: process (pid), thread (tid), comm, uid, cgroup, container, unit");
}

}  // namespace

TOOL(walltime) {
  return {
      .name = "walltime",
      .summary = "where the time of threads goes: CPU, queue, or what they wait for",
      .description =
          "Each nanosecond of each thread is in one state: on a CPU, queued for one, or waiting "
          "for something. A thread counts from its creation, or the start of tracing, until it "
          "ends, or tracing does: its states add up to that time.\n\n"
          "Queued time is divided into that without CPU quota (cpu.max of its cgroup, or of one "
          "above), that with an idle CPU that it may use, and the rest. The reason of a wait comes "
          "from flags that the kernel keeps (I/O, memory, locks), from names in its kernel stack, "
          "and from its system call. Waits shorter than --min-wait have no stack.\n\n"
          "A row is a process; with --by thread a thread, with --by cgroup all threads of a "
          "cgroup; with --by comm,cgroup those of one name in a cgroup. Other keys are uid, "
          "container and unit.\n\n"
          "CPU time is the time between switches, in which the thread had the CPU. The kernel's "
          "own figures differ: they leave out stolen time, and start when a wakeup preempts "
          "another task.\n\n"
          "Events that were not seen are repaired from the kernel's accounting, and counted as "
          "unmatched; what is not known then is unknown. A thread that matches the filters at a "
          "switch or wakeup counts until it ends, also if it changes its name or cgroup; without "
          "one, at the end. A thread that was blocked when tracing began, and is stopped or "
          "frozen, is known by its stack.",
      .overhead =
          "one hook per context switch and one per wakeup, two per interrupt and per wait for a "
          "lock of the kernel; a kernel stack for each wait of --min-wait or longer",
      .examples = {{"walltime", "all processes until Ctrl-C"},
                   {"walltime -p 1234 -v 5 1", "one process for five seconds, by state"},
                   {"walltime -p 1234 --by thread 1", "its threads, each second"},
                   {"walltime --by cgroup 10 1", "cgroups"},
                   {"walltime -p 1234 --latency 10 1", "how long its waits were"},
                   {"walltime -p 1234 --svg out.svg 30 1", "a flame graph of its time"},
                   {"walltime -p 1234 --diff old.pb.gz --svg out.svg 30 1",
                    "what has changed since --pprof old.pb.gz"},
                   {"walltime -v -- make -j8", "a command and its children"}},
      .questions = {{"Where does the time of this process go?", "walltime -p 1234 -v 10 1"},
                    {"Is it slow because of disks, locks, memory, or lack of a CPU?",
                     "walltime -p 1234 10 1"},
                    {"What takes more time than before the upgrade?",
                     "walltime -p 1234 --diff old.pb.gz 30 1"},
                    {"How much time is lost to a CPU limit?", "walltime --by cgroup 10 1"}},
      .object = skeleton<walltime_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{shared::by(), flag('v', "reasons", "below each row a line for each state"),
            number('m', "min-wait", "US",
                   "kernel stacks only of waits of US microseconds or more (default: 100)", {}),
            flag(0, "unknown", "also the kernel stacks of waits without a reason"),
            flag(0, "no-irq", "interrupts are part of cpu (saves their hooks)"),
            flag(0, "no-idle", "do not measure queue.idle: it is then part of queue.busy"),
            flag(0, "latency", "histograms of the stays in each state off the CPU"),
            flag(0, "by-state", "graphs have the states as the outermost frames"),
            flag(0, "work", "graphs include the time in which there was nothing to do"),
            free_text(0, "diff", "FILE",
                      "what has changed since another run: FILE is what --pprof or --folded wrote",
                      Complete::file, "a file"),
            belonging_to("svg|pprof|folded|diff",
                         {shared::frequency("samples of CPU time per second and CPU, for stacks "
                                            "(default: 49)",
                                            kMostHz)})
                .front(),
            shared::top(), shared::max_keys()},
           shared::stacks(),
           shared::task_filters()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}},
                {"wakeups", {{{progs::on_wakeup, progs::on_wakeup_new}}}},
                {"all threads at the end", {{{progs::on_account}}}},
                {"locks of the kernel",
                 {{{progs::on_contended, progs::on_contended_end}}},
                 {},
                 "short waits for locks of the kernel have the reasons of their callers"},
                {.name = "samples of CPU time",
                 .candidates = {{{progs::on_sample}}},
                 .when = "svg|pprof|folded|diff",
                 .optional = "time on a CPU has no stacks",
                 .sampling = at_hz(49)},
                {"CPUs that are idle at the start",
                 {{{progs::idle_since_start}, {has_enumerator("bpf_func_id", "BPF_FUNC_loop")}}},
                 "!no-idle",
                 "queue.idle is part of queue.busy"},
                {"softirqs",
                 {{{progs::on_softirq_entry, progs::on_softirq_exit}}},
                 "!no-irq",
                 "softirqs are part of cpu"},
                {"interrupt handlers",
                 {{{progs::on_irq_exit, progs::on_irq_entry}}},
                 "!no-irq",
                 "interrupts are part of cpu"},
                {"the processor's own interrupts",
                 // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a macro makes the names
                 {{{IRQ_VECTORS(IRQ_VECTOR_PROGRAMS)}}},
                 "!no-irq",
                 "they are part of cpu"}},
      .maps = {{maps::wait_rows, MapSize::objects}},
      .report = AccountsReport{},
      .announce = "Accounting for the time of threads",
      .exclusive =
          [] {
            auto rules = shared::stack_rules();
            for (auto other : {"csv", "svg", "pprof", "folded"})
              rules.emplace_back("latency", other);
            // These change what stacks look like, or show something else.
            for (auto other : {"csv", "folded", "latency", "by-state", "offset", "delimited",
                               "reasons", "unknown", "color-by"})
              rules.emplace_back("diff", other);
            return rules;
          }(),
      .check = check,
  };
}
