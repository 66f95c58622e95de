#include "docs/commands.hpp"

#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "base/nearest.hpp"
#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "coretap/tool.hpp"
#include "coretap/version.hpp"
#include "docs/completion_scripts.hpp"
#include "docs/man.hpp"
#include "lists/lists.hpp"
#include "run/commands.hpp"
#include "run/run.hpp"
#include "run/tool_links.hpp"
#include "serve/serve.hpp"
#include "text/errors.hpp"

namespace coretap {

namespace {

using Words = std::vector<std::string>;

int no_such(std::string_view what) {
  std::vector<std::string_view> known;
  for (auto& command : commands()) known.push_back(command.name);
  for (auto& call : all_names()) known.push_back(call.name);
  auto meant = did_you_mean(what, known);
  print_error("coretap",
              {fmt::format("there is no tool or command '{}'", what),
               {},
               fmt::format("{}{}coretap list shows all tools, coretap --help all commands", meant,
                           meant.empty() ? "" : " ")});
  return kUsage;
}

int run_help(const Config&, const Words& words) {
  Sink out;
  if (words.empty())
    out.write(overview());
  else if (auto call = called(words[0]); call.tool)
    out.write(help_text(build(*call.tool)));
  else if (auto* command = find_command(words[0]))
    out.write(help_text(*command));
  else
    return no_such(words[0]);
  return end_of(out);
}

int run_version(const Config&, const Words&) {
  Sink out;
  out.line(fmt::format("coretap {}", kVersion));
  out.line(build_words());
  return end_of(out);
}

int run_completion(const Config&, const Words& words) {
  auto script = completion_script(words[0]);
  if (script.empty()) {
    print_error("coretap", {fmt::format("completion: there is no script for '{}'", words[0]),
                            {},
                            "there are: bash, zsh, fish"});
    return kUsage;
  }
  Sink out;
  out.write(script);
  return end_of(out);
}

Option json() { return flag(0, "json", "one JSON object per line"); }

int failed(const OwnCommand& command, Error error) {
  error.what = fmt::format("{}: {}", command.name, error.what);
  print_error("coretap", error);
  return error.status;
}

int run(const OwnCommand& command, const Words& arguments) {
  auto name = command_of(command.name);
  auto see = fmt::format("see {} --help", name);
  Invocation invocation;
  auto words = take_options(invocation, name, options_of(command), arguments);
  if (!words) return failed(command, words.error());
  if (invocation.what != Invocation::run) {
    Sink out;
    out.write(help_text(command));
    return end_of(out);
  }
  words->insert(words->end(), invocation.config.command.begin(), invocation.config.command.end());
  if (words->size() > command.most)
    return failed(
        command,
        {fmt::format("unexpected argument '{}'", (*words)[command.most]), {}, see, kUsage});
  if (words->size() < command.least)
    return failed(command, {fmt::format("needs {}", command.arguments), {}, see, kUsage});
  for (auto& word : *words)
    if (word.empty()) return failed(command, {"an argument is empty", {}, see, kUsage});
  return command.run(invocation.config, *words);
}

}  // namespace

const std::vector<OwnCommand>& commands() {
  static const std::vector<OwnCommand> all = {
      {.name = "list",
       .summary = "list all tools",
       .description = "By subsystem, each with one line about what it shows.",
       .options = {json()},
       .run = run_list},
      {.name = "find",
       .arguments = "WORD...",
       .least = 1,
       .most = SIZE_MAX,
       .summary = "search questions, tools and options",
       .description =
           "Prints every question with the command line that answers it, every tool and every "
           "option that has words starting with all of these. Exit status 1: nothing was found.",
       .options = {json()},
       .run = run_find},
      {.name = "doctor",
       .summary = "check which tools this kernel and these rights can run",
       .description =
           "Tries what the kernel offers, loads the programs of every tool without attaching "
           "them, and prints what is missing.",
       .options = {json()},
       .run = run_doctor},
      {.name = kTplist.name,
       .arguments = "[PATTERN]",
       .most = 1,
       .summary = kTplist.summary,
       .description =
           "Tracepoints of the kernel that match PATTERN, with -l or -p the USDT probes of a file "
           "or of processes, with -f functions. In PATTERN * stands for any text, ? for one "
           "character and [...] for one of several; it needs quotes, or the shell takes it for "
           "names of files. It is matched with CATEGORY:EVENT, PROVIDER:PROBE or the name alone, "
           "with -f also with MODULE:FUNCTION. Nothing is attached. Exit status 1: nothing "
           "matches.",
       .options = tplist_options(),
       .examples = {{"tplist -v 'block:*'", "tracepoints of block devices and their fields"},
                    {"tplist -b sched_switch",
                     "its arguments as programs of type tracing get them"},
                    {"tplist -v -l c", "USDT probes of the C library"},
                    {"tplist -p 1234", "USDT probes of the files that a process has mapped"},
                    {"tplist -f -v 'tcp_send*'",
                     "such functions of the kernel, which can be traced, and their prototypes"}},
       .rights =
           "The kernel's tracepoints and functions: root, or CAP_DAC_READ_SEARCH for tracefs (and "
           "CAP_SYS_ADMIN where tracefs is not mounted). Processes: the right to trace them. Files: "
           "the right to read them.",
       .output =
           "A line for each: CATEGORY:EVENT, PATH PROVIDER:PROBE, or the function and in brackets "
           "its module. With -v a tracepoint is followed by the fields of its record, without those "
           "that all tracepoints have, a probe by how many places and arguments it has, a function "
           "of the kernel or of a module by its prototype, if their type information has it. With -vv "
           "fields have their offsets and sizes, and probes their offsets in the file and their "
           "arguments as the compiler placed them. A function that cannot be traced is marked with "
           "the reason. Words for trace, funccount and others are t:CATEGORY:EVENT, "
           "u:PATH:PROVIDER:PROBE, MODULE:FUNCTION and PATH:FUNCTION.",
       .json =
           "Each line has type: tracepoint (category, name, fields: declaration, offset_bytes, "
           "size_bytes, signed), raw_tracepoint (name, prototype, module), usdt (path, provider, name, "
           "locations: offset_bytes, semaphore_offset_bytes, arguments), function (name, module, "
           "traceable, which is null where the kernel does not tell, why, prototype) or "
           "user_function (path, name, offset_bytes).",
       .complete = Complete::tracepoint,
       .run = run_tplist},
      {.name = kBpflist.name,
       .summary = kBpflist.summary,
       .description =
           "How many BPF programs, maps and links each process has descriptors of. The process - "
           "stands for what no process has a descriptor of: what is pinned or attached permanently, "
           "and what other objects hold, such as the maps of a program. With -l each object. Exit "
           "status 1: there is none.",
       .options = bpflist_options(),
       .examples = {{"bpflist", "who uses BPF"},
                    {"bpflist -vv", "with the probes of each process"},
                    {"bpflist -l", "what is loaded, where it is attached, what its runs cost"}},
       .rights =
           "Root, or CAP_SYS_ADMIN and CAP_SYS_PTRACE. Without them it counts what this user's own "
           "processes have.",
       .output =
           "PID COMM TYPE COUNT: each object counts once for a process, where bcc counts descriptors. With -v also programs that "
           "processes attached to perf events: kprobe, uprobe, tracepoint and others; -vv prints "
           "where. With -l a line for each object and process that has it: NAME is the program's, "
           "also of a link. MEMORY is in bytes. RUNS and NS/RUN, the mean nanoseconds of a run, are "
           "those since the kernel began to count (kernel.bpf_stats_enabled). ATTACH: where a link, "
           "or without one a program, is attached, as far as this kernel tells.",
       .json =
           "Each line has type, pid and comm, which are null where no process has the object. "
           "Without -l the type is count (kind, count). With -l it is prog (id, kind, name, "
           "memory_bytes, attach_point, runs, run_time_ns, average_ns, recursion_misses), map (id, "
           "kind, name, memory_bytes, key_bytes, value_bytes, max_entries) or link (id, kind, name, "
           "attach_point, prog_id). What was never counted is null.",
       .run = run_bpflist},
      {.name = "serve",
       .arguments = "[FILE]",
       .most = 1,
       .summary = "run tools all the time and serve their metrics to Prometheus",
       .description =
           "Each entry of FILE, in TOML, is the command line of a tool, as typed after coretap. "
           "The metrics are at http://127.0.0.1:9961/metrics unless FILE or --listen says "
           "otherwise, in the text format that Prometheus and all that understand it read. Names, "
           "units and labels follow from the fields of the tool. SIGHUP reads FILE again: entries "
           "that are the same go on with their counters. A tool that ends is started again. With "
           "a FILE that is wrong nothing starts; at SIGHUP the configuration before it stays.",
       .options = serve_options(),
       .examples = {{"serve --run 'biolatency -D' --run runqlat", "two tools, without a file"},
                    {"serve --once --every 10 --run tcpretrans", "one page, of ten seconds"},
                    {"serve --check /etc/coretap/exporter.toml",
                     "what this file makes, and whether it runs here"},
                    {"serve exporter.toml --textfile /var/lib/node_exporter/ct.prom",
                     "through the text files of node_exporter, without a port"}},
       .rights =
           "What the tools need: CAP_BPF and CAP_PERFMON for most, and more for tools that need "
           "more, as their pages say. Each tool drops what it no longer needs once it has attached. "
           "The process that answers requests has no capability, no BPF descriptor and a filter of "
           "system calls; it connects to others only with [otlp]. Metrics hold no command lines, paths or addresses, and command names only "
           "where labels asks for them. Profiles have command names, process ids, functions and paths of "
           "files, of all users. Requests are not encrypted and not authenticated: the "
           "default address is this machine alone. Events that are pushed have all fields of the event, "
           "and are not encrypted either.",
       .output =
           "A page in the text format of Prometheus. Names are coretap_TOOL_WORD_UNIT; times are in "
           "seconds, amounts of memory and data in bytes; counters end with _total. Labels are the "
           "keys of the tool's JSON that have few values: disks, operations, errors, names of "
           "system calls. Names that any user can make (comm, cgroup, uid) are labels only where the "
           "entry's labels names them, and process ids, addresses and paths never are. An entry has "
           "as many lines as its max_series says; what has no series of its own is counted in one "
           "whose label is other, so that rates of sums stay exact. A series that is new is shown as "
           "0 first.\n\n"
           "Tools with stacks have profiles: /debug/pprof/NAME?seconds=N is what NAME counts in the "
           "next N seconds, 60 at most, and without seconds what it has counted since it started, in "
           "the format of pprof. /debug/pprof/ lists them. Four can be waited for at a time.\n\n"
           "All tools have these, by the label tool: coretap_events_total, which is all events that "
           "hooks saw, by outcome (shown, filtered, lost and others, as in the ledger of "
           "coretap-output(7)); coretap_events_degraded_total; coretap_tool_up; coretap_tool_down "
           "with the reason; coretap_tool_restarts_total; and what they cost. A tool that does not "
           "answer within a second is left out.\n\n"
           "With the table [otlp] in FILE, metrics are also pushed by OTLP over HTTP, and events of tools "
           "whose entry asks for it as log records.\n\n"
           "coretap-exporter.toml(5) describes FILE.",
       .complete = Complete::file,
       .run = run_serve},
      {.name = "link",
       .arguments = "[DIRECTORY]",
       .most = 1,
       .summary = "create a link for each tool, so that it runs by its own name",
       .description =
           "The links lead to this executable and are created in DIRECTORY, by default the "
           "directory of the executable. With a prefix, the part after the last hyphen of the name "
           "is the tool. Nothing is overwritten: if one of the names exists and is not such a "
           "link, no link is created. Where a package installed this executable, the directory is "
           "recorded in /var/lib/coretap/links, and the links are removed with the package.",
       .options = link_options(),
       .complete = Complete::directory,
       .run = run_link},
      {.name = "help",
       .arguments = "[TOOL|COMMAND]",
       .most = 1,
       .summary = "print what a tool or command does, and its options",
       .complete = Complete::topic,
       .run = run_help},
      {.name = "man",
       .arguments = "[TOOL|output]",
       .most = 1,
       .summary = "show the manual page of a tool, or of coretap",
       .description =
           "On a terminal the page is shown by man(1) or mandoc(1); to a pipe or a file it is "
           "written as mdoc, for man -l - or groff -mdoc.",
       .options = man_options(),
       .words = man_topics,
       .run = run_man},
      {.name = "completion",
       .arguments = "SHELL",
       .least = 1,
       .most = 1,
       .summary = "print the completion script for bash, zsh or fish",
       .description =
           "The script calls coretap for the candidates, and also completes links to it that are "
           "on PATH.",
       .words = completion_shells,
       .run = run_completion},
      {.name = "version", .summary = "print the version", .run = run_version},
  };
  return all;
}

const OwnCommand* find_command(std::string_view name) {
  for (auto& command : commands())
    if (command.name == name) return &command;
  return nullptr;
}

std::vector<Option> options_of(const OwnCommand& command) {
  auto all = command.options;
  all.push_back(flag('h', "help", "print this help"));
  return all;
}

std::string overview() {
  auto text = std::string(
      "coretap: CO-RE BPF tracers for Linux in one executable\n\n"
      "Usage: coretap TOOL [OPTIONS]     run a tool; with --help, print its options\n"
      "       coretap COMMAND [OPTIONS]  one of the commands below\n\nCommands:\n");
  for (auto& c : commands())
    text += help_row(fmt::format("{}{}{}", c.name, c.arguments.empty() ? "" : " ", c.arguments),
                     c.summary);
  return text + "\nMore: coretap COMMAND --help; man coretap\n";
}

std::string help_text(const OwnCommand& command) {
  auto typed = command_of(command.name);
  auto text = fmt::format("{}: {}\n\nUsage: {} [OPTIONS]{}{}\n", typed, command.summary, typed,
                          command.arguments.empty() ? "" : " ", command.arguments);
  if (!command.description.empty()) text += '\n' + wrap(command.description, 0);
  text += "\nOptions:\n";
  for (auto& o : options_of(command)) text += help_row(option_words(o), o.doc);
  if (!command.examples.empty()) text += "\nExamples:\n";
  for (auto& e : command.examples)
    text += fmt::format("  {}\n{}", as_typed(command.name, e.command), wrap(e.meaning, 6));
  return text + fmt::format("\nMore: man {}\n",
                            command.output.empty() ? "coretap" : page_of(command.name));
}

std::optional<int> run_command(const Words& arguments) {
  Words rest(arguments.begin() + 1, arguments.end());
  auto name = arguments[0];
  if (name == "--help" || name == "-h") name = "help";
  if (name == "--version" || name == "-V") name = "version";
  if (auto* command = find_command(name)) return run(*command, rest);
  if (called(name).tool) return std::nullopt;
  return no_such(name);
}

}  // namespace coretap
