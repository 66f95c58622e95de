// timeline: what CPUs run, wakeups and interrupts, as a trace for Perfetto.
#include <algorithm>
#include <iterator>
#include <utility>

#include "coretap/config.hpp"
#include "coretap/irq.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/sock_io.hpp"
#include "coretap/tool.hpp"
#include "timeline.skel.h"
#include "tools/cpu/timeline/report_timeline.hpp"

using namespace coretap;

namespace {

using Opt = rodata_of<timeline_bpf>;

constexpr std::string_view kNoInterrupts =
    "a task that an interrupt wakes seems to be woken by the task that it interrupts";

Option only() {
  return one_of(
      comma_list(
          0, "only", "PART,...",
          "only these parts: sched, irq, block, syscalls, faults, net (default: sched,irq,block, "
          "with a filter or a command all)",
          [](Config&, std::string_view part) {
            return std::ranges::find(kTimelineParts, part, &TimelinePart::word) !=
                   std::end(kTimelineParts);
          },
          "parts", "there are sched, irq, block, syscalls, faults and net"),
      [] {
        std::vector<Completion> all;
        for (auto& part : kTimelineParts)
          all.push_back({std::string(part.word), std::string(part.doc)});
        return all;
      });
}

Hook faults(std::string_view name, std::vector<Candidate> candidates, Sampling sampling = {}) {
  return {.name = name,
          .candidates = std::move(candidates),
          .when = "only=faults",
          .optional = "page faults are not shown",
          .sampling = std::move(sampling)};
}

/// TCP. Hooks that a kernel does not have are left out.
std::vector<Hook> with_net(std::vector<Hook> all) {
  all.insert(all.end(),
             {{"states of connections",
               {{{progs::on_state}}},
               "only=net",
               "states of connections are not shown"},
              {"retransmits", {{{progs::on_retransmit}}}, "only=net", "retransmits are not shown"},
              {"answers to SYN",
               {{{progs::on_synack}}},
               "only=net",
               "retransmitted answers to SYN are not shown"},
              accepted_connections("only=net")});
  for (auto& hook : sock_io::hooks(sock_io::both)) {
    all.push_back(hook);
    all.back().when = "only=net";
    if (hook.optional.empty()) all.back().optional = "sends or receives are not shown";
  }
  return all;
}

Result<void> take_last(Config& c, std::string_view text) {
  double seconds = 0;
  auto taken = store(take_seconds("--last", text), seconds);
  c.own<TimelineSettings>().last_ns = static_cast<std::uint64_t>(seconds * 1e9);
  return taken;
}

Result<void> check(const Config& c) {
  if (c.given("min-us") && !c.holds("only=syscalls"))
    return usage("--min-us is about system calls, which --only leaves out",
                 "--only sched,syscalls shows both");
  return {};
}

}  // namespace

TOOL(timeline) {
  return {
      .name = "timeline",
      .summary = "what each CPU runs, wakeups and their wakers, as a trace for Perfetto",
      .description =
          "Writes a trace for Perfetto (ui.perfetto.dev), in which each CPU has a track with the "
          "tasks that it runs, and each thread one with its states and wakers; interrupts, softirqs "
          "and the requests of each disk have tracks, too. With a filter by task, or a command, "
          "the threads' tracks have their system calls, their page faults of 10 microseconds or "
          "more, and what they send and receive by TCP; their connections have tracks with their "
          "states and retransmits.\n\n"
          "Switches, wakeups and interrupts are those of the whole machine, also with a filter: "
          "whom a task waits for is among the others. A wakeup in an interrupt is marked as such. "
          "An arrow leads from the submission of a request, on the track of the thread, to the "
          "request and to its completion, on the track of a CPU.\n\n"
          "Nothing is left out silently: where events did not fit into the buffer, the trace has a "
          "gap with their number. A system call that began before tracing did is not shown.",
      .overhead =
          "one hook per context switch and wakeup, two per interrupt, three per request, and a "
          "record of about 60 bytes for each; with system calls two hooks for each call of any "
          "process",
      .examples = {{"timeline 10", "ten seconds, to timeline.pftrace"},
                   {"timeline -o build.pftrace -- make",
                    "while a command runs, with its system calls and page faults"},
                   {"timeline -p 181 10", "with those of process 181"},
                   {"timeline --only sched 10", "only switches and wakeups"},
                   {"timeline --min-us 1000 10", "with system calls that take a millisecond"},
                   {"timeline --last 10s", "until Ctrl-C, and then only the last ten seconds"}},
      .questions = {{"What happened on each CPU, moment by moment?", "timeline 10"},
                    {"Which task woke this one, and how long did it wait for a CPU then?",
                     "timeline 10"},
                    {"In which order do threads, interrupts and disks work on a request?",
                     "timeline -p 181 10"}},
      .object = skeleton<timeline_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{same_everywhere(free_text('o', "perfetto", "FILE",
                                      "write the trace to this file (default: timeline.pftrace)",
                                      Complete::file, "a file")),
            only(),
            value(0, "last", "TIME",
                  "keep only the last TIME (10s, 2m) of the trace; also written on signal USR1",
                  take_last),
            number(0, "min-us", "US",
                   "system calls of at least US microseconds, without a filter of all processes",
                   setting(&Opt::min_call_ns), 1000)},
           shared::task_filters()}),
      .hooks = with_net(
          {{"context switches", {{{progs::on_switch}}}, "only=sched"},
           {"wakeups", {{{progs::on_waking, progs::on_waking_new}}}, "only=sched"},
           {"new tasks", {{{progs::on_fork}}}, "only=sched"},
           {"tasks at the start",
            {{{progs::on_task}}},
            {},
            "tasks have no names and processes until they run"},
           {"what CPUs run at the start", {{{progs::on_running}}}},
           {"softirqs",
            {{{progs::on_softirq_exit, progs::on_softirq_entry}}},
            "only=sched|only=irq",
            kNoInterrupts},
           {"interrupt handlers",
            {{{progs::on_irq_exit, progs::on_irq_result, progs::on_irq_entry}}},
            "only=sched|only=irq",
            kNoInterrupts},
           {"the processor's own interrupts",
            // NOLINTNEXTLINE(bugprone-suspicious-missing-comma): a macro makes the names
            {{{IRQ_VECTORS(IRQ_VECTOR_PROGRAMS)}}},
            "only=sched|only=irq",
            kNoInterrupts},
           {"submission", {{{progs::on_io_start}}, {{progs::on_getrq}}}, "only=block"},
           {"issue to the device", {{{progs::on_issue}}}, "only=block"},
           {"completion", {{{progs::on_complete}}}, "only=block"},
           {"system calls", {{{progs::on_exit, progs::on_enter}}}, "only=syscalls"},
           {"calls under way",
            {{{progs::on_unfinished}}},
            "only=syscalls",
            "calls that have not ended when tracing does are not shown"},
           faults("minor faults", {{{progs::on_minor}}, {{progs::on_minor_kept}}}, every(1)),
           faults("major faults", {{{progs::on_major}}, {{progs::on_major_kept}}}, every(1)),
           faults("starts of faults", {{{progs::on_user_fault, progs::on_kernel_fault}},
                                       {{progs::on_fault}},
                                       {{progs::on_fault_kprobe}}})}),
      .maps = {{maps::requests, MapSize::block_requests, "only=block"},
               {maps::bios, MapSize::block_bios, "only=block"}},
      .report = TimelineReport{},
      .announce = "Tracing what CPUs run",
      .check = check,
  };
}
