// runqslower: tasks that waited long for a CPU, and the task that ran on it.
#include "cpu/runqslower.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "runqslower.skel.h"

using namespace coretap;
using Event = runqslower_event;
using Opt = rodata_of<runqslower_bpf>;

namespace {

/// With --affinity, a part of the wait, if the parts are known.
template <auto Part>
Value part_of_wait(const Event& e) {
  return value_if(e.idle_ns != NOT_KNOWN, e.*Part);
}
/// Of the task that ran the longest, if one did.
template <auto Member>
Value of_longest(const Event& e) {
  return value_if(e.longest_ns, e.*Member);
}
template <auto Member>
Value of_previous(const Event& e) {
  return value_if(e.previous_known, e.*Member);
}

}  // namespace

TOOL(runqslower) {
  return {
      .name = "runqslower",
      .summary = "tasks that waited long for a CPU, and which task had it",
      .description =
          "One line each time a runnable task gets a CPU after it waited for at least MIN_US "
          "microseconds. The time comes from the kernel's own accounting of run delay "
          "(/proc/PID/schedstat), read at each context switch.\n\n"
          "--previous adds the task that ran the longest on that CPU during the wait, and for "
          "how long (RAN): mostly the cause of the wait. It is chosen from the last 32 turns of "
          "tasks on the CPU. JSON and CSV also have the task that left the CPU last, which peers "
          "show. If the waiting task moved from CPU to CPU, only the last CPU is considered.\n\n"
          "With --affinity QUOTA is the part of the wait during which the task's cgroup had used "
          "its quota of CPU time (cpu.max), and IDLE the part during which a CPU that the task "
          "may use was idle: the scheduler could have run the task. WARM is what of IDLE was "
          "certainly within the time after its last run in which load balancing does not move it, as "
          "its caches may be warm (migration_cost_ns in /sys/kernel/debug/sched). During the rest of the wait "
          "all of these CPUs were busy.\n\n"
          "Filters apply to the task that waited.",
      .overhead =
          "one hook per context switch (three on kernels without run delay accounting), which "
          "also records the task that leaves; only long waits reach user space",
      .examples = {{"runqslower", "waits of 10 ms or more"},
                   {"runqslower 1000 -P", "of 1 ms or more, and which task ran meanwhile"},
                   {"runqslower --cgroup system.slice/nginx.service", "of one service"},
                   {"runqslower 5000 -- make -j8", "of this command and its children"}},
      .questions = {{"Which task waited long for a CPU, and when?", "runqslower"},
                    {"Which task keeps others from the CPU?", "runqslower 1000 -P"}},
      .differs = {{Difference::both,
                   "With -P the task that ran the longest during the wait is shown. Peers show "
                   "the one that left the CPU last, which is in JSON and CSV here."},
                  {Difference::libbpf_tools,
                   "-c compares whole names and takes a list. There it compares the start of "
                   "the name."}},
      .object = skeleton<runqslower_bpf>(),
      .positionals = {shared::threshold("MIN_US", 1000,
                                        "only waits of at least MIN_US microseconds; 0: all",
                                        setting(&Opt::min_ns), "10000")},
      .options = {flag('P', "previous", "print the task that ran the longest during the wait"),
                  shared::affinity<Opt>(), shared::duration('d'), shared::pid(), shared::tid(),
                  shared::uid(), shared::comm('c').also("whole-comm"), shared::cgroup(0)},
      .other_meanings =
          {{'c', "comm",
            "whole names; in libbpf-tools the start of a name: --name TEXT finds a part "
            "(--whole-comm: without this note)"}},
      .hooks = run_delay_hooks(),
      .report =
          events<Event>(
              {who<&Event::who>(id::comm, id::pid.with("json"), id::tid.with({}).columns(-6)),
               field<&Event::latency_ns>("latency_ns", "LAT(us)",
                                         as::wide(as::whole_microseconds, 14),
                                         "time that it waited"),
               derived<Event, part_of_wait<&Event::idle_ns>>(
                   "idle_ns", "IDLE(us)", as::whole_microseconds,
                   "part of it during which a CPU that it may use was idle")
                   .or_null()
                   .with("affinity"),
               derived<Event, part_of_wait<&Event::warm_ns>>(
                   "warm_ns", "WARM(us)", as::whole_microseconds,
                   "of this, while the scheduler took its caches for warm, and would not move it")
                   .or_null()
                   .with("affinity"),
               derived<Event, part_of_wait<&Event::quota_ns>>(
                   "quota_ns", "QUOTA(us)", as::whole_microseconds,
                   "part of it during which its cgroup had used its CPU quota")
                   .or_null()
                   .with("affinity"),
               derived<Event, of_longest<&Event::longest_comm>>(
                   "longest_comm", "PREV COMM", as::comm,
                   "task that ran the longest on the CPU during the wait")
                   .with("previous"),
               derived<Event, of_longest<&Event::longest_tid>>(
                   "longest_tid", "PREV TID", as::wide(as::pid, -8), "its thread id")
                   .with("previous"),
               derived<Event, of_longest<&Event::longest_ns>>(
                   "longest_ns", "RAN(us)", as::whole_microseconds, "how long it ran in that time")
                   .with("previous"),
               derived<Event, of_previous<&Event::previous_comm>>(
                   "previous_comm", "LAST COMM", as::comm,
                   "task that left the CPU when the wait ended")
                   .with("json"),
               derived<Event, of_previous<&Event::previous_tid>>("previous_tid", "LAST TID",
                                                                 as::pid, "its thread id; 0: idle")
                   .with("json"),
               field<&Event::cpu>("cpu", "CPU", as::wide(as::number, 3), "CPU that it got")
                   .with("json"),
               who<&Event::who>(id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, ""}})
              .high_rate(),
      .announce = "Tracing waits for a CPU",
  };
}
