// loads: the load averages, and the tasks that contribute to them.
#include "coretap/identity.hpp"
#include "coretap/load_averages.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "cpu/iterate.h"
#include "loads.skel.h"

using namespace coretap;
using Task = task_row;
using Kind = Group<task_kind>;  // starts with a task_kind, as a Task does

namespace {

Result<LoadAverages> load(const std::vector<const Task*>& tasks) {
  auto now = load_averages();
  if (now)
    for (auto* t : tasks) (t->kind.state[0] == 'R' ? now->runnable : now->uninterruptible)++;
  return now;
}

std::vector<Field> load_average_fields() {
  std::vector<Field> all = {
      field<&LoadAverages::one>("load_1m", "", as::number, "load average of the last minute"),
      field<&LoadAverages::five>("load_5m", "", as::number, "load average of five minutes"),
      field<&LoadAverages::fifteen>("load_15m", "", as::number, "load average of fifteen minutes"),
      field<&LoadAverages::runnable>(
          "runnable_tasks", "", as::number,
          "runnable tasks that pass the filters, including running ones"),
      field<&LoadAverages::uninterruptible>("uninterruptible_tasks", "", as::number,
                                            "uninterruptible tasks that pass the filters"),
      field<&LoadAverages::running>("system_running", "", as::number,
                                    "runnable tasks of the machine, as in /proc/loadavg"),
      field<&LoadAverages::total>("system_tasks", "", as::number,
                                  "tasks of the machine, as in /proc/loadavg"),
  };
  for (auto& f : all) f = f.gauge();
  return all;
}

template <class Row, auto line = load_line>
SnapshotReport rows(FieldList fields) {
  return snapshot<Row>("the kernel, in /proc/loadavg and its list of tasks,", std::move(fields))
      .template read_by<Task>(progs::on_task)
      .template headed<Task, LoadAverages, load, line>("averages", load_average_fields());
}

Field state() {
  return field<&task_kind::state>("state", "STATE", as::wide(as::text, -5),
                                  "R runnable or running, D uninterruptible")
      .bounded();
}
std::uint64_t count(const Kind& k) { return k.value; }
bool running(const Task& t) { return t.running; }
Value in_state(const Task& t) { return unless_0(t.in_state_ns); }

}  // namespace

TOOL(loads) {
  return {
      .name = "loads",
      .summary = "load averages, and the tasks that make them",
      .description =
          "The load averages of 1, 5 and 15 minutes, and what they count at this moment: tasks "
          "that run or wait for a CPU (R), and tasks in uninterruptible sleep (D), mostly "
          "waiting for disks and locks. As in the kernel, idle waits (TASK_NOLOAD) and frozen "
          "tasks do not count. Tasks with the same state, command name and kernel stack are one "
          "row. A running task has no stack. loads itself is excluded.\n\n"
          "Since Linux 6.12 the kernel also counts tasks that have gone to sleep but stay on a "
          "run queue for a while (delayed dequeue); such tasks are not shown.",
      .overhead = "one pass over all tasks per report; nothing between reports",
      .examples = {{"loads", "each second"},
                   {"loads -s 5 12", "a line every five seconds, for a minute"},
                   {"loads -e --top 20 1 1", "the 20 tasks longest in their state"},
                   {"loads -c /sys/fs/cgroup/system.slice", "tasks of some services"}},
      .questions = {{"Why is the load average high?", "loads"},
                    {"Which tasks are in state D, where and for how long?", "loads -e 1 1"}},
      .object = skeleton<loads_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({{flag('e', "each", "a row per task instead of groups"),
                          flag('s', "summary", "only a line with the averages and two counts"),
                          shared::top(), shared::stack_depth()},
                         shared::task_filters()}),
      .hooks = {{.name = "tasks",
                 .candidates = {{{progs::on_task}}},
                 .instead = "ps -eLo state,pid,lwp,comm,wchan shows tasks, uptime the averages"}},
      .report = rows<Kind>({state(), who<task_kind>(id::comm),
                            derived<Kind, count>("count", "COUNT", as::pages, "tasks").gauge(),
                            kernel_stack_field<&task_kind::stack>()})
                    .grouped<task_kind>()
                    .sorted_by("count"),
      .other_reports =
          {{"each",
            rows<Task>(
                {state(), who<&Task::who>(id::pid, id::tid.with(""), id::comm),
                 field<&Task::cpu>("cpu", "CPU", as::small, "CPU that it runs on or ran on last"),
                 derived<Task, running>("running", "RUNS", as::small, "it runs at this moment"),
                 derived<Task, in_state>(
                     "in_state_ns", "FOR(ms)", as::milliseconds,
                     "time in this state, accurate to a tick, if the kernel records it"),
                 who<&Task::who>(id::uid.with("json"), id::cgroup),
                 kernel_stack_field<&task_kind::stack>()})
                .sorted_by("in_state_ns")},
           {"summary", rows<Task, load_summary>({})}},
      .announce = "Reading load averages",
      .exclusive = {{"each", "summary"}, {"summary", "top"}},
  };
}
