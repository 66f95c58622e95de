// hardirqs: number and duration of interrupt handler runs.
#include "cpu/hardirqs.h"

#include "coretap/irq.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "hardirqs.skel.h"

using namespace coretap;
using Opt = rodata_of<hardirqs_bpf>;
using Key = hardirqs_key;
using Sums = hardirqs_value;
using Line = Row<Key, Sums>;

TOOL(hardirqs) {
  return {
      .name = "hardirqs",
      .summary = "interrupt handlers: how often they run, and how long",
      .description =
          "Hardware interrupts by handler name and number: how often the handler ran, its total "
          "time, and its longest run in each interval. SPURIOUS counts the runs in which the "
          "handler found that its device had not interrupted (shared interrupt lines).\n\n"
          "The processor's own interrupts (timer, rescheduling, function calls between CPUs) "
          "have no handlers; --vectors adds them, under the names of the kernel's tracepoints "
          "(x86). Softirqs, and the work of a threaded handler in its thread, do not count. "
          "Filters by task apply to the interrupted task.",
      .overhead = "two hooks per interrupt; counted in the kernel, per CPU",
      .examples = {{"hardirqs 1", "a table each second"},
                   {"hardirqs -d 10 1", "the times of each handler as a histogram"},
                   {"hardirqs -C 1", "by CPU: is one CPU loaded by interrupts?"},
                   {"hardirqs --vectors -T 5", "with timer and inter-processor interrupts"}},
      .questions = {{"How much time goes to interrupt handlers?", "hardirqs 1"},
                    {"Which device interrupts most?", "hardirqs --count 10 1"},
                    {"Do all interrupts go to one CPU?", "hardirqs -C 10 1"}},
      .differs = {{Difference::bcc,
                   "-C groups by CPU, -c selects a cgroup and -s a CPU, as in current "
                   "libbpf-tools. There -C only counts (here --count), and -c selects a CPU."},
                  {Difference::libbpf_tools,
                   "TOTAL_usecs comes before TOTAL_count, as in bcc and in version 0.26; current "
                   "versions have the count first. -C groups by CPU, as there; in version 0.26 it "
                   "only counts (here --count)."},
                  {Difference::both,
                   "Interrupts that share a handler name have a row each. Peers add them up."}},
      .object = skeleton<hardirqs_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{flag('d', "distributed", "histograms of the handlers' times",
                 setting(&Opt::distributed)),
            flag('C', "per-cpu", "by CPU", setting(&Opt::by_cpu)).also("CPU"),
            flag(0, "count", "count only; times are not measured", setting(&Opt::counts_only)),
            flag(0, "vectors", "the processor's own interrupts too (x86)"), shared::nanoseconds(),
            shared::timestamp(), shared::cpu('s'), shared::top(), shared::sort(0),
            shared::max_keys(), shared::pid(), shared::tid(), shared::uid(), shared::comm(),
            shared::cgroup_not("a CPU", "cpu")}}),
      .other_meanings = {{'C', "",
                          "by CPU, as in libbpf-tools; bcc's -C only counts, as --count does "
                          "(--per-cpu: without this note)"}},
      .hooks = {{"start of handlers", {{{progs::on_irq_entry}}}, "!count"},
                {"end of handlers", {{{progs::on_irq_exit}}}},
                {.name = "vectors",
                 // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a macro makes the names
                 .candidates = {{{IRQ_VECTORS(IRQ_VECTOR_PROGRAMS)}}},
                 .when = "vectors",
                 .instead = "leave out --vectors; /proc/interrupts counts them"}},
      .report =
          table<Key, Sums>(
              maps::handlers,
              {of_key<Line, &Key::name>("name", "HARDIRQ", as::wide(as::text, -33),
                                        "name of the handler, or of the vector")
                   .bounded(),
               of_value<Line, &Sums::count>("count", "TOTAL_count", as::wide(as::number, 11),
                                            "runs"),
               of_value<Line, &Sums::total_ns>("total_ns", "TOTAL_usecs", as::whole_microseconds,
                                               "their total time")
                   .nanoseconds("TOTAL_nsecs")
                   .only("!count"),
               of_value<Line, &Sums::longest>("max_ns", "MAX_usecs",
                                              as::wide(as::whole_microseconds, 9),
                                              "the longest run of the interval")
                   .nanoseconds("MAX_nsecs")
                   .only("!count"),
               of_key<Line, &Key::irq>("irq", "IRQ", as::small,
                                       "number of the interrupt or vector"),
               of_value<Line, &Sums::spurious>("spurious", "SPURIOUS", as::wide(as::number, 8),
                                               "runs in which the device had not interrupted"),
               of_key<Line, &Key::cpu>("cpu", "CPU", as::wide(as::number, 3), "CPU")
                   .only("per-cpu")},
              "total_ns,count")
              .without_owner("an interrupt arrives in whatever task is running")
              .with_largest<&Sums::longest>()
              .timed_with("timestamp")
              .columns({{"name,total_ns,count,max_ns,cpu"}}),
      .other_reports = {{"distributed",
                         histogram<Key>(
                             maps::durations, "handler times",
                             {field<&Key::cpu>("cpu", "cpu", as::number, "CPU").with("per-cpu"),
                              field<&Key::name>("name", "hardirq", as::text,
                                                "name of the handler, or of the vector")
                                  .bounded(),
                              field<&Key::irq>("irq", "irq", as::number,
                                               "number of the interrupt or vector")})
                             .without_owner("an interrupt arrives in whatever task is running")}},
      .announce = "Tracing interrupt handlers",
      .exclusive = {{"count", "distributed"}, {"count", "nanoseconds"}},
  };
}
