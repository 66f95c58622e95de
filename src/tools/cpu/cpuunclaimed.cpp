// cpuunclaimed: CPUs that are idle while tasks wait for one.
#include "cpu/cpuunclaimed.h"

#include <algorithm>

#include "cli/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "cpuunclaimed.skel.h"
#include "kernel/kernel.hpp"

using namespace coretap;
using Sums = cpuunclaimed_sums;

namespace {

/// Of the time of all CPUs.
Value share(const Sums& s, std::uint64_t ns) {
  auto all = static_cast<double>(s.span_ns) * static_cast<double>(online_cpus().size());
  if (all <= 0) return {};
  return std::min(1.0, static_cast<double>(ns) / all);
}
Value busy(const Sums& s) {
  auto idle = share(s, s.idle_ns);
  if (auto* ratio = std::get_if<double>(&idle)) return 1 - *ratio;
  return {};
}
Value unclaimed(const Sums& s) { return share(s, s.unclaimed_ns); }
Value barred(const Sums& s) { return s.accounted ? share(s, s.barred_ns) : Value(); }
Value barred_ns(const Sums& s) {
  if (!s.accounted && s.span_ns) return {};
  return std::uint64_t{s.barred_ns};
}

Result<void> check(const Config& c) {
  if (!c.given("sampled") || !c.filters_tasks()) return {};
  return Error{"--sampled: which tasks wait is not known then",
               {},
               "leave out --sampled, or the filter by task",
               kUsage};
}

}  // namespace

TOOL(cpuunclaimed) {
  return {
      .name = "cpuunclaimed",
      .summary = "CPUs that are idle while tasks wait for one",
      .description =
          "Each interval: the share of the time of all CPUs in which they ran tasks (%CPU), and the "
          "share in which they were idle although a task waited for a CPU that it may use "
          "(UNCLAIMED): where two tasks wait and three CPUs are idle, two of these are unclaimed. "
          "BARRED is the time of CPUs that were idle while tasks waited, none of which may use "
          "them, by their CPU affinity, their cpuset, or because they have disabled migration. "
          "Peers count both together. WAIT(ms) is what all tasks waited together.\n\n"
          "The times are exact: the tool keeps which CPUs are idle and which tasks wait, and adds "
          "up the time between any two changes. The time in which an idle CPU wakes up for a task "
          "is unclaimed too. A task that waits because the quota of its cgroup is used up counts "
          "as one that waits for a CPU. Where the sets of CPUs of waiting tasks overlap in part, an "
          "idle CPU may count for two tasks. Tasks that wait when tracing starts count from their "
          "next wait on.\n\n"
          "With --sampled the run queues of all CPUs are looked at some times a second instead, "
          "all at once. That costs less on large machines; what CPUs tasks may use is not known "
          "then, and what is barred is in UNCLAIMED. Kernels before 5.17 have only this way.\n\n"
          "Filters are about the tasks that wait; what CPUs do is shown of all.",
      .overhead =
          "hooks at each wakeup, context switch and migration, which take one lock that all CPUs "
          "share; with --sampled one CPU looks at all run queues 99 times a second",
      .examples = {{"cpuunclaimed", "a line per second"},
                   {"cpuunclaimed -T 5 12", "a minute, every five seconds, with the time"},
                   {"cpuunclaimed --sampled", "from samples, on a large machine"},
                   {"cpuunclaimed --csv 0.1", "ten rows a second, for a script"}},
      .questions = {{"Do tasks wait although CPUs are idle?", "cpuunclaimed"},
                    {"Does CPU affinity keep idle CPUs from being used?", "cpuunclaimed 10 1"}},
      .differs = {{Difference::bcc,
                   "The times are exact, not samples, and CPUs that no waiting task may use are "
                   "apart (BARRED). bcc's tool takes 99 samples a second, which --sampled does, "
                   "and counts both together."}},
      .object = skeleton<cpuunclaimed_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined(
          {{flag(0, "sampled", "look at run queues some times a second instead"),
            shared::timestamp()},
           shared::task_filters(),
           belonging_to("sampled",
                        {shared::frequency("samples per second (default: 99)", kMostClockHz)})}),
      .elsewhere = {{'j', "", "use --csv with a short interval, or runqlen -C --csv by CPU"},
                    {'J', "fullcsv",
                     "use --csv with a short interval: CPUs are looked at at once, without "
                     "offsets"}},
      .hooks = {{.name = "waits and idle CPUs",
                 // Locks of programs came to tracing programs with bpf_loop, in 5.17.
                 .candidates = {{{"on_wakeup", "on_wakeup_new", "on_switch", "on_migrate",
                                  "idle_since_start"},
                                 {has_enumerator("bpf_func_id", "BPF_FUNC_loop")}}},
                 .when = "!sampled",
                 .instead = "use --sampled: tracing programs have no locks on this kernel"},
                {.name = "samples of run queues",
                 .candidates = {{{"on_start", "on_sample"}}},
                 .when = "sampled",
                 .sampling = at_hz(99).on_one_cpu()}},
      .report = sums<Sums>(
          "unclaimed",
          {derived<Sums, busy>("busy_ratio", "%CPU", as::percent,
                               "share of the time in which CPUs ran tasks"),
           derived<Sums, unclaimed>("unclaimed_ratio", "UNCLAIMED", as::percent,
                                    "share in which they were idle and a task waited that may "
                                    "use them"),
           derived<Sums, barred>("barred_ratio", "BARRED", as::percent,
                                 "share in which they were idle, and of the tasks that waited "
                                 "none may use them"),
           field<&Sums::waiting_ns>("waiting_ns", "WAIT(ms)", as::wide(as::milliseconds, 11),
                                    "time that all tasks waited together"),
           with("json", {field<&Sums::events>("waits", "WAITS", as::number,
                                              "waits that ended; samples with --sampled"),
                         field<&Sums::span_ns>("span_ns", "SPAN(ms)", as::milliseconds,
                                               "time that the row is about"),
                         field<&Sums::idle_ns>("idle_ns", "IDLE(ms)", as::milliseconds,
                                               "time in which CPUs were idle, all together"),
                         field<&Sums::unclaimed_ns>("unclaimed_ns", "UNCLAIMED(ms)",
                                                    as::milliseconds, "that of unclaimed_ratio"),
                         derived<Sums, barred_ns>("barred_ns", "BARRED(ms)", as::milliseconds,
                                                  "that of barred_ratio")
                             .counter()})}),
      .announce = "Tracing idle CPUs and waiting tasks",
      .check = check,
  };
}
