// cpudist: continuous time of tasks on or off a CPU, as a histogram.
#include "cpu/cpudist.h"

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "cpudist.skel.h"

using namespace coretap;
using Opt = rodata_of<cpudist_bpf>;
using Key = cpudist_key;

namespace {

constexpr std::string_view kTypes[] = {"any", "voluntary", "preempted"};

}  // namespace

TOOL(cpudist) {
  return {
      .name = "cpudist",
      .summary = "how long tasks stay on a CPU at a time, or off it, as a histogram",
      .description =
          "A log2 histogram of the time from when a task gets a CPU until it leaves it: every "
          "stint, whether the task leaves to wait or is preempted. --switch-type selects one of "
          "these, --switch-types shows both, each in its own histogram. --offcpu shows the time from leaving a CPU until the task runs again.\n\n"
          "If a stint is under way when an interval or tracing ends, its part until then counts, "
          "and the rest counts in the next interval. With either option for switches a stint counts "
          "when it ends, because its type is not known earlier; so do times off the CPU. The time of an "
          "interrupt counts as time of the interrupted task. Idle tasks are excluded unless "
          "--include-idle is given: their stints are the times that a CPU is idle.",
      .overhead =
          "one hook per context switch, no output per event; one interrupt of each CPU per "
          "interval",
      .examples = {{"cpudist", "one histogram of all tasks until Ctrl-C"},
                   {"cpudist -mT 1", "each second, in milliseconds, with the time"},
                   {"cpudist -P 5 1", "per process, for five seconds"},
                   {"cpudist -O -p 181", "how long process 181 is off the CPU at a time"},
                   {"cpudist -S -p 181", "stints that end by a wait, and by preemption"},
                   {"cpudist --switch-type preempted",
                    "how long tasks run until they are preempted"}},
      .questions = {{"How long does a task run before it leaves the CPU?", "cpudist 10 1"},
                    {"How long is a process off the CPU at a time?", "cpudist -O -p 181"},
                    {"Do tasks use up their time slices?", "cpudist --switch-type preempted 10 1"}},
      .differs = {{Difference::both,
                   "A stint that is under way at the end of an interval counts with its part "
                   "until then. Peers count it in the interval in which it ends."},
                  {Difference::libbpf_tools,
                   "All stints on the CPU count, and idle tasks only with -I. There only stints "
                   "that end by preemption count, and so does idle time."}},
      .object = skeleton<cpudist_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{flag('O', "offcpu", "times off the CPU"),
            choice(
                0, "switch-type", "TYPE", "only those where the task left the CPU this way",
                {{"voluntary", SWITCH_VOLUNTARY, "left to wait for something"},
                 {"preempted", SWITCH_PREEMPTED,
                  "still runnable: another task was given the CPU, or it yielded"}},
                [](Config& c, std::uint64_t type) { c.set(setting(&Opt::wanted_switch), type); }),
            flag('S', "switch-types", "one histogram for each way to leave the CPU",
                 setting(&Opt::by_type)),
            flag('I', "include-idle", "include the idle tasks", setting(&Opt::include_idle)),
            flag('P', "pids", "one histogram per process and name", setting(&Opt::by_pid)),
            flag('L', "tids", "one histogram per thread and name", setting(&Opt::by_tid)),
            flag('e', "extension", "print average, total and count below each histogram"),
            shared::milliseconds(), shared::timestamp(), shared::max_keys()},
           shared::task_filters()}),
      .hooks = {{"context switches", {{{progs::on_switch}}}, "!offcpu"},
                {"stints under way", {{{progs::on_interval}}}, "!offcpu"},
                {"context switches off the CPU", {{{progs::off_switch}}}, "offcpu"}},
      .report =
          histogram<Key>(
              maps::stints, "times on or off the CPU",
              {named<&Key::type, kTypes>("switch_type", "switch", as::text,
                                         "how the task left the CPU: voluntary or preempted")
                   .with("switch-types"),
               who<Key>(id::pid.titled("pid").with("pids"), id::tid.titled("tid").with("tids"),
                        id::comm.titled("").with("pids|tids"))},
              "extension")
              .runs_at_intervals(progs::on_interval),
      .announce = "Tracing how long tasks stay on or off the CPU",
      .exclusive = {{"switch-type", "switch-types"}},
  };
}
