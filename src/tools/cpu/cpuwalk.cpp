// cpuwalk: how long each CPU runs tasks.
#include "cpu/cpuwalk.h"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/kernel.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "cpuwalk.skel.h"

using namespace coretap;
using Key = cpuwalk_key;
using Sums = cpuwalk_value;
using Opt = rodata_of<cpuwalk_bpf>;
using Line = Row<Key, Sums>;

namespace {

std::vector<int> online_nodes() {
  return parse_cpus(read_file("/sys/devices/system/node/online").value_or("0"));
}

/// The share of the report's time, on this number of CPUs.
Value share(const Line& l, const FieldContext& context, std::size_t cpus) {
  auto all = context.seconds * 1e9 * static_cast<double>(cpus);
  if (all <= 0) return {};
  return std::min(1.0, static_cast<double>(l.value.busy_ns) / all);
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
AggregateReport busy(std::string_view key, std::string_view of, std::vector<int> (*all)()) {
  return table<Key, Sums>(
             maps::cpus,
             {of_key<Line, &Key::number>(key, key, as::small, of),
              of_value<Line, &Sums::busy_ns>("busy_ns", "msecs", as::milliseconds,
                                             "time in which it ran tasks"),
              derived<Line, Share>("busy_ratio", "BUSY%", as::percent, "its share of the time"),
              of_value<Line, &Sums::stints>("stints", "STINTS", as::number,
                                            "how often a task left it, or was on it at the end of "
                                            "an interval")},
             {})
      .as_bars(of, all)
      .runs_at_intervals(progs::on_interval);
}

}  // namespace

TOOL(cpuwalk) {
  return {
      .name = "cpuwalk",
      .summary = "how long each CPU runs tasks, as a histogram",
      .description =
          "One line for each CPU, including idle ones, with the milliseconds during which it ran "
          "tasks. Lines of equal length mean that the load is spread evenly; a single long one "
          "may be a program that can use only one CPU. JSON and CSV also have the share of the "
          "time.\n\n"
          "The times are measured between context switches. Peers sample at ticks of a clock "
          "instead, with the errors of sampling. If a task is running when an interval ends, its "
          "time until then counts. The time of an interrupt counts as time of the interrupted "
          "task; on an idle CPU it does not count. Filters apply to the running task: which CPUs "
          "run it, and for how long.",
      .overhead =
          "one hook per context switch, no output per event; one interrupt of each CPU per "
          "interval",
      .examples = {{"cpuwalk", "one histogram until Ctrl-C"},
                   {"cpuwalk -T 1", "each second, with the time"},
                   {"cpuwalk -p 181 10 1", "on which CPUs process 181 runs"},
                   {"cpuwalk --per-node 1", "by NUMA node"},
                   {"cpuwalk --json 10 1", "with the share of time that each CPU is busy"}},
      .questions = {{"Is the load spread evenly over the CPUs?", "cpuwalk 10 1"},
                    {"On which CPUs does a process run?", "cpuwalk -p 181 10 1"}},
      .object = skeleton<cpuwalk_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined({{flag(0, "per-node", "a line for each NUMA node", setting(&Opt::by_node)),
                          shared::timestamp()},
                         shared::task_filters()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}},
                {"tasks at the end of an interval", {{{progs::on_interval}}}}},
      .report = busy<of_cpu>("cpu", "CPU", online_cpus),
      .other_reports = {{"per-node", busy<of_node>("node", "NUMA node", online_nodes)}},
      .announce = "Tracing how long CPUs run tasks",
  };
}
