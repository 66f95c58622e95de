// syscount: system calls and their duration, by call or by process.
#include "syscall/syscount.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/errors.hpp"
#include "coretap/json.hpp"
#include "coretap/percentiles.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/syscalls.hpp"
#include "coretap/tool.hpp"
#include "syscount.skel.h"

using namespace coretap;
using Opt = rodata_of<syscount_bpf>;
using Key = syscount_key;
using Counts = syscount_counts;
using Line = Row<Key, Counts>;

namespace {

constexpr std::array<double, SYSCOUNT_PERCENTILES> kPercents = {50, 95, 99};

Value shortest(const Line& l) {
  auto most = std::uint64_t{l.value.shortest.slots[0]};
  return value_if(most, SYSCOUNT_MOST_NS - most);
}

std::string abi(const Line& l) { return std::string(syscall_abi(l.key.call)); }

Result<void> take_errno(Config& c, std::string_view text) {
  auto number = error_number(text);
  if (!number)
    return usage(fmt::format("--errno: there is no error '{}'", text),
                 "give a name such as ENOENT, or its number");
  c.set(setting(&Opt::only_errno), static_cast<std::uint64_t>(*number));
  c.set(setting(&Opt::failures), 1);
  return {};
}

/// 0 in libbpf-tools means one report at the end, which is the behavior without an interval.
Option interval() {
  auto option = shared::interval();
  option.doc = "time between reports; 0: one report at the end";
  option.apply = [take = option.apply](Config& c, std::string_view text) -> Result<void> {
    if (parse_unsigned(text) == 0U) return {};
    return take(c, text);
  };
  return option;
}

/// The path that the kernel program sent for the file; null: it was lost.
Value object(const Line& l, const FieldContext& context) {
  Key of_file{};
  of_file.object = SYSCOUNT_FILE;
  of_file.file = l.key.file;
  switch (l.key.object) {
    case SYSCOUNT_FILE: {
      auto* path = context.row_text(of_file);
      return path ? Value(*path) : Value();
    }
    case SYSCOUNT_VDSO:
      return std::string("[vdso]");
    case SYSCOUNT_ANONYMOUS:
      return std::string("[anonymous]");
    default:
      return std::string("[unknown]");
  }
}

Option objects() {
  auto option = flag(0, "objects",
                     "a row for each program or library whose code makes the calls, too; --by "
                     "object: only these");
  option.apply = [](Config& c, std::string_view) -> Result<void> {
    c.set(setting(&Opt::by_object), 1);
    c.set(setting(&Opt::unwind_tables), 1);  // for lib/stack/mapping.bpf.h
    return {};
  };
  return option;
}

std::string list(const Config& c) {
  std::string text;
  for (auto& call : all_syscalls()) {
    if (c.format == OutputFormat::json) {
      JsonLine line;
      line.text("type", "syscall").text("tool", "syscount");
      line.number("number", static_cast<std::uint64_t>(call.number)).text("syscall", call.name);
      line.text("abi", syscall_abi(call.compat ? CALLS_COMPAT : 0));
      text.append(line.finish()) += '\n';
      continue;
    }
    text += fmt::format("{:3}: {}{}\n", call.number, call.name,
                        call.compat ? fmt::format(" ({})", syscall_abi(CALLS_COMPAT)) : "");
  }
  return text;
}

std::vector<Completion> errors() {
  std::vector<Completion> all;
  for (int number = 1; number < 256; number++)
    if (auto* name = strerrorname_np(number)) all.push_back({name, strerrordesc_np(number)});
  return all;
}

/// A column of times, in microseconds or milliseconds.
Field titled(const Field& time, std::string_view in_milliseconds) {
  return time.only("latency").no_metric().milliseconds(in_milliseconds);
}

/// The middle of a bucket may be above the longest time in it, or below the shortest.
template <std::size_t Index>
Value percentile(const Line& l) {
  auto value = std::uint64_t{l.value.percentiles[Index]},
       most = std::uint64_t{l.value.longest.slots[0]};
  std::uint64_t least = SYSCOUNT_MOST_NS - l.value.shortest.slots[0];
  return value_if(value, most ? std::clamp(value, std::min(least, most), most) : value);
}

template <std::size_t Index>
Field spread(std::string_view key, std::string_view title, std::string_view in_milliseconds) {
  auto field = derived<Line, percentile<Index>>(
      key, title, as::microseconds, "the time that this percentage of the calls do not exceed");
  return titled(field, in_milliseconds).only("spread");
}

AggregateReport report() {
  auto all = table<Key, Counts>(
      maps::calls,
      {of_key<Line, &Key::call>("syscall", "SYSCALL", as::syscall, "name of the system call")
           .only("calls|!process"),
       derived<Line, abi>("abi", "ABI", as::wide(as::text, -8),
                          "system call table of its number: the machine's own, or that of "
                          "32-bit programs")
           .bounded()
           .only("calls|!process")
           .with("json"),
       of_key<Line, &Key::pid>("pid", "PID", as::pid, "process").only("process"),
       derived<Line, [](const Line& l) { return text_in(l.key.comm); }>(
           "comm", "COMM", as::comm, "command name of its first thread")
           .only("process"),
       derived<Line, object>(
           "object", "OBJECT", as::wide(as::text, -40),
           "program or library whose code made the calls; null: its path was lost")
           .only("objects")
           .key_part()
           .or_null()
           .capped(),
       of_value<Line, &Counts::count>("count", "COUNT", as::pages, "calls that ended"),
       of_value<Line, &Counts::total_ns>("total_ns", "TIME (us)", as::wide(as::microseconds, 16),
                                         "total time in the calls")
           .only("latency")
           .milliseconds("TIME (ms)"),
       of_value<Line, &Counts::errors>("errors", "ERRORS", as::wide(as::number, 7),
                                       "calls among these that failed")
           .only("latency"),
       titled(mean_of<Line, &Counts::total_ns, &Counts::count>(
                  "average_ns", "AVG (us)", as::wide(as::microseconds, 12), "average time"),
              "AVG (ms)"),
       titled(derived<Line, shortest>("min_ns", "MIN (us)", as::wide(as::microseconds, 12),
                                      "the shortest time of the interval"),
              "MIN (ms)"),
       titled(of_value<Line, &Counts::longest>("max_ns", "MAX (us)", as::wide(as::microseconds, 12),
                                               "the longest time of the interval"),
              "MAX (ms)"),
       spread<0>("p50_ns", "P50 (us)", "P50 (ms)"), spread<1>("p95_ns", "P95 (us)", "P95 (ms)"),
       spread<2>("p99_ns", "P99 (us)", "P99 (ms)")},
      "total_ns,count", 10, "process|spread|objects");
  all.bucket_at = offsetof(Key, bucket);
  all.usual_percentiles.assign(kPercents.begin(), kPercents.end());
  return std::move(all).with_largest<&Counts::longest>().with_largest<&Counts::shortest>();
}

std::vector<Option> options() {
  std::vector<Option> all = {
      flag('P', "process", "by process rather than by system call", setting(&Opt::by_process)),
      flag('L', "latency", "also measure the time in each call, and sort by it",
           setting(&Opt::timed)),
      shared::milliseconds("times in milliseconds"),
      flag('x', "failures", "only calls that failed", setting(&Opt::failures)),
      one_of(value('e', "errno", "ERROR",
                   "only calls that failed with this error, by name or number", take_errno),
             errors),
      objects(),
      shared::syscalls(0, setting(&Opt::wanted_calls), setting(&Opt::some_calls)),
      flag('l', "list", "print the system calls of this machine, then exit"),
      shared::top('T'),
      shared::sort(),
  };
  all =
      joined({all,
              belonging_to("latency", {flag(0, "spread", "the 50th, 95th and 99th percentile, too",
                                            setting(&Opt::percentiles))}),
              belonging_to("process", {flag(0, "calls", "a row for each system call of a process",
                                            setting(&Opt::by_call_too))})});
  for (auto& o : shared::task_filters())
    all.push_back(o.name == "cgroup" ? shared::cgroup_not("a process", "ppid") : std::move(o));
  all.push_back(shared::ppid(0, setting(&Opt::wanted_parent)));
  all.push_back(interval());
  all.push_back(shared::duration('d'));
  all.push_back(shared::max_keys());
  return all;
}

}  // namespace

TOOL(syscount) {
  return {
      .name = "syscount",
      .summary = "system calls by name or by process, with errors and time",
      .description =
          "Counts system calls when they end, by name or, with --process, by process; with "
          "--latency also how many failed, and the time from entry to end, including waits: "
          "total, average, shortest and longest. --spread adds the times that 50, 95 and 99 % "
          "of the calls do not exceed, with an error of at most 0.8 %. Calls by 32-bit programs "
          "have the names of their own table.\n\n"
          "A call that a signal interrupts is counted once: when it resumes and ends, or as EINTR "
          "if the signal's handler ends it. Calls that never end are not counted: exit, "
          "exit_group, and a call in which a task is killed. A call still blocked when a report is "
          "made counts in a later one, or in none; with --latency a call that began before tracing "
          "did is left out because its time is not known. A return from a signal handler "
          "(rt_sigreturn) has no result and never fails. Work that io_uring does involves no "
          "system calls.\n\n"
          "The time of a call starts again if a handler ran before it was restarted.\n\n"
          "--by object adds the calls up by the file that contains the instruction that makes the "
          "call. For most programs that is libc, also if a library called libc; others are "
          "programs that are linked statically, written in Go, or make calls themselves. "
          "[anonymous] is code that is in no file (a JIT compiler's). For the program or library that called "
          "libc, `stackcount -U --by caller t:raw_syscalls:sys_enter` looks at the stack of each call.",
      .overhead =
          "one hook per system call of any process, two with --latency; while it runs, the kernel "
          "takes its slow path for every call. Counted in the kernel, no output per event",
      .examples = {{"syscount", "the ten most frequent calls until Ctrl-C"},
                   {"syscount -L -i 1", "each second, by the time in calls"},
                   {"syscount -L --spread -p 181",
                    "errors, and the spread of the times, of each call of process 181"},
                   {"syscount -P -T 20", "the twenty processes that make the most calls"},
                   {"syscount -x -e ENOENT -P", "which processes look for files that do not exist"},
                   {"syscount --syscall openat,read -p 181", "two calls of process 181"},
                   {"syscount --by object", "which programs and libraries contain the calls"},
                   {"syscount -Lm -- tar cf /tmp/etc.tar /etc",
                    "what a command does, in milliseconds"}},
      .questions = {{"Which system calls does a process make most often?", "syscount -p 1234"},
                    {"In which system calls does the time go?", "syscount -L -p 1234 -i 1"},
                    {"Which process makes the most system calls?", "syscount -P -T 20"},
                    {"Which system calls fail?", "syscount -x"}},
      .differs = {{Difference::bcc,
                   "-c is a cgroup, as in libbpf-tools, and a number is refused. The parent "
                   "process is --ppid. The time of a report is without brackets."},
                  {Difference::both,
                   "A call that a signal interrupts and that then resumes counts once."},
                  {Difference::libbpf_tools,
                   "Calls by 32-bit programs have the names of their own table. There, they have "
                   "the names of the 64-bit calls with the same number."}},
      .object = skeleton<syscount_bpf>(),
      .positionals = shared::interval_count(),
      .options = options(),
      .elsewhere = {{0, "exec", "put the command at the end, after --"}},
      .hooks = {{"ends of calls", {{{progs::on_exit}}}},
                {"starts of calls", {{{progs::on_enter}}}, "latency|objects"},
                {"signals",
                 {{{progs::on_signal}}},
                 {},
                 "calls that a signal's handler ended with EINTR are not counted"}},
      .report = report(),
      .announce = "Tracing system calls",
      .list = list,
  };
}
