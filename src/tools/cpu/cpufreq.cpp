// cpufreq: clock frequency of the CPU that tasks run on, sampled.
#include "cpu/cpufreq.h"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/kernel.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "cpufreq.skel.h"

using namespace coretap;
using Opt = rodata_of<cpufreq_bpf>;
using Key = cpufreq_key;

namespace {

constexpr std::uint64_t kStepMhz = 200;
constexpr HistogramScale kClock{{"mhz", "MHz"}, kStepMhz, true, "mhz"};

std::string comm(const Key& key) { return key.syswide ? "syswide" : key.comm; }
bool syswide(const Key& key) { return key.syswide; }

/// The kernel reports only changes: this reads the initial values.
Result<void> read_clocks(Config& c) {
  auto clocks = setting(&Opt::khz_at_start);
  bool any = false;
  for (int cpu : online_cpus()) {
    auto text =
        read_file(fmt::format("/sys/devices/system/cpu/cpu{}/cpufreq/scaling_cur_freq", cpu));
    auto khz = parse_unsigned(text ? text->substr(0, text->find('\n')) : "");
    if (!khz || !*khz || cpu >= CPUFREQ_CPUS) continue;
    c.set({clocks.offset + 4 * static_cast<std::size_t>(cpu), 4}, *khz);
    any = true;
  }
  if (any) return {};
  return Error{"the kernel does not know the clocks of this machine's CPUs",
               "there is no /sys/devices/system/cpu/cpu*/cpufreq: no driver for it, as in most "
               "virtual machines",
               "if there are hardware counters, use perf stat -e cycles,task-clock", kUnsupported};
}

Option frequency() {
  auto option = shared::frequency("samples per second and CPU (default: 99)", kMostClockHz);
  option.letter = 'f';
  return option;
}

AggregateReport clocks() {
  auto report =
      histogram<Key>(
          maps::frequencies, "CPU clocks",
          {derived<Key, comm>("comm", "", as::comm, "command name of the task; syswide: all tasks"),
           derived<Key, syswide>("syswide", "", as::number, "the histogram covers all tasks")
               .key_part()
               .with("json")})
          .without_owner("its histograms are by command name already")
          .scaled(kClock);
  report.sort = "syswide";
  return report;
}

}  // namespace

TOOL(cpufreq) {
  return {
      .name = "cpufreq",
      .summary = "CPU frequencies of tasks, as histograms",
      .description =
          "Samples each CPU at each tick of a clock: which task is running, and at which "
          "frequency. There is one histogram for all tasks (syswide) and one for each command "
          "name. An idle CPU is not counted, whatever its frequency.\n\n"
          "The frequency is the last one that the kernel's cpufreq driver set; with "
          "intel_pstate, where it samples, it is the measured one. A processor that chooses its "
          "own clock may run at another frequency. CPUs that come online later count from their "
          "first frequency change; until then their samples count as unmatched.",
      .overhead = "a tick per CPU at 99 Hz, which wakes idle CPUs; a hook per frequency change",
      .examples = {{"cpufreq", "until Ctrl-C"},
                   {"cpufreq -d 10", "for ten seconds"},
                   {"cpufreq -f 999 -p 181", "of one process, 999 samples a second"}},
      .questions = {{"At which frequency do CPUs run my program?", "cpufreq -d 10"},
                    {"Are CPUs clocked down under load?", "cpufreq -d 10"}},
      .differs = {{Difference::libbpf_tools,
                   "CPUs beyond the 128th are sampled, too, and samples that cannot be counted "
                   "are in the ledger."}},
      .object = skeleton<cpufreq_bpf>(),
      .options =
          joined({{shared::duration('d'), frequency(), shared::timestamp(), shared::max_keys()},
                  shared::task_filters()}),
      .hooks = {{.name = "ticks", .candidates = {{{progs::on_tick}}}, .sampling = at_hz(99)},
                {"changes of clocks", {{{progs::on_change}}}},
                {.name = "samples of intel_pstate",
                 .candidates = {{{progs::on_pstate}}},
                 .optional = "measured clocks of intel_pstate"}},
      .report = clocks(),
      .announce = "Sampling CPU clocks",
      .look_up = read_clocks,
  };
}
