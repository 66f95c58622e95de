// perfcount: perf events, counted by the kernel without a program.
#include <cmath>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/tool.hpp"
#include "tools/cpu/perfcount/counters.hpp"

using namespace coretap;
using perfcount::Elapsed;
using perfcount::Line;

namespace {

Value cpu(const Line& l) { return value_if(l.cpu >= 0, l.cpu); }
Value count(const Line& l) { return value_if(l.count.has_value(), l.count.value_or(0)); }
/// False: the count itself is what the reader wants.
bool is_scaled(const Line& l) { return !l.unit.empty() || l.scale != 1; }
Value scaled(const Line& l) {
  return value_if(l.count && is_scaled(l), static_cast<double>(l.count.value_or(0)) * l.scale);
}
Value scaled_unit(const Line& l) { return value_if(!l.unit.empty(), l.unit); }
std::string count_text(const Line& l) {
  if (!l.count) return "not counted";
  if (is_scaled(l))
    return fmt::format("{:.2f} {}", static_cast<double>(*l.count) * l.scale, l.unit);
  return l.is_clock ? fmt::format("{:.2f} ms", static_cast<double>(*l.count) / 1e6)
                    : std::to_string(*l.count);
}
Value per_second(const Line& l) {
  return value_if(l.count && !l.is_clock && !l.snapshot && l.seconds > 0,
                  static_cast<double>(l.count.value_or(0)) / l.seconds);
}
std::string per_second_text(const Line& l) {
  auto rate = per_second(l);
  if (!std::holds_alternative<double>(rate)) return "";
  return fmt::format("{:.{}f}", std::get<double>(rate) * l.scale, is_scaled(l) ? 2 : 1);
}
Value ratio(const Line& l) { return value_if(l.ratio.has_value(), l.ratio.value_or(0)); }
Value ratio_unit(const Line& l) { return value_if(l.ratio.has_value(), std::string(l.ratio_unit)); }
std::string ratio_text(const Line& l) {
  if (!l.ratio) return "";
  return l.ratio_unit.starts_with("of ") ? fmt::format("{:.2f}% {}", *l.ratio * 100, l.ratio_unit)
                                         : fmt::format("{:.3f} {}", *l.ratio, l.ratio_unit);
}
Value counted(const Line& l) { return value_if(l.counted > 0, std::min(l.counted, 1.0)); }

Value user(const Elapsed& e) { return value_if(e.user_s.has_value(), e.user_s.value_or(0)); }
Value kernel(const Elapsed& e) { return value_if(e.system_s.has_value(), e.system_s.value_or(0)); }
std::string elapsed_text(const Elapsed& e) {
  auto text = fmt::format("{:.3f} s", e.seconds);
  if (e.user_s && e.system_s)
    text += fmt::format(" (CPU time: {:.2f} s user, {:.2f} s system)", *e.user_s, *e.system_s);
  return text;
}

Result<void> check(const Config& c) {
  const bool tasks = !c.tasks.pids.empty() || !c.tasks.tids.empty() || !c.command.empty();
  if (!c.tasks.not_pids.empty())
    return usage("--not-pid: a counter cannot exclude processes",
                 "name what is counted: --pid, --tid, --cgroup or a command");
  if (tasks && !c.tasks.cgroup.empty())
    return usage("processes and a cgroup cannot be counted together", "give one of them");
  if (tasks && c.given("each-cpu"))
    return usage("--each-cpu: counters of tasks are not those of CPUs",
                 "leave out the tasks, or give a cgroup: --cgroup");
  return {};
}

}  // namespace

TOOL(perfcount) {
  return {
      .name = "perfcount",
      .summary = "counts of perf events, for a command, process, cgroup or CPU",
      .description =
          "What `perf stat` counts: context switches, migrations, page faults, CPU time, and, where "
          "the machine has counters for them, cycles, instructions, branches and caches; also any "
          "tracepoint. The kernel counts; nothing is sampled.\n\n"
          "With a command, the counters begin when it is executed and include its descendants; "
          "with --pid, the threads that the processes start later. (Before Linux 5.13 also the "
          "processes that they start.) Otherwise all CPUs are counted, each task included.\n\n"
          "If there are more hardware events than counters, the kernel counts them in turns. "
          "RUN% is the part of the time in which an event was counted, and COUNT is scaled to all "
          "of it, as by perf. Events in braces are counted at the same time: their ratio is "
          "exact. :u after an event counts in user mode only, :k in the kernel only.\n\n"
          "Events of PMUs are named as `perf list` does: msr/tsc/, cpu/event=0x3c,umask=1/u, "
          "power/energy-pkg/, and by their name alone if one PMU has it. If the kernel says their "
          "unit, counts are shown in it. Many PMUs outside the cores count on one CPU for all of a "
          "package, and never for tasks or cgroups.\n\n"
          "RATE/s is per second of the report; perf's is per second of task-clock.",
      .overhead =
          "what the kernel needs to count; a switch of tasks costs more with counters of "
          "tasks or cgroups",
      .examples = {{"perfcount -- make", "a command and its descendants, until it ends"},
                   {"perfcount -p 1234 1", "a process, each second"},
                   {"perfcount -A 1 5", "each CPU, for five seconds"},
                   {"perfcount -c system.slice/nginx.service 10", "a service, each ten seconds"},
                   {"perfcount -e '{cycles,instructions},page-faults' -- make", "chosen events"},
                   {"perfcount -e sched:sched_switch,block:block_rq_issue 1", "tracepoints"},
                   {"perfcount -e power/energy-pkg/ 1", "energy of the package, in joules"}},
      .questions = {{"How many instructions per cycle does a program achieve?",
                     "perfcount -e '{cycles,instructions}' -- COMMAND"},
                    {"How often is a program preempted, migrated or stopped by page faults?",
                     "perfcount -p 1234 1"},
                    {"How much user and system time does a command take?", "perfcount -- COMMAND"},
                    {"How much energy do the CPUs use?", "perfcount -e power/energy-pkg/ 1"}},
      .positionals = shared::interval_count(),
      .options = {shared::of_perf_events(
                      value(
                          'e', "perf-events", "EVENT,...",
                          "these events of perf(1) and tracepoints: cycles, page-faults, "
                          "LLC-load-misses:u, r01c2, sched:sched_switch, msr/tsc/; {a,b}: a group",
                          [](Config& c, std::string_view text) {
                            return perfcount::take_events(c.own<perfcount::Settings>(), text);
                          })
                          .also("event")
                          .adding_up()),
                  shared::pid(), shared::tid(), shared::cgroup(), shared::cpu('C'),
                  flag('A', "each-cpu", "a row for each CPU").also("no-aggr")},
      .report =
          snapshot<Line>(
              "the kernel",
              {derived<Line, cpu>("cpu", "CPU", as::wide(as::number, -4), "CPU").only("each-cpu"),
               field<&Line::event>("event", "EVENT", as::wide(as::text, -24), "name of the event"),
               derived<Line, count>("count", "", as::number,
                                    "how often it happened; of clocks: nanoseconds; null: the "
                                    "hardware had no counter free")
                   .or_null()
                   .with("json"),
               derived<Line, count_text>("count", "COUNT", as::wide(as::text, 16),
                                         "the same in text")
                   .in_text(),
               derived<Line, scaled>("scaled", "", as::number,
                                     "the count in the unit of a PMU's event")
                   .or_null()
                   .with("json"),
               derived<Line, scaled_unit>("unit", "", as::text, "such as Joules")
                   .or_null()
                   .with("json"),
               derived<Line, per_second>("count_per_second", "", as::number,
                                         "events per second; null: a clock, or a PMU's value that "
                                         "is not a sum")
                   .or_null()
                   .with("json"),
               derived<Line, per_second_text>("count_per_second", "RATE/s", as::wide(as::text, 14),
                                              "the same in text")
                   .in_text(),
               derived<Line, counted>("counted_ratio", "RUN%", as::wide(as::percent, 7),
                                      "part of the time in which it was counted, 0 to 1")
                   .or_null(),
               derived<Line, ratio>("ratio", "", as::number,
                                    "to another event of the report, or of a clock to the time")
                   .or_null()
                   .with("json"),
               derived<Line, ratio_unit>("ratio_unit", "", as::text, "unit of the ratio")
                   .or_null()
                   .with("json"),
               derived<Line, ratio_text>("ratio", "", as::rest, "the same in text").in_text()})
              .counted_by<Elapsed, elapsed_text>(
                  perfcount::make_counting, "elapsed",
                  {field<&Elapsed::seconds>("elapsed_s", "", as::number, "time of the report"),
                   derived<Elapsed, user>("user_s", "", as::number,
                                          "CPU time in user mode, as the kernel accounts it")
                       .or_null(),
                   derived<Elapsed, kernel>("system_s", "", as::number,
                                            "CPU time in the kernel, as the kernel accounts it")
                       .or_null()})
              .with_perf_events(),
      .announce = "Counting perf events",
      .exclusive = {{"pid", "tid"}},
      .check = check,
  };
}
