// funcslower: slow calls of functions and system calls.
#include "general/funcslower.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/call_formats.hpp"
#include "coretap/config.hpp"
#include "coretap/errors.hpp"
#include "coretap/flags.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/syscalls.hpp"
#include "coretap/tool.hpp"
#include "funcslower.skel.h"
#include "tools/general/funcslower/call_trees.hpp"
#include "tools/general/funcslower/report_tree.hpp"

using namespace coretap;
using Event = funcslower_event;
using Opt = rodata_of<funcslower_bpf>;

namespace {

constexpr std::uint64_t kMicrosecond = 1'000;

std::string hex_result(const Event& e) { return fmt::format("{:016x}", e.result); }

std::int64_t signed_result(const Event& e) { return static_cast<std::int64_t>(e.result); }

/// A system call's, as a number or the name of its error.
std::string result(const Event& e) {
  if (!e.call) return hex_result(e);
  auto error = result_error(signed_result(e));
  return error ? std::string(error_name(error)) : result_text(signed_result(e));
}

Value result_of_call(const Event& e) { return value_if(e.call != 0, signed_result(e)); }
Value error_of_call(const Event& e) { return e.call ? errno_of(signed_result(e)) : Value(); }

std::uint64_t wanted_arguments(const FieldContext& context) {
  auto wanted = context.config ? context.config->number("arguments", 0) : 0;
  return std::min<std::uint64_t>(wanted, FUNCSLOWER_ARGUMENTS);
}

TextList hex_arguments(const Event& e, const FieldContext& context) {
  TextList all;
  for (std::uint64_t i = 0; i < wanted_arguments(context); i++)
    all.each.push_back(fmt::format("{:#x}", e.arguments[i]));
  all.line = fmt::format("{}", fmt::join(all.each, " "));
  return all;
}

/// A system call's by name, with constants by name; strings as addresses: they are not read.
std::string arguments(const Event& e, const FieldContext& context) {
  auto* known =
      e.call && context.config ? context.config->own<CallFormats>().find(e.call - 1) : nullptr;
  if (!known) return hex_arguments(e, context).line;
  static_assert(FUNCSLOWER_ARGUMENTS == kCallArguments);
  std::array<std::uint64_t, kCallArguments> values;
  std::copy_n(e.arguments, kCallArguments, values.begin());
  auto name = syscall_name(e.call - 1);
  auto used = used_arguments(name, known, values);
  std::vector<std::string> all;
  for (std::size_t i = 0; i < wanted_arguments(context); i++) {
    if (!(used >> i & 1)) continue;
    auto words = argument_words(name, i, values);
    all.push_back((*known)[i].name + "=" +
                  (words ? *words : argument_text((*known)[i], values[i])));
  }
  return fmt::format("{}", fmt::join(all, " "));
}

bool returned(const TreeCall& c) { return c.node.end == FUNCSLOWER_RETURNED; }
Value latency(const TreeCall& c) {
  return value_if(c.timed(), std::uint64_t{c.node.call.latency_ns});
}
Value self(const TreeCall& c) { return value_if(c.timed(), c.self_ns); }
Value caller(const TreeCall& c) { return value_if(c.caller != 0, c.caller); }
std::uint64_t call_id(const TreeCall& c) { return c.id; }
std::uint64_t depth(const TreeCall& c) { return c.node.depth; }
std::uint64_t hidden(const TreeCall& c) { return c.node.hidden; }
std::uint64_t hidden_time(const TreeCall& c) { return c.node.hidden_ns; }
std::uint64_t omitted(const TreeCall& c) { return c.omitted; }
Value hex_result_in_tree(const TreeCall& c) {
  return value_if(returned(c), hex_result(c.node.call));
}
Value result_in_tree(const TreeCall& c) {
  return returned(c) ? result_of_call(c.node.call) : Value();
}
Value error_in_tree(const TreeCall& c) {
  return returned(c) ? error_of_call(c.node.call) : Value();
}

std::string ending(const TreeCall& c) {
  constexpr std::array<std::string_view, FUNCSLOWER_ENDS> kEndings = {"return", "unseen", "exec",
                                                                      "exit", "open"};
  return std::string(kEndings[std::min<std::size_t>(c.node.end, FUNCSLOWER_ENDS - 1)]);
}

/// Without the zeros in front.
std::string short_result(const Event& e) {
  return e.call ? result(e) : fmt::format("{:#x}", e.result);
}

std::string comma_arguments(const Event& e, const FieldContext& context) {
  auto* known =
      e.call && context.config ? context.config->own<CallFormats>().find(e.call - 1) : nullptr;
  if (known) return arguments(e, context);
  return fmt::format("{}", fmt::join(hex_arguments(e, context).each, ", "));
}

std::vector<Field> fields_in_tree() {
  return FieldList{
      who<&Event::who>(id::comm, id::pid, id::tid.with("")),
      derived<TreeCall, latency>("latency_ns", "DURATION(us)",
                                 as::wide(as::precise(as::microseconds, 3), 14),
                                 "its time, from entry to return, or so far if it is open or its "
                                 "thread ended; null: not known")
          .or_null()
          .key_part(),
      derived<TreeCall, self>("self_ns", "SELF(us)", as::wide(as::precise(as::microseconds, 3), 14),
                              "the part of it outside of traced calls that it made")
          .or_null(),
      with("json",
           {derived<TreeCall, call_id>("call_id", "ID", as::number, "number of the call"),
            derived<TreeCall, caller>("parent_id", "PARENT", as::number,
                                      "number of the traced call around it; null: none, or it is "
                                      "not in the output")
                .or_null(),
            derived<TreeCall, depth>("depth", "DEPTH", as::number,
                                     "number of traced calls around it"),
            derived<TreeCall, ending>("ending", "ENDING", as::text,
                                      "return, unseen (its caller went on, but no return was "
                                      "seen: longjmp, an exception), exec, exit (its thread "
                                      "ended) or open (tracing ended first)"),
            derived<TreeCall, hidden>("hidden_calls", "HIDDEN", as::number,
                                      "calls within it that took less than the minimum"),
            derived<TreeCall, hidden_time>("hidden_ns", "HIDDEN(ns)", as::number,
                                           "the time of those that it made itself"),
            derived<TreeCall, omitted>("omitted_calls", "OMITTED", as::number,
                                       "calls within it that exceed --tree-size"),
            derived<TreeCall, hex_result_in_tree>("return_value", "RVAL", as::text,
                                                  "what it returned, hexadecimal")
                .or_null(),
            derived<TreeCall, result_in_tree>("result", "RESULT", as::number,
                                              "of a system call: what it returned")
                .or_null(),
            derived<TreeCall, error_in_tree>("error", "ERROR", as::error,
                                             "its error by name; null: none")
                .or_null(),
            field<&Event::target>("target", "FUNC", as::target, "function"),
            derived<Event, hex_arguments>("argument_values", "ARGS", as::text,
                                          "its first arguments, hexadecimal"),
            who<&Event::who>(id::uid)}),
      who<&Event::who>(id::cgroup)};
}

Result<void> look_up(Config& c) {
  // Short calls show what a long one consists of.
  if (c.given("tree") && !c.holds("min-ms|min-us")) c.set(setting(&Opt::min_ns), 0);
  // Names of arguments; without tracefs they are numbers.
  if (c.given("arguments")) (void)c.own<CallFormats>().read();
  return {};
}

EntryReads reads(const Config& config, std::size_t) {
  return {static_cast<unsigned>(config.number("arguments", 0))};
}

}  // namespace

TOOL(funcslower) {
  return {
      .name = "funcslower",
      .summary = "calls of functions and system calls that take long",
      .description =
          "One line for each call that takes at least a millisecond (or as set by --min-ms or "
          "--min-us) of the functions of the kernel, of libraries and programs, and of the "
          "system calls that match the patterns: the process, the time from entry to return "
          "(LAT), the return value (RVAL) and the function's name. Values are hexadecimal; those of "
          "system calls have the form of strace: errors and constants by name, arguments with their "
          "names, strings as addresses (traceloop --min shows strings, too). LAT includes "
          "time that a call waits off the CPU, and the calls that it makes. Lines are in the "
          "order in which calls end.\n\n"
          "A pattern is FUNCTION or MODULE:FUNCTION for the kernel, LIBRARY:FUNCTION for a "
          "library or program (c:malloc, bash:readline, /usr/bin/bash:readline), or sys_NAME for "
          "a system call if the kernel has no such function; * matches any text. Without a "
          "pattern slow system calls are shown.\n\n"
          "Each call is timed separately, including recursive and nested calls and calls from "
          "interrupts. A call that never returns (longjmp, a thread that exits, a return that "
          "the kernel misses) counts as unmatched when that is noticed; a call that is under way "
          "when tracing starts or ends has no line. Stacks are those at the return.\n\n"
          "With --tree calls of the named functions are shown within each other, one tree for each "
          "outermost call when it has ended, so that threads do not mix: where the time of a call "
          "goes. All calls are shown, or those of the minimum of --min-ms or --min-us; shorter ones "
          "are counted at their caller. A call that was left without a return (longjmp, an "
          "exception, exec, the end of its thread) is marked, and so is one that is open when "
          "tracing ends. Calls more than 32 deep count as untracked. A pattern should not match a "
          "function that runs all the time (main), as its tree never ends.",
      .overhead =
          "two programs per call: about a tenth of a microsecond for a system call or a function "
          "of the kernel, two traps (a few microseconds) for a user function; only slow calls "
          "are sent to user space",
      .examples = {{"funcslower", "system calls that take 1 ms or more"},
                   {"funcslower -m 10 vfs_fsync",
                    "a function of the kernel, calls of 10 ms or more"},
                   {"funcslower -u 100 -a 3 sys_read sys_write",
                    "calls of 100 us or more, with three arguments each"},
                   {"funcslower -U -p 181 c:malloc", "with the user stack"},
                   {"funcslower --tree -u 10 'app:handle*' 'app:db_*' sys_read",
                    "what a slow call consists of, without calls below 10 us"},
                   {"funcslower -T -K 'ext4:ext4_sync*'", "with the time and the kernel stack"}},
      .questions = {{"Which call of this function is slow, and who makes it?",
                     "funcslower -m 10 vfs_fsync"},
                    {"Which system calls make a process wait?", "funcslower -p 1234"},
                    {"Which of the calls within a function take its time?",
                     "funcslower --tree 'app:handle*' 'app:db_*'"}},
      .differs = {{Difference::bcc,
                   "Without a pattern system calls are traced; recursive calls are timed "
                   "correctly. There is no --folded: stackcount and offcputime add stacks up."}},
      .object = skeleton<funcslower_bpf>(),
      .positionals = {shared::target_arguments("sys_*")},
      .options = joined(
          {{number('m', "min-ms", "MS", "only calls of at least MS milliseconds (default: 1)",
                   setting(&Opt::min_ns), kMillisecond),
            number('u', "min-us", "US", "only calls of at least US microseconds",
                   setting(&Opt::min_ns), kMicrosecond),
            number('a', "arguments", "N", "print the first N arguments",
                   Range{1, FUNCSLOWER_ARGUMENTS}, setting(&Opt::arguments)),
            same_everywhere(flag(0, "tree",
                                 "show calls within each other as trees, with their own times; "
                                 "all, or those that take as long as --min-ms or --min-us says",
                                 setting(&Opt::tree))),
            flag('T', "time", "print the time of day at which the call started"),
            shared::timestamp('t'), shared::regular_expressions('r'), shared::debug(),
            shared::max_probes(), shared::return_trampoline(), shared::kernel_stack(),
            flag('U', "user-stack", "print the user stack of each call"), shared::pid(),
            shared::tid(0), shared::uid(0), shared::comm(), shared::cgroup()},
           belonging_to("tree", {number(0, "tree-size", "CALLS",
                                        "keep at most CALLS calls of a tree (default: 10000)",
                                        Range{1, CallTrees::kMostCalls}, {})}),
           belonging_to("kernel-stack|user-stack", {shared::stack_depth()}),
           belonging_to("user-stack",
                        {shared::stack_storage(), shared::unwind(), shared::unwind_memory()})}),
      .elsewhere = {{'f', "folded", "stackcount and offcputime add stacks up, with --folded"}},
      .hooks = {traced_calls("calls", reads),
                {"ends of threads", {{{progs::on_thread_exit}}}, "tree"},
                {"exec", {{{progs::on_exec}}}, "tree"},
                {"calls under way",
                 {{{progs::on_open_calls}}},
                 "tree",
                 "calls that have not ended are not shown"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::comm, id::pid),
               field<&Event::latency_ns>("latency_ns", "LAT(ms)",
                                         as::wide(as::precise(as::milliseconds, 2), 10),
                                         "its time, from entry to return")
                   .with("!min-us"),
               field<&Event::latency_ns>("latency_us", "LAT(us)",
                                         as::wide(as::precise(as::microseconds, 2), 10),
                                         "the same in microseconds")
                   .with("min-us")
                   .in_text(),
               derived<Event, result>("return_text", "RVAL", as::wide(as::text, 16),
                                      "what it returned")
                   .in_text(),
               derived<Event, hex_result>("return_value", "", as::text,
                                          "what it returned, hexadecimal")
                   .with("json"),
               derived<Event, result_of_call>("result", "RESULT", as::number,
                                              "of a system call: what it returned")
                   .or_null()
                   .no_metric()
                   .with("json"),
               derived<Event, error_of_call>("error", "ERROR", as::error,
                                             "its error by name; null: none")
                   .or_null()
                   .no_metric()
                   .with("json"),
               field<&Event::target>("target", "FUNC", as::wide(as::target, -24), "function"),
               derived<Event, arguments>("argument_text", "ARGS", as::text, "its first arguments")
                   .with("arguments")
                   .in_text(),
               derived<Event, hex_arguments>("argument_values", "", as::text,
                                             "its first arguments, hexadecimal")
                   .with("json"),
               who<&Event::who>(id::tid, id::uid.with("json"), id::cgroup)},
              "kernel-stack")
              .timed_at_begin()
              .with_callers<&Event::user_stack, &Event::who>("user-stack")
              .timed({{TimeColumn::wall, "TIME", 12, "time"},
                      {TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .other_reports = {{"tree", TreeReport{fields_in_tree(), comma_arguments, short_result}}},
      .announce = "Tracing slow calls",
      .exclusive = {{"min-ms", "min-us"}, {"tree", "kernel-stack"}, {"tree", "user-stack"}},
      .look_up = look_up,
  };
}
