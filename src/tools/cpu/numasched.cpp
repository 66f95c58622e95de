// numasched: tasks that move to a CPU of another NUMA node.
#include "cpu/numasched.h"

#include <fmt/format.h>

#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "numasched.skel.h"

using namespace coretap;
using Event = numasched_event;

namespace {

std::string nodes(const Event& e) { return fmt::format("{:<8} -> {:<8}", e.from_node, e.to_node); }
bool balancing(const Event& e) { return e.balancing; }

}  // namespace

TOOL(numasched) {
  return {
      .name = "numasched",
      .summary = "tasks that move to a CPU of another NUMA node",
      .description =
          "One line each time the scheduler moves a task to a CPU of another NUMA node: from "
          "then on its memory is remote, until it moves back or its pages follow (see numamove). "
          "A move there and back is two lines. The first CPU of a new task is not a move.\n\n"
          "--extended adds the CPUs and NUMA: yes if NUMA balancing moved the task closer to its "
          "memory, no if load balancing, a wakeup or a change of its CPU affinity did. A machine "
          "with one node has no such moves.",
      .overhead = "one hook per migration of a task between CPUs; those within a node stop there",
      .examples = {{"numasched", "all tasks"},
                   {"numasched -p 181", "the threads of process 181"},
                   {"numasched -e -c postgres", "tasks of this name, with CPUs and the reason"}},
      .questions = {{"Do tasks move between NUMA nodes, away from their memory?", "numasched"},
                    {"Does NUMA balancing move them?", "numasched -e"}},
      .differs = {{Difference::bcc,
                   "A move is seen when the task gets its CPU. There the nodes are compared each "
                   "time the task leaves a CPU: moves there and back are lost, and reused ids "
                   "look like moves."}},
      .object = skeleton<numasched_bpf>(),
      .options = {shared::pid(), shared::tid(), shared::comm('c'), shared::uid(), shared::cgroup(0),
                  shared::extended(), shared::duration('d')},
      .hooks = {{"migrations of tasks", {{{progs::on_migrate}}}},
                {"decisions of NUMA balancing",
                 {{{progs::on_move, progs::on_swap}}},
                 {},
                 "moves by NUMA balancing are not distinguished: this kernel is built without it"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid.columns(-8), id::tid.with({}).columns(-8)),
               derived<Event, nodes>("nodes", "SRC_NID     DST_NID", as::wide(as::text, -20),
                                     "the nodes")
                   .in_text(),
               with("json", {field<&Event::from_node>("from_node", "SRC_NID", as::small,
                                                      "node that it leaves"),
                             field<&Event::to_node>("to_node", "DST_NID", as::small,
                                                    "node that it moves to")}),
               with("extended",
                    {field<&Event::from_cpu>("from_cpu", "SRC_CPU", as::wide(as::number, -7),
                                             "CPU that it leaves"),
                     field<&Event::to_cpu>("to_cpu", "DST_CPU", as::wide(as::number, -7),
                                           "CPU that it moves to"),
                     derived<Event, balancing>("numa_balancing", "NUMA", as::wide(as::text, -5),
                                               "NUMA balancing moved it")}),
               who<&Event::who>(id::comm, id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, ""}})
              .high_rate(),
      .announce = "Tracing tasks that move to another NUMA node",
  };
}
