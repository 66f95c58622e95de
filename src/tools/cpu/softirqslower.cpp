// softirqslower: softirqs that wait long until they run, or run long.
#include "cpu/softirqslower.h"

#include <fmt/format.h>

#include "cli/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "softirqslower.skel.h"

using namespace coretap;
using Event = softirqslower_event;
using Opt = rodata_of<softirqslower_bpf>;

namespace {

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::string_view kNames[] = {SOFTIRQS(IRQ_NAME)};
constexpr std::string_view kStages[] = {"", "irq(hard) to softirq", "softirq runtime"};

Result<void> take_stage(Config& c, std::string_view text) {
  if (text != "wait" && text != "run")
    return Error{fmt::format("--stage: '{}' is no stage", text), {}, "wait or run", kUsage};
  c.set(setting(&Opt::wanted_stage), text == "wait" ? STAGE_WAIT : STAGE_RUN);
  return {};
}

std::vector<Completion> stages() {
  return {{"wait", "from being raised until it runs"}, {"run", "while it runs"}};
}

}  // namespace

TOOL(softirqslower) {
  return {
      .name = "softirqslower",
      .summary = "softirqs that wait long until they run, or run long",
      .description =
          "One line per softirq that takes at least so long, in one of two stages: \"irq(hard) to "
          "softirq\", from being raised until it runs, and \"softirq runtime\". The time is that of "
          "the clock, including nested hardware interrupts. A softirq that is raised again "
          "before it runs waits since the first time; if that happens in the instant before it starts, "
          "the wait of the second run is not known, and counts as unmatched.\n\n"
          "COMM is the task that was interrupted; of what ran in a thread of its own it is "
          "ksoftirqd. JSON and CSV also have the task that ran when the softirq was raised: an "
          "interrupt that raises it has no task of its own. Filters by task are about the task "
          "that was interrupted.",
      .overhead = "three hooks per softirq; only slow ones are handed over",
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
      .options = joined(
          {{one_of(value(0, "stage", "STAGE", "only this one, wait or run", take_stage), stages),
            shared::kernel_stack(), shared::cpu('c'), shared::pid(), shared::tid(), shared::uid(),
            shared::comm(), shared::cgroup(0)},
           belonging_to("kernel-stack", {shared::stack_depth()})}),
      .hooks = {{"end of softirqs", {{{"on_exit"}}}},
                {"start of softirqs", {{{"on_entry"}}}},
                {"softirqs that are raised", {{{"on_raise"}}}}},
      .report =
          events<Event>({named<&Event::stage, kStages>("stage", "STAGE", as::wide(as::text, -20),
                                                       "what took so long"),
                         named<&Event::vector, kNames>("name", "SOFTIRQ", as::wide(as::text, -9),
                                                       "name of the softirq"),
                         field<&Event::latency_ns>("latency_ns", "LAT(us)", as::whole_microseconds,
                                                   "its time"),
                         field<&Event::cpu>("cpu", "CPU", as::wide(as::number, 4), "CPU"),
                         who<&Event::who>(id::pid.with("json"), id::tid.with("json"),
                                          id::uid.with("json"), id::cgroup, id::comm),
                         field<&Event::raised_by>("raised_by_pid", "RAISER", as::pid,
                                                  "process that ran when it was raised")
                             .with("json"),
                         field<&Event::raised_comm>("raised_by_comm", "RAISED BY", as::comm,
                                                    "its name; empty: that was not seen")
                             .with("json")},
                        "kernel-stack")
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .announce = "Tracing slow softirqs",
  };
}
