// trace: calls of functions, tracepoints and USDT probes, with values named on the command line.
#include "general/trace.h"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tools/general/trace/probes.hpp"
#include "trace.skel.h"

using namespace coretap;
using Event = trace_event;
using tracing::Held;

namespace {

std::string message(const Event& e, const FieldContext& context) {
  return context.config ? context.config->own<Held>().probes->message(e, context) : "";
}

TextList values(const Event& e, const FieldContext& context) {
  TextList all;
  if (context.config) all.each = context.config->own<Held>().probes->values(e, context);
  for (auto& each : all.each) all.line += (all.line.empty() ? "" : " ") + each;
  return all;
}

bool has_text(const Config& config, const void* record) {
  auto text = config.text("msg-filter");
  return text.empty() ||
         message(*static_cast<const Event*>(record), {&config}).find(text) != std::string::npos;
}

std::vector<Option> options() {
  return joined(
      {{shared::timestamp('t'), flag('T', "time", "print the time of day"),
        flag('C', "print-cpu", "print the CPU"), shared::max_events(),
        number('Z', "string-size", "BYTES", "read at most BYTES of a text (default: 80)",
               Range{1, tracing::kMostText}, {})
            .tracing(),
        free_text('f', "msg-filter", "TEXT", "only messages that contain TEXT"),
        shared::regular_expressions('r'), shared::max_probes(), shared::return_trampoline(),
        shared::debug(0), shared::kernel_stack(),
        flag('U', "user-stack", "print the user stack of each event"),
        free_text('I', "include", "HEADER",
                  "accepted as in bcc, but not needed: types come from the kernel itself"),
        shared::pid(), shared::tid('L'), shared::uid(0), shared::comm(), shared::name('n'),
        shared::cgroup().also("cgroup-path")},
       belonging_to("kernel-stack|user-stack", {shared::address('a'), shared::stack_depth()}),
       belonging_to("user-stack",
                    {shared::stack_storage(), shared::unwind(), shared::unwind_memory()})});
}

}  // namespace

TOOL(trace) {
  return {
      .name = "trace",
      .summary = "calls of functions, tracepoints and USDT probes, with chosen values",
      .description =
          "One line each time a place that a PROBE names is reached and its filter holds: "
          "process, thread, command, the function or tracepoint, and a message made from a "
          "format and values. The language is that of bcc's tool of the same name.\n\n"
          "A probe is SPEC, optionally followed by a filter in parentheses and a format in "
          "double quotes with its values. SPEC is FUNCTION or MODULE:FUNCTION for the kernel, "
          "LIBRARY:FUNCTION for a library or program (c:malloc, bash:readline, "
          "/usr/bin/bash:readline), with a leading r: for returns (r::vfs_read, r:c:malloc), "
          "t:CATEGORY:EVENT for a tracepoint, u:LIBRARY:PROBE for a USDT probe, sys_NAME for a "
          "system call; * matches any text. FUNCTION+0x1c is an instruction within the function, "
          "LIBRARY:0xADDRESS one at an address as objdump shows it; arguments are not known "
          "there. C++ and Rust functions may be named as in the source (app:Class::run), with or "
          "without template arguments and the type of the result: all overloads are traced. If "
          "parameters are not known, they may follow the name directly, in parentheses and "
          "without a blank: 'c:open(char *path, int flags) \"%s\", path'.\n\n"
          "Filters and values are C expressions without assignments. Names are arg1 to arg6 and "
          "the parameters' own names: for kernel functions, system calls, and user functions "
          "whose file has debug information (DWARF) or a debug file, found by build id below "
          "/usr/lib/debug or by name (.gnu_debuglink); at returns retval (not of functions "
          "that return no integer and no pointer, as debug information tells), $latency (the call's "
          "time in nanoseconds) and $entry(NAME) (the value of a parameter at the entry); "
          "args->FIELD for tracepoints; $pid (the thread), $tgid (the process), $uid, $gid, "
          "$cpu, $comm, $task. Types come from the kernel, from the module that a function is "
          "in, and from the program. Expressions can use struct members "
          "(file->f_path.dentry->d_name.name), array elements, bit fields, casts ((struct sock "
          "*)arg1), sizeof and enumerators. Text is compared by == with text in quotes, or by "
          "STRCMP(\"TEXT\", VALUE), which, as in bcc, only checks whether VALUE starts with "
          "TEXT; STREQ compares all of it. @user after a value means that it is an address in "
          "the process; for system calls and user functions this is the default. ntohs() and "
          "ntohl() swap bytes.\n\n"
          "Formats are those of printf: %d %u %x %o %c %s %p with l, ll, h and widths; %K and %U "
          "show the function of the kernel or of the process that contains an address, %I an "
          "IPv4 or IPv6 address, %E an errno by name. A value read from memory that is not "
          "accessible is shown as (fault); an event whose filter reads such memory is not shown, "
          "and counts as not judged. Text longer than --string-size ends in three dots, and "
          "counts as shortened.",
      .overhead =
          "one program per event, which runs the expressions as native code: about a tenth of a "
          "microsecond for events that a filter drops, a microsecond or more for events that are "
          "printed; a trap for each call of a user function",
      .examples =
          {{"trace 'sys_openat \"%s\", filename'", "files that are opened"},
           {"trace 'sys_read (count > 20000) \"read %d bytes\", count'",
            "reads of more than 20,000 bytes"},
           {"trace 'r::sys_read (retval < 0) \"%E\", retval'", "reads that fail, and why"},
           {"trace 'r::sys_read ($latency > 1000000) \"%d bytes in %lu ns\", $entry(count), $latency'",
            "reads that take longer than a millisecond"},
           {"trace 'vfs_read \"%s\", file->f_path.dentry->d_name.name'",
            "names of files by a function of the kernel"},
           {"trace 't:block:block_rq_complete (args->nr_sector > 64) \"%d sectors\", "
            "args->nr_sector'",
            "large block requests"},
           {"trace 'r:bash:readline \"%s\", retval'", "commands that are typed into bash"},
           {"trace '/usr/bin/app:handle (req->size > 4096) \"%s\", req->path'",
            "large requests of a program that was built with -g"},
           {"trace -U -a 'r::sys_futex \"%d\", retval'",
            "results of a system call, with addresses and modules of the stacks"},
           {"trace -U -M 10 'c:malloc (arg1 > 100000) \"%d bytes\", arg1'",
            "ten large allocations, with their stacks"}},
      .questions = {{"Which files does a process open?",
                     "trace -p 1234 'sys_openat \"%s\", filename'"},
                    {"With which arguments is a function called?",
                     "trace 'c:setenv(char *name, char *value) \"%s=%s\", name, value'"},
                    {"Which system calls fail, and why?",
                     "trace 'r::sys_connect (retval < 0) \"%E\", retval'"}},
      .differs = {{Difference::bcc,
                   "Parameters of kernel functions and system calls have their names and types "
                   "without a signature. %d shows all 64 bits of a value if its type is known; "
                   "argN without a type is an int there, too. Comparisons follow C's types, so "
                   "that retval < 0 holds for errors. %E, %I, STREQ and == with a text are not "
                   "in bcc."}},
      .object = skeleton<trace_bpf>(),
      .positionals = {shared::target_arguments(
          "sys_execve \"%s\", arg1", "PROBE",
          "what to trace, under which condition, and what to print: 'SPEC (FILTER) \"FORMAT\", VALUE, ...'")},
      .options = options(),
      .elsewhere = {{'b', "buffer-pages", "use --ring-size BYTES"},
                    {'S', "", "use --include-self"},
                    {'u', "unix-timestamp", "--json has the time of each event"},
                    {'B', "bin_cmp", "compare bytes: ((u8 *)VALUE)[N] == 0x12"},
                    {'s', "sym_file_list", "functions of all programs are shown by name"},
                    {'A', "aggregate", "funccount and stackcount count events"}},
      .hooks = {traced_by_word("places", tracing::specs, words_that_ask_for_entries)},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid, id::tid.with(""), id::comm),
               field<&Event::cpu>("cpu", "CPU", as::wide(as::number, -4), "CPU").with("print-cpu"),
               field<&Event::target>("target", "FUNC", as::wide(as::target, -16),
                                     "function, tracepoint or probe"),
               derived<Event, message>("message", "-", as::rest, "the message of the probe"),
               with("json", {derived<Event, values>("values", "VALUES", as::text,
                                                    "its values, each as the format shows it")}),
               who<&Event::who>(id::uid.with("json"), id::cgroup)},
              "kernel-stack")
              .with_callers<&Event::user_stack, &Event::who>("user-stack")
              .timed({{TimeColumn::wall, "TIME", 12, "time"},
                      {TimeColumn::since_start, "TIME(s)", 14, "timestamp"}})
              .with_user_functions()
              .high_rate()
              .only(has_text),
      .announce = "Tracing",
      .look_up = tracing::parse_probes,
      .compile = tracing::compile_probes,
  };
}
