// runqlen: number of tasks that wait for a CPU, sampled.
#include "cpu/runqlen.h"

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "runqlen.skel.h"

using namespace coretap;
using Line = Row<runqlen_key, hist>;

namespace {

constexpr HistogramScale kLength{unit::plain, 1, true, "runqlen"};

std::uint32_t cpu(const Line& l) { return l.key.cpu; }
std::uint64_t samples(const Line& l) { return histogram_count(l.value); }
std::uint64_t queued(const Line& l) { return samples(l) - l.value.slots[0]; }
double occupancy(const Line& l) {
  auto all = samples(l);
  return all ? static_cast<double>(queued(l)) / static_cast<double>(all) : 0;
}

/// The letter in libbpf-tools.
Option frequency() {
  auto option = shared::frequency("samples per second and CPU (default: 99)", kMostClockHz);
  option.letter = 'f';
  return option;
}

}  // namespace

TOOL(runqlen) {
  return {
      .name = "runqlen",
      .summary = "run queue length as a linear histogram",
      .description =
          "How many tasks wait for a CPU: the length of each CPU's run queue at each tick of a "
          "clock. The running task is not counted. Tasks of all scheduling classes and cgroups "
          "are counted, except tasks that sleep but are still on the queue (delayed dequeue).\n\n"
          "--runqocc shows run queue occupancy instead: the share of samples in which at least "
          "one task waited. Filters apply to the running task: how many tasks wait behind it.",
      .overhead = "a tick per CPU at 99 Hz, which wakes idle CPUs; counted in the kernel",
      .examples = {{"runqlen", "one histogram of all CPUs until Ctrl-C"},
                   {"runqlen -T 1", "each second, with the time"},
                   {"runqlen -C 10 1", "per CPU, for ten seconds"},
                   {"runqlen -O 1", "occupancy, each second"}},
      .questions = {{"How many tasks wait for a CPU?", "runqlen 10 1"},
                    {"Do tasks wait for one CPU while others are idle?", "runqlen -C 10 1"}},
      .differs =
          {{Difference::both,
            "All tasks that wait for the CPU count, in all cgroups and scheduling "
            "classes. Peers count only the running task's cgroup; libbpf-tools with -H "
            "counts the whole queue."},
           {Difference::both,
            "-O prints a table, whose first columns are the CPU, with -C, and RUNQOCC%. "
            "There it prints lines such as \"runqocc: 81.31%\" and \"runqocc, CPU 0 87.88%\"."}},
      .object = skeleton<runqlen_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{flag('C', "cpus", "one report per CPU"),
                          flag('O', "runqocc", "run queue occupancy"), frequency(),
                          shared::sample_period(
                              0, "nanoseconds of a CPU's clock per sample, instead of a frequency",
                              kLeastClockPeriod),
                          shared::timestamp(), shared::max_keys()},
                         shared::task_filters()}),
      .elsewhere = {{'H', "host", "all tasks that wait for the CPU are counted anyway"}},
      .hooks = {{.name = "ticks", .candidates = {{{progs::on_tick}}}, .sampling = at_hz(99)}},
      .report = histogram<runqlen_key>(
                    maps::lengths, "run queue length",
                    {field<&runqlen_key::cpu>("cpu", "cpu", as::number, "CPU").with("cpus")})
                    .timed_with("timestamp")
                    .without_owner("a queue belongs to all tasks in it")
                    .scaled(kLength),
      .other_reports =
          {{"runqocc",
            table<runqlen_key, hist>(
                maps::lengths,
                {derived<Line, cpu>("cpu", "CPU", as::small, "CPU").key_part().only("cpus"),
                 derived<Line, samples>("samples", "SAMPLES", as::number, "ticks").counter(),
                 derived<Line, queued>("queued", "OCCUPIED", as::number,
                                       "ticks at which at least one task waited")
                     .counter(),
                 derived<Line, occupancy>("occupancy_ratio", "RUNQOCC%", as::percent,
                                          "share of the ticks at which a task waited")},
                "occupancy_ratio", 0, "cpus")
                .columns({{"cpu,occupancy_ratio"}})
                .timed_with("timestamp")
                .without_owner("a queue belongs to all tasks in it")
                .scaled(kLength)
                .counted_by(HIST_SLOTS)}},
      .announce = "Sampling run queue length",
      .exclusive = {{"frequency", "period"}},
  };
}
