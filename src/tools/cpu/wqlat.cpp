// wqlat: time that work items wait in their work queues, or run, as a histogram.
#include "cpu/wqlat.h"

#include <cstring>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/symbols.hpp"
#include "coretap/tool.hpp"
#include "wqlat.skel.h"

using namespace coretap;
using Opt = rodata_of<wqlat_bpf>;
using Key = wqlat_key;

namespace {

Result<void> take_name(Config& c, std::string_view text) {
  if (text.empty() || text.size() >= WORKQUEUE_NAME_LEN)
    return usage(fmt::format("--wqname: '{}' cannot be the name of a work queue", text),
                 fmt::format("it has 1 to {} characters", WORKQUEUE_NAME_LEN - 1));
  auto all = setting(&Opt::wanted_name);
  char name[WORKQUEUE_NAME_LEN] = {};
  text.copy(name, sizeof name - 1);
  for (std::size_t at = 0; at < sizeof name; at += 8) {
    std::uint64_t word = 0;
    memcpy(&word, name + at, sizeof word);
    c.set({all.offset + at, sizeof word}, word);
  }
  c.set(setting(&Opt::one_workqueue), 1);
  return {};
}

Result<void> look_up(Config& c) {
  if (auto address = kernel_address("wq_barrier_func"))
    c.set(setting(&Opt::barrier_function), *address);
  return {};
}

}  // namespace

TOOL(wqlat) {
  return {
      .name = "wqlat",
      .summary = "how long work waits in the kernel's work queues, as a histogram",
      .description =
          "The kernel defers work to kworker threads: each item is queued, and runs when a "
          "kworker takes it. The histogram shows how long items wait in the queue; with "
          "--execution, how long their functions run, which may sleep.\n\n"
          "An item whose timer has not expired yet (delayed work) is not queued and does not "
          "wait. Items that are cancelled before they run, or were queued before tracing "
          "started, do not count. Filters by task apply to the task that queues the item; if an "
          "interrupt queues it, to the interrupted task.",
      .overhead = "two hooks per work item; three with --execution",
      .examples = {{"wqlat", "one histogram until Ctrl-C"},
                   {"wqlat -T 1", "each second, with the time"},
                   {"wqlat -W 10 1", "one per work queue, for ten seconds"},
                   {"wqlat -w writeback -N", "of one work queue, in nanoseconds"},
                   {"wqlat -eF 10 1", "how long each function runs"}},
      .questions = {{"How long does deferred work of the kernel wait?", "wqlat 10 1"},
                    {"Which work queue is slow?", "wqlat -W 10 1"},
                    {"Which work function keeps kworkers busy?", "wqlat -eF 10 1"}},
      .differs = {{Difference::bcc,
                   "Entries of cancelled work are replaced. There they stay until the table is "
                   "full. Linux 5.10 is supported, and -e shows how long the work runs."}},
      .object = skeleton<wqlat_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{flag('W', "workqueues", "one histogram per work queue", setting(&Opt::by_workqueue)),
            value('w', "wqname", "NAME", "only the work queue with this name", take_name),
            flag('F', "by-function", "one histogram per function of work items",
                 setting(&Opt::by_function))
                .also("functions"),
            flag('e', "execution", "how long items run, not how long they wait",
                 setting(&Opt::executions)),
            shared::nanoseconds(), shared::timestamp(), shared::max_keys()},
           shared::task_filters()}),
      .hooks = {{"end of execution", {{{progs::on_end}}}, "execution"},
                {"start of execution", {{{progs::on_start}}}},
                {"queueing", {{{progs::on_queue}}}}},
      .maps = {{maps::waiting, MapSize::per_cpu}, {maps::running, MapSize::per_cpu, "execution"}},
      .report = histogram<Key>(
                    maps::times, "times of work items",
                    {field<&Key::workqueue>("wqname", "wqname", as::text, "name of the work queue")
                         .capped()
                         .with("workqueues"),
                     field<&Key::function>("function", "function", as::symbol, "what the items run")
                         .with("by-function")})
                    .without_owner("work items run in threads of the kernel"),
      .announce = "Tracing work queue request latency time",
      .look_up = look_up,
  };
}
