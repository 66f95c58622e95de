// irqslower: slow interrupt handlers.
#include "cpu/irqslower.h"

#include "coretap/irq.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "irqslower.skel.h"

using namespace coretap;
using Event = irqslower_event;
using Opt = rodata_of<irqslower_bpf>;

namespace {

constexpr std::uint64_t kMicrosecond = 1'000;
}  // namespace

TOOL(irqslower) {
  return {
      .name = "irqslower",
      .summary = "interrupt handlers that run long",
      .description =
          "One line per run of a hardware interrupt handler that takes at least MIN_US "
          "microseconds. Other interrupts of that CPU wait meanwhile, and so does the "
          "interrupted task, which COMM names. In JSON and CSV spurious_run marks runs in which "
          "the handler found that its device had not interrupted (shared interrupt lines).\n\n"
          "The processor's own interrupts (timer, rescheduling, function calls between CPUs) "
          "have no handlers; --vectors adds them, under the names of the kernel's tracepoints "
          "(x86). Softirqs, and the work of a threaded handler in its thread, do not count. "
          "Filters by task apply to the interrupted task.",
      .overhead = "two hooks per interrupt; only slow ones are sent to user space",
      .examples = {{"irqslower", "what took 1 ms or more"},
                   {"irqslower 100", "what took 100 us or more"},
                   {"irqslower -c 1 --vectors 50", "on CPU 1, with its timer and other vectors"},
                   {"irqslower -K 100", "with the kernel stack that was interrupted"}},
      .questions = {{"Which interrupt handler runs too long?", "irqslower 100"},
                    {"Do interrupts keep a task from responding in time?",
                     "irqslower --vectors -p 181 50"}},
      .object = skeleton<irqslower_bpf>(),
      .positionals = {shared::threshold("MIN_US", kMicrosecond,
                                        "only handlers that take at least MIN_US microseconds; "
                                        "0: all",
                                        setting(&Opt::min_ns), "1000")},
      .options = joined({{number('i', "irq", "IRQ", "only the interrupt or vector with this number",
                                 setting(&Opt::filter_irq), 1, setting(&Opt::filter_irq_on)),
                          flag(0, "vectors", "the processor's own interrupts too (x86)"),
                          shared::kernel_stack(), shared::cpu('c'), shared::pid(), shared::tid(),
                          shared::uid(), shared::comm(), shared::cgroup(0)},
                         belonging_to("kernel-stack", {shared::stack_depth()})}),
      .hooks = {{"end of handlers", {{{progs::on_irq_exit}}}},
                {"start of handlers", {{{progs::on_irq_entry}}}},
                {.name = "vectors",
                 // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a macro makes the names
                 .candidates = {{{IRQ_VECTORS(IRQ_VECTOR_PROGRAMS)}}},
                 .when = "vectors",
                 .instead = "leave out --vectors; /proc/interrupts counts them"}},
      .report = events<Event>({field<&Event::cpu>("cpu", "CPU", as::wide(as::number, 4), "CPU"),
                               field<&Event::irq>("irq", "IRQ", as::small,
                                                  "number of the interrupt or vector"),
                               field<&Event::name>("name", "HANDLER", as::wide(as::text, -24),
                                                   "name of the handler, or of the vector")
                                   .bounded(),
                               field<&Event::latency_ns>("latency_ns", "LAT(us)",
                                                         as::whole_microseconds, "its time"),
                               derived<Event, [](const Event& e) { return bool(e.spurious); }>(
                                   "spurious_run", "SPURIOUS", as::wide(as::number, 8),
                                   "the device had not interrupted")
                                   .with("json"),
                               who<&Event::who>(id::pid.with("json"), id::tid.with("json"),
                                                id::uid.with("json"), id::cgroup, id::comm)},
                              "kernel-stack")
                    .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing slow interrupt handlers",
  };
}
