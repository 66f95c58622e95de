// cpuunclaimed: CPUs that are idle while tasks wait for one.
#include "cpu/cpuunclaimed.h"

#include <algorithm>

#include "coretap/config.hpp"
#include "coretap/kernel.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "cpuunclaimed.skel.h"

using namespace coretap;
using Sums = cpuunclaimed_sums;

namespace {

/// The share of the time of all CPUs.
Value share(const Sums& s, std::uint64_t ns) {
  auto all = static_cast<double>(s.span_ns) * static_cast<double>(online_cpus().size());
  return value_if(all > 0, std::min(1.0, static_cast<double>(ns) / all));
}
Value busy(const Sums& s) {
  auto idle = share(s, s.idle_ns);
  auto* ratio = std::get_if<double>(&idle);
  return ratio ? Value(1 - *ratio) : Value();
}
Value barred(const Sums& s) { return s.accounted ? share(s, s.barred_ns) : Value(); }
Value barred_ns(const Sums& s) { return value_if(s.accounted || !s.span_ns, s.barred_ns); }
}  // namespace

TOOL(cpuunclaimed) {
  return {
      .name = "cpuunclaimed",
      .summary = "CPUs that are idle while tasks wait for one",
      .description =
          "For each interval: the share of all CPUs' time in which they ran tasks (%CPU), and "
          "the share in which they were idle although a task waited for a CPU that it may use "
          "(UNCLAIMED%): if two tasks wait and three CPUs are idle, two of the CPUs are "
          "unclaimed. BARRED% is the time of CPUs that were idle while tasks waited that may "
          "not use them, because of CPU affinity, a cpuset, or disabled migration. "
          "bcc counts both together. WAIT(ms) is the total wait of all tasks.\n\n"
          "The times are exact: the tool tracks which CPUs are idle and which tasks wait, and "
          "adds up the time between any two changes. The time that an idle CPU takes to wake up "
          "for a task is unclaimed, too. A task that waits because its cgroup has used up its "
          "quota counts as waiting for a CPU. If the CPU sets of waiting tasks overlap partly, "
          "an idle CPU may count for two tasks. Tasks that are waiting when tracing starts count "
          "from their next wait.\n\n"
          "--sampled instead reads the run queues of all CPUs in one pass, at a fixed rate. That "
          "costs less on large machines, but which CPUs a task may use is not known then, and "
          "barred time is part of UNCLAIMED%. Kernels before 5.17 have only this mode.\n\n"
          "Filters apply to the tasks that wait; what CPUs do is shown for all tasks.",
      .overhead =
          "hooks at each wakeup, context switch and migration, which take one lock that all CPUs "
          "share; with --sampled one CPU reads all run queues 99 times a second",
      .examples = {{"cpuunclaimed", "a line per second"},
                   {"cpuunclaimed -T 5 12", "a minute, every five seconds, with the time"},
                   {"cpuunclaimed --sampled", "from samples, on a large machine"},
                   {"cpuunclaimed --csv 0.1", "ten rows a second, for a script"}},
      .questions = {{"Do tasks wait although CPUs are idle?", "cpuunclaimed"},
                    {"Does CPU affinity keep idle CPUs from being used?", "cpuunclaimed 10 1"}},
      .differs = {{Difference::bcc,
                   "The times are exact, not sampled, and CPUs that no waiting task may use are "
                   "separate (BARRED%). bcc's tool takes 99 samples a second, as --sampled does, "
                   "and counts both together."},
                  {Difference::bcc,
                   "Lines are a table of numbers, with %CPU first and UNCLAIMED% after it. There "
                   "they are sentences: %CPU 57.19%, unclaimed idle 0.00%."}},
      .object = skeleton<cpuunclaimed_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined(
          {{flag(0, "sampled", "sample the run queues at a fixed rate instead"),
            shared::timestamp()},
           shared::task_filters(),
           belonging_to("sampled",
                        {shared::frequency("samples per second (default: 99)", kMostClockHz)})}),
      .other_meanings = {{0, "csv",
                          "summaries; bcc's has each sample by CPU, as runqlen -C --csv "
                          "(--output-format csv: without this note)"}},
      .elsewhere = {{'j', "", "use --csv with a short interval, or runqlen -C --csv by CPU"},
                    {'J', "fullcsv",
                     "use --csv with a short interval: all CPUs are read together, without "
                     "offsets"}},
      .hooks = {{.name = "waits and idle CPUs",
                 // Tracing programs can use spin locks since 5.17, which added bpf_loop.
                 .candidates = {{{progs::on_wakeup, progs::on_wakeup_new, progs::on_switch,
                                  progs::on_migrate, progs::idle_since_start},
                                 {has_enumerator("bpf_func_id", "BPF_FUNC_loop")}}},
                 .when = "!sampled",
                 .instead = "use --sampled: tracing programs cannot use locks on this kernel"},
                {.name = "samples of run queues",
                 .candidates = {{{progs::on_start, progs::on_sample}}},
                 .when = "sampled",
                 .sampling = at_hz(99).on_one_cpu()}},
      .report = sums<Sums>(
          maps::unclaimed_cpus,
          {derived<Sums, busy>("busy_ratio", "%CPU", as::percent,
                               "share of the time in which CPUs ran tasks"),
           derived<Sums, [](const Sums& s) { return share(s, s.unclaimed_ns); }>(
               "unclaimed_ratio", "UNCLAIMED%", as::wide(as::percent, 10),
               "share in which they were idle and a task that may use them "
               "waited"),
           derived<Sums, barred>("barred_ratio", "BARRED%", as::percent,
                                 "share in which they were idle, and none of the waiting tasks "
                                 "may use them"),
           field<&Sums::waiting_ns>("waiting_ns", "WAIT(ms)", as::wide(as::milliseconds, 11),
                                    "total wait of all tasks"),
           with("json",
                {field<&Sums::events>("waits", "WAITS", as::number,
                                      "waits that ended; samples with --sampled"),
                 field<&Sums::span_ns>("span_ns", "SPAN(ms)", as::milliseconds,
                                       "time that the row covers"),
                 field<&Sums::idle_ns>("idle_ns", "IDLE(ms)", as::milliseconds,
                                       "total time in which CPUs were idle"),
                 field<&Sums::unclaimed_ns>("unclaimed_ns", "UNCLAIMED(ms)", as::milliseconds,
                                            "the time for unclaimed_ratio"),
                 derived<Sums, barred_ns>("barred_ns", "BARRED(ms)", as::milliseconds,
                                          "the time for barred_ratio")
                     .counter()})}),
      .announce = "Tracing idle CPUs and waiting tasks",
      .check = [](const Config& c) -> Result<void> {
        if (!c.given("sampled") || !c.filters_tasks()) return {};
        return usage("--sampled does not know which tasks wait",
                     "leave out --sampled, or the filter by task");
      },
  };
}
