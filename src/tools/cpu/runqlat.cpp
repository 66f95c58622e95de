// runqlat: time that runnable tasks wait for a CPU, as a histogram.
#include "cpu/runqlat.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "runqlat.skel.h"

using namespace coretap;
using Opt = rodata_of<runqlat_bpf>;
using Key = runqlat_key;

namespace {

constexpr std::string_view kParts[] = {"",        "cpu_idle", "cpus_busy",
                                       "unknown", "quota",    "cache_warm"};

}  // namespace

TOOL(runqlat) {
  return {
      .name = "runqlat",
      .summary = "run queue (scheduler) latency as a histogram",
      .description =
          "A log2 histogram of the time that runnable tasks waited for a CPU: from their wakeup "
          "or preemption until they run. It comes from the kernel's own accounting of run delay "
          "(/proc/PID/schedstat), read at each context switch.\n\n"
          "--affinity splits each wait: the part during which the task's cgroup had used its "
          "quota of CPU time (quota; cpu.max in cgroups), the part during which a CPU that the "
          "task may use was idle, so that the scheduler could have run the task (cpu_idle), and "
          "the part during which all of these CPUs were busy (cpus_busy). For a while after a task "
          "has run, its data may still be in the caches of its CPU, and load balancing does not move "
          "it to an idle CPU: what is certainly such a wait is cache_warm instead of cpu_idle. That "
          "while is migration_cost_ns in /sys/kernel/debug/sched, 0.5 ms by default. Each part has its own "
          "histogram. If the set of CPUs that a task may use changes while it waits, its wait is "
          "in another one (unknown). With --affinity the tool measures the time from wakeup to "
          "run itself, instead of reading the kernel's accounting.\n\n"
          "Filters and keys apply to the task that waited.",
      .overhead =
          "one hook per context switch (three on kernels without run delay accounting), "
          "no output per event",
      .examples = {{"runqlat", "one histogram of all tasks until Ctrl-C"},
                   {"runqlat -mT 1", "each second, in milliseconds, with the time"},
                   {"runqlat -P 5 1", "per process, for five seconds"},
                   {"runqlat -c system.slice/nginx.service 10", "what one service waited"},
                   {"runqlat --affinity 10 1",
                    "is there an idle CPU, or no quota left, while "
                    "tasks wait?"},
                   {"runqlat -- make -j8", "what this command and its children waited"}},
      .questions = {{"Are there too few CPUs: how long do tasks wait for one?", "runqlat 1 10"},
                    {"Does a service get a CPU when it wants one, or is it crowded out?",
                     "runqlat -c system.slice/nginx.service 10"},
                    {"Do tasks wait although a CPU is idle, or because of a CPU limit?",
                     "runqlat --affinity 10 1"},
                    {"Which process waits for a CPU?", "runqlat -P 5 1"}},
      .differs = {{Difference::both,
                   "The times are those of the kernel's own accounting, which include waits of "
                   "tasks that were preempted just before they slept."},
                  {Difference::libbpf_tools,
                   "A filter by cgroup applies to the task that waits. There it applies to the "
                   "waker or to the task that left the CPU."}},
      .object = skeleton<runqlat_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('P', "pids", "one histogram per process and name", setting(&Opt::by_pid)),
                  flag('L', "tids", "one histogram per thread and name", setting(&Opt::by_tid)),
                  flag(0, "pidnss", "one histogram per pid namespace; 0: of exiting tasks",
                       setting(&Opt::by_pidns)),
                  shared::affinity<Opt>(), shared::milliseconds(), shared::timestamp(),
                  shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .hooks = run_delay_hooks(),
      .report = histogram<Key>(
          maps::delays, "run queue latency",
          {named<&Key::part, kParts>(
               "part", "part", as::text,
               "which part of the waits: quota, cpu_idle, cache_warm, cpus_busy or unknown")
               .with("affinity"),
           field<&Key::pidns>("pid_namespace", "pidns", as::number,
                              "pid namespace; 0: of an exiting task")
               .with("pidnss"),
           who<Key>(id::pid.titled("pid").with("pids"), id::tid.titled("tid").with("tids"),
                    id::comm.titled("").with("pids|tids"))}),
      .announce = "Tracing run queue latency",
  };
}
