// cpuwalk: how evenly tasks run on the CPUs, sampled.
#include "cpu/cpuwalk.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/files.hpp"
#include "cli/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "cpuwalk.skel.h"
#include "kernel/kernel.hpp"

using namespace coretap;
using Key = cpuwalk_key;
using Ticks = cpuwalk_value;
using Opt = rodata_of<cpuwalk_bpf>;
using Line = Row<Key, Ticks>;

namespace {

constexpr std::uint64_t kHz = 99;

std::vector<int> online_nodes() {
  return parse_cpus(read_file("/sys/devices/system/node/online").value_or("0"));
}

/// Ticks of one CPU in the time of the report. Some machines leave them out where a CPU is idle.
double due(const FieldContext& context) {
  if (!context.config) return 0;
  auto& asked = context.config->sampling;
  auto hz = asked.period ? 1e9 / static_cast<double>(asked.period)
                         : static_cast<double>(asked.hz ? asked.hz : kHz);
  return context.seconds * hz;
}

Value share(const Line& l, const FieldContext& context, std::size_t cpus) {
  auto ticks = due(context) * static_cast<double>(cpus);
  if (ticks <= 0) return {};
  return std::min(1.0, static_cast<double>(l.value.busy) / ticks);
}
Value of_cpu(const Line& l, const FieldContext& context) { return share(l, context, 1); }
Value of_node(const Line& l, const FieldContext& context) {
  auto list = fmt::format("/sys/devices/system/node/node{}/cpulist", l.key.number);
  auto online = online_cpus();
  auto cpus = parse_cpus(read_file(list).value_or(""));
  std::erase_if(cpus, [&](int cpu) { return !std::count(online.begin(), online.end(), cpu); });
  return share(l, context, cpus.empty() ? online.size() : cpus.size());
}

template <auto Share>
AggregateReport ticks(std::string_view key, std::string_view of, std::vector<int> (*all)()) {
  return table<Key, Ticks>("ticks",
                           {of_key<Line, &Key::number>(key, key, as::small, of),
                            of_value<Line, &Ticks::busy>("busy", "BUSY", as::number,
                                                         "ticks at which it ran a task"),
                            derived<Line, Share>("busy_ratio", "BUSY%", as::percent,
                                                 "their share of the ticks of that time")},
                           {})
      .as_bars(of, all);
}

}  // namespace

TOOL(cpuwalk) {
  return {
      .name = "cpuwalk",
      .summary = "which CPUs run tasks, at each tick of a clock, as a histogram",
      .description =
          "At each tick of a clock, on each CPU: does it run a task? The histogram has a line for "
          "each CPU, also for those that were idle, with the number of ticks at which it was busy. "
          "Lines of the same length are load that is spread evenly; a single long one may be a "
          "program that can use one CPU only.\n\n"
          "Filters are about the running task: which CPUs run it, and how often. A CPU that is in "
          "an interrupt counts by the task that was interrupted.",
      .overhead = "a tick per CPU at 99 Hz, which wakes idle CPUs; counted in the kernel",
      .examples = {{"cpuwalk", "one histogram until Ctrl-C"},
                   {"cpuwalk -T 1", "each second, with the time"},
                   {"cpuwalk -F 999 -p 181 10 1", "on which CPUs process 181 runs"},
                   {"cpuwalk --per-node 1", "by NUMA node"},
                   {"cpuwalk --json 10 1", "with the share of the time that each is busy"}},
      .questions = {{"Is the load spread evenly over the CPUs?", "cpuwalk 10 1"},
                    {"On which CPUs does a process run?", "cpuwalk -p 181 10 1"}},
      .object = skeleton<cpuwalk_bpf>(),
      .positionals = shared::interval_count(),
      .options =
          joined({{flag(0, "per-node", "a line for each NUMA node", setting(&Opt::by_node)),
                   shared::frequency("samples per second and CPU (default: 99)", kMostClockHz),
                   shared::sample_period(
                       0, "nanoseconds of a CPU's clock per sample, instead of a frequency",
                       kLeastClockPeriod),
                   shared::timestamp()},
                  shared::task_filters()}),
      .hooks = {{.name = "ticks", .candidates = {{{"on_tick"}}}, .sampling = at_hz(kHz)}},
      .report = ticks<of_cpu>("cpu", "CPU", online_cpus),
      .other_reports = {{"per-node", ticks<of_node>("node", "NUMA node", online_nodes)}},
      .announce = "Sampling which CPUs run tasks",
      .exclusive = {{"frequency", "period"}},
  };
}
