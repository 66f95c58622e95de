// ksnoop: arguments and results of kernel functions, with all members of structures.
#include "general/ksnoop.h"

#include <utility>

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "ksnoop.skel.h"
#include "tools/general/ksnoop/calls.hpp"

using namespace coretap;
using Event = ksnoop_event;
using calls::Held;

namespace {

std::vector<std::string> shown(const Event& e, const FieldContext& context, bool one_line) {
  if (!context.config) return {};
  return context.config->own<Held>().calls->values(e, one_line);
}

TextList values(const Event& e, const FieldContext& context) {
  TextList all{shown(e, context, true), {}};
  for (auto& each : all.each) all.line += (all.line.empty() ? "" : "; ") + each;
  return all;
}

Frames lines(const Event& e, const FieldContext& context) {
  Frames all;
  for (auto& value : shown(e, context, false))
    for (std::string_view rest = value; !rest.empty();) {
      all.emplace_back(rest.substr(0, rest.find('\n')));
      rest.remove_prefix(std::min(rest.size(), all.back().size() + 1));
    }
  return all;
}

struct Words {
  bool any = false;  ///< behind the name of the tool
};

Value latency(const Event& e) { return value_if(e.returned, e.latency_ns); }

}  // namespace

TOOL(ksnoop) {
  return {
      .name = "ksnoop",
      .summary = "arguments and results of kernel functions, with all members",
      .description =
          "One entry per call of each FUNCTION, when it returns: its start time, the CPU, the "
          "process, and below these the arguments as they were at the entry and the result. A "
          "pointer to a struct is shown as the struct's members, in the form of a C initialiser, "
          "without those that are zero; enumerators and booleans are shown by name, a char * as "
          "text. All types come from the kernel, and from the module that a function is in "
          "(BTF). `ksnoop info FUNCTION` prints the declaration of a function.\n\n"
          "FUNCTION is a function of the kernel or of a module (MODULE:FUNCTION), a system call "
          "(sys_NAME), or a tracepoint (t:CATEGORY:EVENT), which kernels without kprobes have, "
          "too. Without parentheses all arguments and the result are shown. Parentheses select "
          "the values to show: names of parameters, arg1 to arg6, return, args->FIELD of a "
          "tracepoint, and members at any depth (file->f_inode->i_ino). If return is not among "
          "them, a call is shown at its entry. Any expression of trace(8) is allowed.\n\n"
          "A comparison may follow an argument: == != < <= > >= and a value. A call is shown if "
          "all comparisons hold. Comparisons follow C's types: return < 0 holds for errors.\n\n"
          "A value in memory that is not accessible is shown as (fault), and so is memory of the "
          "process that is swapped out; an error pointer is shown as, for example, ERR_PTR(-2). "
          "If a struct is larger than --value-size, or a text longer than 80 bytes, only the "
          "first part is shown, then three dots; such calls count as shortened. A call that "
          "never returns, or is under way at the end, is not shown if its result is requested.",
      .overhead =
          "one or two programs per call, which copy the values: about a microsecond for each call "
          "and some kilobytes of memory; comparisons of arguments are made first",
      .examples = {{"ksnoop vfs_read", "all arguments and the result of each call"},
                   {"ksnoop info vfs_read", "how the function is declared"},
                   {"ksnoop trace 'vfs_read(count > 65536, return)'", "large reads"},
                   {"ksnoop 'vfs_open((char *)path->dentry->d_name.name, return < 0)'",
                    "files that cannot be opened"},
                   {"ksnoop 'tcp_sendmsg(sk->__sk_common, size)'", "a struct within a struct"},
                   {"ksnoop -p 1234 sys_read 'sys_write(count)'", "system calls of a process"},
                   {"ksnoop t:sched:sched_process_exec", "the fields of a tracepoint"}},
      .questions = {{"Which arguments does a kernel function get, and what does it return?",
                     "ksnoop vfs_fsync"},
                    {"What is in the struct that a function gets?", "ksnoop 'vfs_open(file)'"}},
      .differs =
          {{Difference::libbpf_tools,
            "Arguments and result of a call are one record, printed when it returns; structs "
            "have no types before their members. -p is the process, not the thread. return < 0 "
            "holds for errors. Members may be at any depth, and arguments may be expressions. "
            "There is no -s: trace -K shows the stack of each call. If a module has no type "
            "information (before Linux 5.11), its functions have only registers (arg1)."}},
      .object = skeleton<ksnoop_bpf>(),
      .positionals =
          {{.metavar = "FUNCTION",
            .doc = "FUNCTION, FUNCTION(ARGUMENT, ...) or t:CATEGORY:EVENT, optionally after trace "
                   "or info; help as the first word prints the help",
            .repeat = Positional::any_number,
            .apply = [](Config& c, std::string_view text) -> Result<void> {
              const bool first = !std::exchange(c.own<Words>().any, true) && !c.given("list");
              if (first && text == "help")
                c.give("help", "");
              else if (first && text == "info")
                c.give("list", "");
              else if (!(first && text == "trace"))
                c.probes.targets.emplace_back(text);
              return {};
            },
            .complete = Complete::function,
            .otherwise = "sys_execve"}},
      .options = {flag('l', "list",
                       "print how the functions are declared, then exit, as info does"),
                  number('Z', "value-size", "BYTES",
                         "copy at most BYTES of a struct (default: 1024), and 80 of a text",
                         Range{8, calls::kMostBytes}, {})
                      .tracing(),
                  shared::max_events(), shared::max_probes(), shared::debug().also('d'),
                  shared::pid(), shared::tid(), shared::uid(), shared::comm(), shared::cgroup()},
      .other_meanings =
          {{'p', "",
            "all threads of the process; in libbpf-tools one thread, as --tid (--pid: "
            "without this note)"}},
      .elsewhere = {{'P', "pages", "use --ring-size BYTES"},
                    {'s', "stack", "trace -K shows the kernel stack of each call"}},
      .hooks = {traced_whole("calls", calls::specs)},
      .report =
          events<Event>(
              {field<&Event::cpu>("cpu", "CPU", as::wide(as::number, 4), "CPU"),
               who<&Event::who>(id::pid),
               field<&Event::target>("target", "FUNCTION/ARGS", as::wide(as::target, 0),
                                     "function, system call or tracepoint"),
               derived<Event, lines>("lines", "", as::stack, "arguments and result").in_text(),
               with("json", {derived<Event, latency>("latency_ns", "LAT", as::number,
                                                     "from entry to return; null: at an entry"),
                             derived<Event, values>("values", "VALUES", as::text,
                                                    "arguments and result, by their names")}),
               who<&Event::who>(id::comm.with("json"), id::tid.with("json"), id::uid.with("json"),
                                id::cgroup)})
              .timed_at_begin()
              .timed({{TimeColumn::wall, "TIME", 12, ""}})
              .high_rate(),
      .announce = "Tracing",
      .look_up = calls::parse_calls,
      .compile = calls::compile_calls,
      .list = calls::declarations,
  };
}
