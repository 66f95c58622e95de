// schedlat: the table of perf sched latency: switches, run time and scheduling delays by task.
#include "cpu/schedlat.h"

#include "coretap/clock.hpp"
#include "coretap/live_report.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "schedlat.skel.h"

using namespace coretap;
using Key = schedlat_key;
using Sums = schedlat_value;
using Line = Row<Key, Sums>;

namespace {

/// When the longest wait ended, by the monotonic clock; 0: there was none.
std::uint64_t moment(const Line& l) {
  if (!l.value.longest.slots[0]) return 0;
  auto now = monotonic_ns() / kMillisecond, bits = std::uint64_t{l.value.moment.slots[0]};
  return (now - (now - bits) % SCHEDLAT_MOMENTS) * kMillisecond;
}

Value moment_iso(const Line& l) {
  auto at = moment(l);
  return value_if(at, at ? iso_time(at) : std::string());
}
Value moment_text(const Line& l) {
  auto at = moment(l);
  return value_if(at, at ? wall_time(at) : std::string());
}

/// A task that neither waits nor leaves its CPU has a row, too.
void nothing_more(Sums&, std::uint64_t) {}

std::vector<Hook> hooks() {
  auto all = run_delay_hooks();
  all.push_back({"stints under way", {{{progs::on_interval}}}});
  return all;
}

}  // namespace

TOOL(schedlat) {
  return {
      .name = "schedlat",
      .summary = "tasks: switches, run time, and how long they wait for a CPU",
      .description =
          "A row for each task, as perf sched latency has it: how long it ran (RUN), how often it "
          "left the CPU to wait for something (WAITED) or while it could have run on (PREEMPTED), "
          "how often it got a CPU after a delay (DELAYS), the average and the longest of these "
          "delays, and when the longest one ended.\n\n"
          "A delay is the time from when a task can run, by a wakeup or a preemption, until it "
          "runs. It comes from the kernel's own accounting (/proc/PID/schedstat), read at each "
          "switch; a delay counts when it ends. Run time includes interrupts. A stint on the CPU "
          "that is under way at the end of an interval counts with its part until then. Idle tasks "
          "have no rows.\n\n"
          "--by adds rows up: by pid, comm, cgroup and others. A thread that changes its name has a "
          "row for each name. Of delays within 0.03 % of the longest one, the time may be that of "
          "any, to a millisecond.\n\n"
          "--affinity shows the parts of the delays in which the scheduler could have run the task, "
          "as a CPU was idle that the task may use, what of these it certainly did not because the task's "
          "caches may be warm where it ran last (WARM), and in which the task's cgroup had no quota left. "
          "With it the tool measures the delays itself.",
      .overhead =
          "one hook per context switch (and two per wakeup on kernels without run delay "
          "accounting), counted in the kernel, no output per event; one interrupt of each CPU per interval",
      .examples = {{"schedlat 1", "a table each second, the longest delays first"},
                   {"schedlat --by pid,comm 10 1", "by process, for ten seconds"},
                   {"schedlat --by cgroup 10 1", "by cgroup"},
                   {"schedlat -s run_ns -p 181", "the threads of process 181, by their run time"},
                   {"schedlat -- make -j8", "what this command and its children waited"}},
      .questions = {{"Which tasks wait longest for a CPU, and when?", "schedlat 10 1"},
                    {"Which threads are switched most often, and do they want to?",
                     "schedlat -s preempted 10 1"},
                    {"What is the scheduling latency of each task (perf sched latency)?",
                     "schedlat 10 1"}},
      .object = skeleton<schedlat_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{shared::affinity<rodata_of<schedlat_bpf>>(), shared::timestamp(),
                          shared::top('r'), shared::sort(), shared::max_keys()},
                         shared::task_filters()}),
      .hooks = hooks(),
      .report =
          LiveReport{
              table<Key, Sums>(
                  maps::tasks,
                  {who<Key>(id::comm, id::pid, id::tid.with("")),
                   of_value<Line, &Sums::run_ns>("run_ns", "RUN(ms)",
                                                 as::wide(as::precise(as::milliseconds, 3), 12),
                                                 "time on a CPU"),
                   of_value<Line, &Sums::voluntary>("voluntary", "WAITED", as::pages,
                                                    "switches away from it when it had to wait"),
                   of_value<Line, &Sums::preempted>(
                       "preempted", "PREEMPTED", as::wide(as::number, 9),
                       "switches away from it when it could have run on"),
                   of_value<Line, &Sums::waits>("waits", "DELAYS", as::pages,
                                                "how often it waited for a CPU"),
                   of_value<Line, &Sums::wait_ns>("wait_ns", "DELAY(ms)",
                                                  as::wide(as::precise(as::milliseconds, 3), 11),
                                                  "total time of these waits"),
                   mean_of<Line, &Sums::wait_ns, &Sums::waits>("average_ns", "AVG(ms)",
                                                               as::precise(as::milliseconds, 3),
                                                               "their average time"),
                   of_value<Line, &Sums::longest>("max_ns", "MAX(ms)",
                                                  as::precise(as::milliseconds, 3),
                                                  "the longest one of the interval"),
                   of_value<Line, &Sums::idle_ns>("idle_ns", "IDLE(ms)",
                                                  as::precise(as::milliseconds, 3),
                                                  "part of the delays in which a CPU was idle that "
                                                  "the task may use")
                       .only("affinity"),
                   of_value<Line, &Sums::warm_ns>(
                       "warm_ns", "WARM(ms)",
                       as::precise(as::milliseconds, 3),
                       "of this, while the scheduler took its caches for warm, and would not move "
                       "it")
                       .only("affinity"),
                   of_value<Line, &Sums::quota_ns>("quota_ns", "QUOTA(ms)",
                                                   as::precise(as::milliseconds, 3),
                                                   "part in which its cgroup had used its quota")
                       .only("affinity"),
                   of_value<Line, &Sums::unknown_ns>(
                       "unknown_ns", "UNKNOWN(ms)", as::wide(as::precise(as::milliseconds, 3), 11),
                       "delays in which the CPUs that it may use changed: not split")
                       .only("affinity"),
                   derived<Line, moment_text>("max_at_text", "MAX-AT", as::wide(as::text, -12),
                                              "time of day at which it ended")
                       .in_text(),
                   derived<Line, moment_iso>(
                       "max_at",
                       "", as::text,
                       "time at which the longest one ended; null: none")
                       .or_null()
                       .with("json")},
                  "max_ns,wait_ns", 20)
                  .with_largest<&Sums::longest>()
                  .with_largest<&Sums::moment>()
                  .counted_by(3)
                  .runs_at_intervals(progs::on_interval)
                  .timed_with("timestamp"),
              of_counters<Sums, nothing_more>},
      .announce = "Tracing switches of tasks",
  };
}
