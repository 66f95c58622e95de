// softirqs against /proc/softirqs, and against the kernel's own trace of one process.
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Softirqs, AsTheKernel) {
  // Each CPU caches its rows, except with --max-keys.
  for (auto* options : {"", "--events", "--per-cpu", "-d", "--include-irqs", "--max-keys 1000"}) {
    SCOPED_TRACE(options);
    auto counted = count(Strings("softirqs") + options, "/proc/softirqs", [] {
      Workload workload("tcp", {});
      workload.release();
      workload.truth();
    });
    auto counts = counts_by(counted.report, "name");
    EXPECT_GE(counts.size(), 3u);
    EXPECT_GE(counts["net_rx"], 10u) << "packets over the loopback device";
    for (auto& [name, n] : counted.at[2]) counted.expect(name, counts[name]);
  }
}

// Softirqs that interrupted one process, by their ends in the kernel's trace.
TOOL_TEST(Softirqs, OfOneProcess) {
  Scene scene("sleeper --sleeps 1 --spin 500");
  Trace trace("irq/softirq_exit");
  scene.trace("softirqs --json --strict -p {pid}");
  auto seen = scene.finish();
  trace.stop();
  EXPECT_EQ(counts_by(seen.report(), "name"), softirqs_of(trace, static_cast<pid_t>(seen.pid)));
}

/// Times of softirqs, including interrupts nested in them.
struct SoftirqTimes {
  double count = 0, gross_ns = 0, irq_ns = 0;
  double average() const { return gross_ns / count; }
  double share() const { return irq_ns / gross_ns; }
};

const Strings kInterrupts(
    "irq_vectors/local_timer irq_vectors/reschedule irq_vectors/call_function irq_vectors/call_function_single irq_vectors/irq_work irq/irq_handler");

Strings events_of_interrupts() {
  Strings all("irq/softirq_entry irq/softirq_exit");
  for (auto& name : kInterrupts)
    for (auto* end : {"_entry", "_exit"}) all.push_back(name + end);
  return all;
}

SoftirqTimes traced(const Trace& trace) {
  struct Cpu {
    std::uint64_t softirq = 0, irq = 0;
    double irq_ns = 0;
  };
  std::map<int, Cpu> cpus;
  SoftirqTimes all;
  for (auto& e : trace.events()) {
    auto& cpu = cpus[e.cpu];
    if (e.name == "softirq_entry") {
      cpu = {e.ns, 0, 0};
    } else if (e.name == "softirq_exit") {
      if (!cpu.softirq) continue;
      all.count++;
      all.gross_ns += static_cast<double>(e.ns - cpu.softirq);
      all.irq_ns += cpu.irq_ns;
      cpu.softirq = 0;
    } else if (e.name.ends_with("_entry")) {
      cpu.irq = e.ns;
    } else if (cpu.softirq && cpu.irq) {
      cpu.irq_ns += static_cast<double>(e.ns - cpu.irq);
      cpu.irq = 0;
    }
  }
  return all;
}

// Packets are received while timers of sleeping threads expire: part of the time is theirs.
TOOL_TEST(Softirqs, InterruptsAreSubtracted) {
  Workload tcp("tcp", "--sessions 40 --server-bytes 4000000"),
      sleeper("sleeper", "--threads 8 --sleeps 400 --ms 1");
  Tracer net("softirqs", "--json"), gross("softirqs", "--json --include-irqs");
  Trace trace(events_of_interrupts());
  tcp.release();
  sleeper.release();
  tcp.truth();
  trace.stop();
  auto without = net.stop(), with = gross.stop();
  auto truth = traced(trace);
  if (truth.irq_ns < 20'000) throw Skip("hardly an interrupt came while a softirq ran");
  auto irq_ns = static_cast<double>(without.sum("irq_ns"));
  SoftirqTimes shown{static_cast<double>(without.sum("count")),
                     static_cast<double>(without.sum("total_ns")) + irq_ns, irq_ns};
  EXPECT_GT(shown.share(), 0.6 * truth.share());
  EXPECT_LT(shown.share(), 1.6 * truth.share());
  EXPECT_GT(shown.average(), 0.6 * truth.average());
  EXPECT_LT(shown.average(), 1.6 * truth.average());
  // The time that one tool excludes is in the other's.
  auto all = static_cast<double>(with.sum("total_ns")) / static_cast<double>(with.sum("count"));
  EXPECT_NEAR(all, shown.average(), 0.25 * all);
  for (auto& line : without.body) expect_longest_of_all(line);
}

TESTS_OF(softirqs, .events = {{}, "sleeper --sleeps 1 --spin 300"}, .alone = true,
         .nothing_when_idle = true,
         .stress = count_row("sleeper --sleeps 1 --spin {n}", 1000, "count", {})
                       .by_kernel_event("irq/softirq_exit"),
         .long_run = {{.arguments = "--per-cpu 10"}});

}  // namespace
}  // namespace coretap::tooltest
