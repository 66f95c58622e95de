// softirqslower: softirqs that start late, or run long.
#include "cpu/softirqslower.h"

#include "coretap/config.hpp"
#include "coretap/irq.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "softirqslower.skel.h"

using namespace coretap;
using Event = softirqslower_event;
using Opt = rodata_of<softirqslower_bpf>;

namespace {

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::string_view kStages[] = {"", "irq(hard) to softirq", "softirq runtime"};

}  // namespace

TOOL(softirqslower) {
  return {
      .name = "softirqslower",
      .summary = "softirqs that wait long until they run, or run long",
      .description =
          "One line per softirq that takes at least MIN_US microseconds in one of two stages: "
          "\"irq(hard) to softirq\", from being raised until it runs, and \"softirq runtime\". "
          "The time is elapsed time, including nested hardware interrupts. If a softirq is "
          "raised again before it runs, its wait starts at the first raise; if that happens in "
          "the instant before it starts, the wait of the second run is not known, and counts as "
          "unmatched.\n\n"
          "COMM is the interrupted task, or ksoftirqd for softirqs that ran in that thread. JSON "
          "and CSV also have the task that was running when the softirq was raised, even if an "
          "interrupt raised it. Filters by task apply to the interrupted task.",
      .overhead = "three hooks per softirq; only slow ones are sent to user space",
      .examples = {{"softirqslower", "what took 10 ms or more"},
                   {"softirqslower 1000", "what took 1 ms or more"},
                   {"softirqslower -c 1 500", "on CPU 1, 500 us or more"},
                   {"softirqslower -K 1000", "with the kernel stack that was interrupted"}},
      .questions = {{"Which softirq kept a task from running?", "softirqslower 1000"},
                    {"Do softirqs wait for ksoftirqd to get a CPU?", "softirqslower"}},
      .differs = {{Difference::bcc,
                   "JSON and CSV also have the task that ran when the softirq was raised. -K "
                   "adds the stack that was interrupted, --stage shows one of the two stages."}},
      .object = skeleton<softirqslower_bpf>(),
      .positionals = {shared::threshold("MIN_US", kMicrosecond,
                                        "only what takes at least MIN_US microseconds; 0: all",
                                        setting(&Opt::min_ns), "10000")},
      .options = joined({{choice(0, "stage", "STAGE", "only this stage, wait or run",
                                 {{"wait", STAGE_WAIT, "from being raised until it runs"},
                                  {"run", STAGE_RUN, "while it runs"}},
                                 [](Config& c, std::uint64_t stage) {
                                   c.set(setting(&Opt::wanted_stage), stage);
                                 }),
                          shared::kernel_stack(), shared::cpu('c'), shared::pid(), shared::tid(),
                          shared::uid(), shared::comm(), shared::cgroup(0)},
                         belonging_to("kernel-stack", {shared::stack_depth()})}),
      .hooks = {{"end of softirqs", {{{progs::on_exit}}}},
                {"start of softirqs", {{{progs::on_entry}}}},
                {"softirqs that are raised", {{{progs::on_raise}}}}},
      .report =
          events<Event>({named<&Event::stage, kStages>("stage", "STAGE", as::wide(as::text, -20),
                                                       "the stage that was slow"),
                         named<&Event::vector, kSoftirqNames>(
                             "name", "SOFTIRQ", as::wide(as::text, -9), "name of the softirq"),
                         field<&Event::latency_ns>("latency_ns", "LAT(us)", as::whole_microseconds,
                                                   "its time"),
                         field<&Event::cpu>("cpu", "CPU", as::wide(as::number, 4), "CPU"),
                         who<&Event::who>(id::pid.with("json"), id::tid.with("json"),
                                          id::uid.with("json"), id::cgroup, id::comm),
                         field<&Event::raised_by>("raised_by_pid", "RAISER", as::pid,
                                                  "process that ran when it was raised")
                             .with("json"),
                         field<&Event::raised_comm>("raised_by_comm", "RAISED BY", as::comm,
                                                    "its name; empty: not seen")
                             .with("json")},
                        "kernel-stack")
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing slow softirqs",
  };
}
