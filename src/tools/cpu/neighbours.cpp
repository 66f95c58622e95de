// neighbours: what cgroups lose to others while they wait for a CPU.
#include <algorithm>
#include <string>

#include "coretap/config.hpp"
#include "coretap/irq.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "neighbours.skel.h"
#include "tools/cpu/neighbours/report_neighbours.hpp"

using namespace coretap;

namespace {

Result<void> check(const Config& c) {
  auto& by = c.rows.by;
  auto known = [](std::string_view key) {
    return key == "cgroup" || key == "container" || key == "unit";
  };
  if (by.empty() || (by.size() == 1 && known(by[0]))) return {};
  auto unknown = std::ranges::find_if(by, [&](auto& key) { return !known(key); });
  if (unknown == by.end()) return usage("--by: takes one key", "cgroup, container or unit");
  return usage("--by: there is no key '" + *unknown + "'", "there are: cgroup, container, unit");
}

}  // namespace

TOOL(neighbours) {
  return {
      .name = "neighbours",
      .summary = "what cgroups lose to others while they wait for a CPU",
      .description =
          "For each cgroup (version 2): the time in which its tasks wanted a CPU, and how much of "
          "it they had one, lacked CPU quota (cpu.max of the cgroup, or of one above), or waited "
          "behind others. Each nanosecond of a wait belongs to the owner of the CPU on whose queue "
          "the task was: tasks of the same cgroup, other cgroups by name, real-time tasks, threads "
          "of the kernel, interrupts, or no task, while the CPU was idle.\n\n"
          "With --by container or unit all cgroups of one are a row. Threads of the kernel are "
          "one, too.\n\n"
          "Waits and turns that have not ended count until now. Filters apply to the tasks that wait. Tasks of cgroups "
          "below a cgroup have separate rows.\n\n"
          "Switches that were not seen are repaired from the kernel's accounting; what is not known "
          "then is unknown, and without filters counted as unmatched.",
      .overhead =
          "one hook per context switch, one per wakeup, one per migration, two per interrupt",
      .examples = {{"neighbours", "all cgroups until Ctrl-C"},
                   {"neighbours 1", "each second"},
                   {"neighbours --screen", "the same, as a screen"},
                   {"neighbours --by container 10 1", "containers, for ten seconds"},
                   {"neighbours --cgroup system.slice/nginx.service 10 1", "one service"},
                   {"neighbours --culprits 20 10 1", "with more of those that had the CPU"}},
      .questions = {{"Which container takes the CPU from this one?",
                     "neighbours --by container 10 1"},
                    {"Does a cgroup wait for its own CPU limit, or for its neighbours?",
                     "neighbours 10 1"}},
      .object = skeleton<neighbours_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{shared::by(),
            number('n', "culprits", "N", "at most N others below each row (default: 3; 0: none)",
                   {}),
            shared::on_screen(),
            flag(0, "no-irq", "interrupts are time of the tasks that they interrupt (saves hooks)"),
            flag(0, "no-idle", "do not measure UNUSED"), shared::top(), shared::max_keys()},
           shared::task_filters()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}},
                {"wakeups", {{{progs::on_wakeup, progs::on_wakeup_new}}}},
                {"migrations", {{{progs::on_migrate}}}},
                {"tasks that free memory below a limit",
                 {{{progs::on_memcg_begin, progs::on_memcg_end}}},
                 {},
                 "MEMLIM is not known"},
                {"tasks that free memory of the machine",
                 {{{progs::on_direct_begin, progs::on_direct_end}}},
                 {},
                 "MEMALL is not known"},
                {"all tasks at a report", {{{progs::on_open}}}},
                {"tasks on CPUs at the start",
                 {{{progs::turn_since_start}}},
                 {},
                 "the first turn of each CPU is unknown"},
                {"CPUs that are idle at the start",
                 {{{progs::idle_since_start}, {has_enumerator("bpf_func_id", "BPF_FUNC_loop")}}},
                 "!no-idle",
                 "UNUSED is not known"},
                {"softirqs",
                 {{{progs::on_softirq_entry, progs::on_softirq_exit}}},
                 "!no-irq",
                 "softirqs are time of the tasks that they interrupt"},
                {"interrupt handlers",
                 {{{progs::on_irq_exit, progs::on_irq_entry}}},
                 "!no-irq",
                 "interrupts are time of the tasks that they interrupt"},
                {"the processor's own interrupts",
                 // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a macro makes the names
                 {{{IRQ_VECTORS(IRQ_VECTOR_PROGRAMS)}}},
                 "!no-irq",
                 "they are time of the tasks that they interrupt"}},
      .report = NeighboursReport{},
      .announce = "Tracing waits for a CPU",
      .check = check,
  };
}
