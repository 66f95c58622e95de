// softirqs: number and duration of softirq runs.
#include "cpu/softirqs.h"

#include "coretap/irq.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "softirqs.skel.h"

using namespace coretap;
using Opt = rodata_of<softirqs_bpf>;
using Key = softirqs_key;
using Sums = softirqs_value;
using Line = Row<Key, Sums>;

TOOL(softirqs) {
  return {
      .name = "softirqs",
      .summary = "softirqs: how often they run, and how long",
      .description =
          "Softirqs (timers, network, block devices, scheduler, RCU) by their names in "
          "/proc/softirqs: how often each ran, its total time, and its longest run in each "
          "interval. --count adds a column with the number of runs.\n\n"
          "Hardware interrupts nest in softirqs. The time of their handlers, and on x86 that of "
          "the processor's own interrupts (timer, rescheduling, function calls between CPUs), "
          "does not count as softirq time; JSON and CSV have it as irq_ns. On other "
          "architectures the processor's own interrupts do count. --include-irqs counts all of "
          "them, and needs no hooks for them.\n\n"
          "On a PREEMPT_RT kernel softirqs run in threads: the time during which such a thread "
          "is preempted counts. Filters by task apply to the interrupted task, or to ksoftirqd.",
      .overhead =
          "two hooks per softirq, two per hardware interrupt; counted in the kernel, per CPU",
      .examples = {{"softirqs 1", "a table each second"},
                   {"softirqs -CT 1", "with the number of runs, and the time"},
                   {"softirqs -d 10 1", "the times of each softirq as a histogram"},
                   {"softirqs --per-cpu 10 1", "is one CPU loaded by softirqs?"}},
      .questions = {{"How much time goes to softirqs?", "softirqs 1"},
                    {"Does one CPU process all network packets?", "softirqs --per-cpu 10 1"},
                    {"Which softirq runs long at a time?", "softirqs -d 10 1"}},
      .differs =
          {{Difference::both,
            "The time of hardware interrupts that nest in a softirq counts only with "
            "--include-irqs."},
           {Difference::bcc,
            "-C adds the number of runs after their time, as in libbpf-tools; --events shows "
            "it instead of the time."}},
      .object = skeleton<softirqs_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('d', "distributed", "histograms of the softirqs' times",
                       setting(&Opt::distributed)),
                  flag('C', "count", "also the number of runs"),
                  flag(0, "events", "count only; times are not measured",
                       setting(&Opt::counts_only)),
                  flag(0, "per-cpu", "by CPU", setting(&Opt::by_cpu)),
                  flag(0, "include-irqs", "include the hardware interrupts that nest in softirqs"),
                  shared::nanoseconds(), shared::timestamp(), shared::cpu('c'), shared::top(),
                  shared::sort(0), shared::max_keys(), shared::pid(), shared::tid(), shared::uid(),
                  shared::comm(), shared::cgroup(0)},
      .other_meanings = {{'C', "",
                          "count and time, as in libbpf-tools; bcc's -C only counts, as --events "
                          "does (--count: without this note)"}},
      .hooks = {{"end of softirqs", {{{progs::on_exit}}}},
                {"start of softirqs", {{{progs::on_entry}}}, "!events"},
                {"interrupt handlers",
                 {{{progs::on_irq_exit, progs::on_irq_entry}}},
                 "!events|include-irqs"},
                {"the processor's own interrupts",
                 // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a macro makes the names
                 {{{IRQ_VECTORS(IRQ_VECTOR_PROGRAMS)}}},
                 "!events|include-irqs",
                 "their time counts as time of the softirq in which they nest"}},
      .report =
          table<Key, Sums>(
              maps::vectors,
              {named_key<Line, &Key::vector, kSoftirqNames>(
                   "name", "SOFTIRQ", as::wide(as::text, -16), "name of the softirq"),
               of_value<Line, &Sums::total_ns>("total_ns", "TOTAL_usecs", as::whole_microseconds,
                                               "their total time")
                   .nanoseconds("TOTAL_nsecs")
                   .only("!events"),
               of_value<Line, &Sums::count>("count", "TOTAL_count", as::wide(as::number, 11),
                                            "runs")
                   .with("count|events"),
               of_value<Line, &Sums::longest>("max_ns", "MAX_usecs",
                                              as::wide(as::whole_microseconds, 9),
                                              "the longest run of the interval")
                   .nanoseconds("MAX_nsecs")
                   .only("!events"),
               of_value<Line, &Sums::irq_ns>(
                   "irq_ns", "IRQ_usecs", as::wide(as::whole_microseconds, 9),
                   "time of nested hardware interrupts, not part of the total")
                   .nanoseconds("IRQ_nsecs")
                   .only("!events|include-irqs")
                   .with("json"),
               of_key<Line, &Key::cpu>("cpu", "CPU", as::wide(as::number, 3), "CPU")
                   .only("per-cpu")},
              "total_ns,count")
              .without_owner(
                  "a softirq runs in whatever task it interrupts, or in a thread of the kernel")
              .with_largest<&Sums::longest>()
              .timed_with("timestamp"),
      .other_reports =
          {{"distributed",
            histogram<Key>(maps::durations, "softirq times",
                           {field<&Key::cpu>("cpu", "cpu", as::number, "CPU").with("per-cpu"),
                            named<&Key::vector, kSoftirqNames>("name", "softirq",
                                                               as::text, "name of the softirq")})
                .without_owner(
                    "a softirq runs in whatever task it interrupts, or in a thread of the kernel")}},
      .announce = "Tracing softirqs",
      .exclusive = {{"events", "distributed"},
                    {"events", "nanoseconds"},
                    {"events", "include-irqs"},
                    {"count", "distributed"}},
  };
}
