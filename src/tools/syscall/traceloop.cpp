// traceloop: the last system calls of cgroups or processes, kept until they are requested.
#include <csignal>

#include <fmt/format.h>

#include "coretap/flags.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tools/syscall/traceloop/call_text.hpp"
#include "tools/syscall/traceloop/report_calls.hpp"
#include "traceloop.skel.h"

using namespace coretap;
using Opt = rodata_of<traceloop_bpf>;

namespace {

constexpr std::uint64_t kMostSlots = 1 << 22, kLeastSlots = 64;

void each_of(Config& c, Setting flags, std::size_t from, std::size_t to) {
  for (auto i = from; i < to; i++) c.set({flags.offset + i, 1}, 1);
}

Result<void> take_trigger(Config& c, std::string_view text) {
  auto signals = setting(&Opt::end_signals), codes = setting(&Opt::end_codes);
  c.set(setting(&Opt::tell_ends), 1);
  return each_word(text, [&](std::string_view word) -> Result<void> {
    auto code =
        parse_unsigned(word.starts_with("exit=") ? word.substr(5) : "").value_or(UINT64_MAX);
    if (word == "oom")
      c.set(setting(&Opt::end_by_oom), 1);
    else if (word == "signal")
      each_of(c, signals, 1, signals.size);
    else if (word == "exit")
      each_of(c, codes, 1, codes.size);
    else if (code < codes.size)
      each_of(c, codes, code, code + 1);
    else if (auto number = signal_number(word))
      each_of(c, signals, static_cast<std::size_t>(number), static_cast<std::size_t>(number) + 1);
    else
      return usage(fmt::format("--trigger: '{}' is not a trigger", word),
                   "give signal, SIGSEGV (or another), oom, exit (non-zero status) or exit=3");
    return {};
  });
}

std::vector<Completion> triggers() {
  std::vector<Completion> all{{"signal", "any signal"},
                              {"oom", "killed for lack of memory"},
                              {"exit", "any status except 0"},
                              {"exit=1", "this status"}};
  for (int number = 1; number < NSIG; number++)
    if (auto* name = sigabbrev_np(number)) all.push_back({fmt::format("SIG{}", name)});
  return all;
}

Result<void> take_signal(Config& c, std::string_view text) {
  auto number = signal_number(text);
  if (number != SIGUSR1 && number != SIGUSR2)
    return usage(fmt::format("--dump-signal: '{}' is not USR1 or USR2", text));
  c.own<CallSettings>().dump_signal = number;
  return {};
}

Result<void> take_cgroup(Config& c, std::string_view text) {
  if (text.empty()) return usage("--cgroup: needs a path");
  c.own<CallSettings>().cgroups.push_back({0, std::string(text), 0});
  return {};
}

/// There may be several, each with a separate recorder; also accepted without the option.
Option cgroups() {
  auto option = shared::cgroup();
  option.apply = take_cgroup;
  option.adds_up = true;
  return option;
}

/// In front of the cgroups there may be the word that selects them in Inspektor Gadget's traceloop.
Positional cgroup_arguments() {
  return {.metavar = "CGROUP",
          .doc = "the same as --cgroup CGROUP; the word \"cgroups\" may come first",
          .repeat = Positional::any_number,
          .apply = [](Config& c, std::string_view text) -> Result<void> {
            auto& word = c.own<CallSettings>().cgroups_follow;
            if (text != "cgroups" || word) return take_cgroup(c, text);
            word = true;
            return {};
          },
          .complete = Complete::cgroup};
}

Result<void> check(const Config& c) {
  // Live calls of the whole system would mostly be those of the program that reads the output.
  if (!keeps_calls(c) && !c.filters_tasks() && c.own<CallSettings>().cgroups.empty() &&
      !c.given("explain"))
    return usage("nothing to trace",
                 "name a cgroup, a process (--pid) or a command (-- COMMAND); with --dump-on-exit "
                 "the whole system is recorded");
  return {};
}

}  // namespace

TOOL(traceloop) {
  return {
      .name = "traceloop",
      .summary = "flight recorder of system calls, by cgroup or process",
      .description =
          "Records the system calls of cgroups or processes, with their arguments, results and "
          "times, in ring buffers that keep only the most recent calls: cheap enough to be left "
          "running until something goes wrong. With --dump-on-exit, --dump-signal or --trigger it "
          "prints the recorded calls when tracing ends, when it receives a signal (kill -USR1), or "
          "when a process fails or is killed, and only those not printed yet. Without any of these "
          "options it prints matching calls live, ten times a second.\n\n"
          "Each named cgroup has its own recorder, so that a busy one does not overwrite the calls "
          "of a quiet one; cgroups below it are recorded too. Without a cgroup, one recorder holds "
          "all calls that match the filters, or those of the whole system.\n\n"
          "Strings are recorded for paths and names, up to 444 bytes, never for buffers that are "
          "read or written. They are read when the call ends (execve: when it begins): if a "
          "program changes them during the call, the changed string is shown. A call that is still "
          "in progress, or in which its task was killed, ends in ... in place of a result.\n\n"
          "With --min, a call that began before tracing did counts from the start of tracing.",
      .overhead =
          "two hooks per system call of any process; while it runs, the kernel takes its slow path "
          "for every call. No output per call while it records",
      .examples = {{"traceloop --dump-on-exit -- make test", "the last calls of a command"},
                   {"traceloop --trigger signal,oom,exit /sys/fs/cgroup/system.slice/nginx.service",
                    "what led to each failure in a service"},
                   {"traceloop --dump-signal USR1 -o calls.txt -p 1234",
                    "record, and print on kill -USR1"},
                   {"traceloop -e openat,execve -p 1234", "two system calls, live"},
                   {"traceloop --min 200 -p 1234", "calls that took 200 ms or more, live"}},
      .questions = {{"What did a program do before it crashed, was killed or exited?",
                     "traceloop --trigger signal,oom,exit -p 1234"},
                    {"What did a container do in its last second?",
                     "traceloop --dump-on-exit /sys/fs/cgroup/shop"},
                    {"Which single system calls of a process are slow, with arguments and result?",
                     "traceloop --min 100 -p 1234"},
                    {"What is a program doing right now (like strace, but cheap)?",
                     "traceloop -p 1234"}},
      .object = skeleton<traceloop_bpf>(),
      .positionals = {cgroup_arguments()},
      .options =
          {shared::pid(), shared::tid(), shared::uid(), shared::comm(), cgroups(),
           flag('r', "recursive", "a separate recorder for each cgroup below those named, too"),
           shared::syscalls('e', setting(&Opt::wanted_calls), setting(&Opt::some_calls)),
           number('m', "min", "MS", "only calls that took at least this many milliseconds",
                  setting(&Opt::min_ns), kMillisecond),
           number(
               's', "size", "CALLS",
               "calls kept per CPU and recorder; each string argument takes one more slot; rounded "
               "up to a power of two (default: 8192, which is 1 MiB)",
               Range{kLeastSlots, kMostSlots}, {}),
           flag(0, "dump-on-exit", "show what was recorded when tracing ends"),
           one_of(value(0, "dump-signal", "SIGNAL", "show it on this signal, USR1 or USR2",
                        take_signal),
                  [] {
                    return std::vector<Completion>{{"USR1"}, {"USR2"}};
                  }),
           one_of(value(0, "trigger", "END,...",
                        "show it when a recorded process ends in this way: signal, SIGSEGV (or "
                        "another), oom, exit (non-zero status), exit=3",
                        take_trigger),
                  triggers),
           shared::output()},
      .hooks = {{"starts of calls", {{{progs::on_enter}}}},
                {"ends of calls", {{{progs::on_exit}}}},
                {"ends of tasks", {{{progs::on_task_exit}}}},
                {"calls under way",
                 {{{progs::on_task}}},
                 {},
                 "calls that have not ended are not shown"}},
      .report = CallReport{},
      .announce = "Recording system calls",
      .check = check,
  };
}
