#include "docs/commands.hpp"

#include <algorithm>
#include <climits>

#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/naming.hpp"
#include "cli/parser.hpp"
#include "compare/compare.hpp"
#include "coretap/option_parts.hpp"
#include "coretap/tool.hpp"
#include "coretap/version.hpp"
#include "docs/completion_scripts.hpp"
#include "docs/guide.hpp"
#include "docs/man.hpp"
#include "docs/search.hpp"
#include "lists/lists.hpp"
#include "mcp/mcp.hpp"
#include "run/commands.hpp"
#include "run/record.hpp"
#include "run/run.hpp"
#include "run/run_words.hpp"
#include "run/tool_links.hpp"
#include "serve/serve.hpp"
#include "text/errors.hpp"
#include "why/why.hpp"

namespace coretap {

namespace {

using Words = std::vector<std::string>;

int failed(std::string_view command, Error error) {
  error.what = fmt::format("{}: {}", command, error.what);
  return print_error("coretap", error);
}

int no_such(std::string_view what) {
  std::vector<std::string_view> known;
  for (auto& command : commands()) known.push_back(command.name);
  return print_error("coretap",
                     no_such_tool(what, "there is no tool or command", std::move(known)));
}

int run_help(const Config&, const Words& words) {
  if (words.empty()) return print_text(overview());
  if (auto call = called(words[0]); call.tool) return print_text(help_text(build(call)));
  if (auto* command = find_command(words[0])) return print_text(help_text(*command));
  return no_such(words[0]);
}

int run_doctor_of(const Config& config, const Words& words) {
  for (auto& word : words)
    if (!called(word).tool) return failed("doctor", no_such_tool(word));
  return run_doctor(config, words);
}

int run_version(const Config&, const Words&) {
  return print_text(fmt::format("coretap {}\n{}\n", kVersion, build_words()));
}

int run_completion(const Config&, const Words& words) {
  auto script = completion_script(words[0]);
  if (!script.empty()) return print_text(script);
  return failed("completion", {fmt::format("there is no script for '{}'", words[0]),
                               {},
                               "there are: bash, zsh, fish",
                               kUsage});
}

Option json() { return flag(0, "json", "one JSON object per line"); }

int run_show(const Config& config, const Words& words) {
  return show_recordings(words, config.given("info"));
}

/// Behind the command's own options and its first word.
Words::const_iterator end_of_own(const OwnCommand& command, const Words& arguments) {
  const auto options = options_of(command);
  for (auto word = arguments.begin(); word != arguments.end(); ++word) {
    if (!word->starts_with('-')) return word + 1;
    const auto takes_next = [&](const Option& o) {
      return !o.metavar.empty() && (*word == fmt::format("--{}", o.name) ||
                                    (o.letter && *word == fmt::format("-{}", o.letter)));
    };
    if (std::ranges::any_of(options, takes_next) && ++word == arguments.end()) break;
  }
  return arguments.end();
}

int run(const OwnCommand& command, const Words& arguments) {
  auto name = command_of(command.name);
  Invocation invocation;
  // Options after the first word are not the command's own.
  const auto own = command.passes_options ? end_of_own(command, arguments) : arguments.end();
  auto words = take_options(invocation, name, options_of(command), {arguments.begin(), own});
  if (words) words->insert(words->end(), own, arguments.end());
  auto refused = [&](std::string what) {
    return failed(command.name, usage(std::move(what), fmt::format("see {} --help", name)));
  };
  if (!words) return failed(command.name, words.error());
  if (invocation.what != Invocation::run) return print_text(help_text(command));
  words->insert(words->end(), invocation.config.command.begin(), invocation.config.command.end());
  if (words->size() > command.most)
    return refused(fmt::format("unexpected argument '{}'", (*words)[command.most]));
  if (words->size() < command.least) return refused(fmt::format("needs {}", command.arguments));
  if (std::ranges::count(*words, "")) return refused("an argument is empty");
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
       .summary = "find the tool for a question or a term, such as slow disk",
       .description =
           "Prints questions (with the command lines that answer them), tools, pages of the guide "
           "and commands that match the WORDs, the best first, and options that have all of them. "
           "It knows endings, beginnings of words, and many terms of users and of other programs "
           "(wall clock, THP, netstat). With --json, type is question, tool, page, command, option, "
           "or elsewhere: another suite's command for what is not here. Exit status 1: nothing was "
           "found.",
       .options = {json()},
       .run = run_find},
      {.name = "record",
       .arguments = "TOOL...",
       .least = 1,
       .most = SIZE_MAX,
       .summary = "record tools, or keep their last minutes for a trigger",
       .description =
           "Records what a tool would print, and prints nothing. With --output, one TOOL follows "
           "with its options. With --dir or --last there can be several: each TOOL is one word, "
           "quoted with its options. coretap show prints the files in any form of output.\n\n"
           "With --last it is a flight recorder: only the last minutes of each tool stay, in parts "
           "of at most ten seconds. A trigger of --on, or SIGUSR1, saves these in a dump: a "
           "directory named by time and trigger, which coretap show prints as if it were one "
           "recording. Nothing is copied and nothing pauses: a dump consists of links.",
       .options = record_options(),
       .examples = {{"record -o opens.ctr opensnoop -x", "failed opens, into a file"},
                    {"record --dir night -d 8h 'biolatency -D' runqlat",
                     "two tools, each into a file"},
                    {"record --last 5m --on 'psi memory some 150ms/1s',oomkill vmscan drsnoop",
                     "what went before memory was short"}},
       .rights =
           "Those of the tools. The directory must belong to the user who records, and no other user "
           "may write there; it must not be a symbolic link. Files can be read by their "
           "owner only.",
       .output =
           "Nothing on standard output. The ring has at most three eighths of --most, a dump at "
           "most seven sixteenths; older dumps are removed for newer ones, or if there are more "
           "than --keep. If there is no space, what is not recorded is counted, and recording "
           "goes on when there is. A dump has files TOOL.NUMBER.ctr, each a separate recording, "
           "and why.json: triggers, host, tools, and events that were not recorded. Triggers "
           "while a dump is being made (--after) are added to its why.json. If the recorder is "
           "killed, the next one saves what is left of the ring as a dump (interrupted).\n\n"
           "Triggers: 'psi cpu|memory|io some|full STALL/WINDOW', measured by the kernel; 'load > "
           "N' or 'load > N/cpu'; the name of a tool that shows single events, for each of them; "
           "'TOOL > N/s'. Such a tool is recorded, too.\n\n"
           "Exit status: 0, or the first one of a tool that was not 0; 1 if events were not "
           "recorded for lack of space.",
       .passes_options = true,
       .complete = Complete::tool,
       .run = run_record},
      {.name = "show",
       .arguments = "FILE... [OPTION...]",
       .least = 1,
       .most = SIZE_MAX,
       .summary = "print a recording that a tool or coretap record made",
       .description =
           "Prints what the tool printed when it was recorded, byte for byte, or in another form: "
           "OPTIONs are those of the tool, such as --json, --csv, --sort, --top or --output; for "
           "tools with stacks also --folded, --svg and --pprof. Options that decide what is traced "
           "are refused: they must be given when the run is recorded. Times are in the time zone "
           "of the recorder. No rights are needed, and nothing is traced. A recording whose end "
           "is missing is shown as far as it goes. FILE can be a dump of coretap record --last: its "
           "parts are shown as one recording. If there are several recordings, each follows a "
           "title, or all are JSON or CSV; a name after FILE shows that tool only. --perfetto OUT writes "
           "the events as a trace for Perfetto, those of several recordings as one timeline."
           "\n\nRecord with: coretap opensnoop --record opens.ctr -d 60, which prints as always.",
       .options = {flag(0, "info", "print where, when and with which options it was recorded")},
       .examples = {{"show opens.ctr --json", "the recorded events as JSON"},
                    {"show --info opens.ctr", "what is in the file"},
                    {"show /run/coretap/hindsight/2026-11-29T03:14:07-oomkill --perfetto t.pftrace",
                     "the events of all tools of a dump as one timeline"},
                    {"show /run/coretap/hindsight/2026-11-29T03:14:07-oomkill vmscan --csv",
                     "one of the tools of a dump"}},
       .passes_options = true,
       .complete = Complete::file,
       .run = run_show},
      {.name = "guide",
       .arguments = "[PAGE]",
       .most = 1,
       .summary = "procedures for common problems, step by step",
       .description =
           "Each step is a question, the command that answers it, how to read its output, and what "
           "to do next, such as settings of the kernel and their risks. Without PAGE it lists the "
           "pages. coretap-guide(7) has all of them.",
       .options = {json()},
       .examples = {{"guide checklist", "the first minute on a slow machine"},
                    {"guide memory", "memory that is short, fragmented, or leaked"}},
       .words = guide_topics,
       .run = run_guide},
      {.name = "doctor",
       .arguments = "[TOOL...]",
       .most = SIZE_MAX,
       .summary = "check which tools this kernel and your privileges allow",
       .description =
           "Tests what the kernel supports, loads the programs of every tool, or of each TOOL, "
           "without attaching them, and prints what is missing. Exit status 3: no tool with a "
           "program can run, or one of those that were named cannot.",
       .options = {json()},
       .complete = Complete::tool,
       .run = run_doctor_of},
      {.name = kTplist.name,
       .arguments = "[PATTERN]",
       .most = 1,
       .summary = kTplist.summary,
       .description =
           "Lists the kernel's tracepoints that match PATTERN; with -l or -p, the USDT probes of "
           "a file or of processes; with -f, functions. In PATTERN, * matches any text, ? one "
           "character and [...] one of several; quote it, or the shell expands it to file names. "
           "It is compared with CATEGORY:EVENT, PROVIDER:PROBE or the name alone, with -f also "
           "with MODULE:FUNCTION. Nothing is attached. Exit status 1: nothing matches.",
       .options = tplist_options(),
       .examples = {{"tplist -v 'block:*'", "tracepoints of block devices and their fields"},
                    {"tplist -b sched_switch",
                     "its arguments as programs of type tracing get them"},
                    {"tplist -v -l c", "USDT probes of the C library"},
                    {"tplist -p 1234", "USDT probes of the files that a process has mapped"},
                    {"tplist -f -v 'tcp_send*'",
                     "matching kernel functions, which of them can be traced, and prototypes"}},
       .rights =
           "The kernel's tracepoints and functions: root, or CAP_DAC_READ_SEARCH for tracefs "
           "(and CAP_SYS_ADMIN if tracefs is not mounted). Processes: the right to trace them. "
           "Files: the right to read them.",
       .output =
           "One line each: CATEGORY:EVENT, PATH PROVIDER:PROBE, or the function with its module "
           "in brackets. With -v, a tracepoint is followed by the fields of its record, except "
           "those that all tracepoints have; a probe by its number of locations and arguments; a "
           "function of the kernel or of a module by its prototype, if the type information has "
           "it. With -vv, fields have their offsets and sizes, and probes their offsets in the "
           "file and their arguments as the compiler placed them. A function that cannot be "
           "traced is marked with the reason. For trace, funccount and others, write "
           "t:CATEGORY:EVENT, u:PATH:PROVIDER:PROBE, MODULE:FUNCTION or PATH:FUNCTION.",
       .json =
           "Each line has type: tracepoint (category, name, fields: declaration, offset_bytes, "
           "size_bytes, signed), raw_tracepoint (name, prototype, module), usdt (path, provider, "
           "name, locations: offset_bytes, semaphore_offset_bytes, arguments), function (name, "
           "module, traceable, which is null if the kernel does not report it, why, prototype) "
           "or user_function (path, name, offset_bytes).",
       .complete = Complete::tracepoint,
       .run = run_tplist},
      {.name = kBpflist.name,
       .summary = kBpflist.summary,
       .description =
           "Counts the BPF programs, maps and links that each process holds descriptors of. The "
           "process - has those that no process holds a descriptor of: objects that are pinned, "
           "attached permanently, or held by other objects, such as the maps of a program. With "
           "-l, lists each object. Exit status 1: there are none.",
       .options = bpflist_options(),
       .examples = {{"bpflist", "who uses BPF"},
                    {"bpflist -vv", "with the probes of each process"},
                    {"bpflist -l", "what is loaded, where it is attached, what its runs cost"}},
       .rights =
           "Root, or CAP_SYS_ADMIN and CAP_SYS_PTRACE. Without them, it counts only objects held "
           "by this user's own processes.",
       .output =
           "PID COMM TYPE COUNT: an object counts once per process; bcc counts descriptors. With "
           "-v, programs that processes attached to perf events are included: kprobe, uprobe, "
           "tracepoint and others; -vv prints where. With -l, one line per object and process "
           "that holds it. NAME is that of the program, also for a link. MEMORY is in bytes. "
           "RUNS and NS/RUN, the mean nanoseconds per run, count since the kernel's statistics "
           "were enabled (kernel.bpf_stats_enabled). ATTACH is where a link, or a program "
           "without a link, is attached, as far as this kernel reports it.",
       .json =
           "Each line has type, pid and comm; pid and comm are null if no process holds the "
           "object. Without -l, type is count (kind, count). With -l, it is prog (id, kind, "
           "name, memory_bytes, attach_point, runs, run_time_ns, average_ns, recursion_misses), "
           "map (id, kind, name, memory_bytes, key_bytes, value_bytes, max_entries) or link (id, "
           "kind, name, attach_point, prog_id). Values that were never counted are null.",
       .run = run_bpflist},
      {.name = "symbolize",
       .arguments = "FILE [ADDRESS...]",
       .least = 1,
       .most = SIZE_MAX,
       .summary = "print functions (also inlined) and source lines of addresses",
       .description =
           "FILE is a program or library, ADDRESS a hexadecimal number as addr2line and objdump "
           "have it: the address in the file, not in a process. Without ADDRESS, reads addresses "
           "from standard input. Debug information (DWARF 2 to 5) is read from a file with the "
           "same build id below /usr/lib/debug, from the file of the debug link, or from FILE; for "
           "Go programs without it, from the table of their runtime. Otherwise only the names of "
           "symbols are known. Separate .dwo files, and files that dwz shares, are not read. "
           "--debuginfod runs debuginfod-find, which sends the build id of FILE to the servers; "
           "if root runs it, it does so as user 65534, without rights, and the debug file is kept only "
           "in the directory of DEBUGINFOD_CACHE_PATH, if that user may write there. Exit status 1: nothing "
           "is known about any of the addresses.",
       .options = symbolize_options(),
       .examples = {{"symbolize /usr/bin/python3.11 0x1d2e40",
                     "the line, and the functions that were inlined there"},
                    {"symbolize --debug-root /srv/debug ./server < addresses",
                     "many addresses, with debug files from another directory"},
                    {"symbolize --debuginfod /usr/sbin/nginx 0x4d2a0",
                     "with the debug file that the distribution's server has"}},
       .rights = "The right to read the files.",
       .output =
           "ADDRESS FUNCTION at FILE:LINE. Inlined functions are marked with (inlined); each is "
           "followed by its caller, on a separate line, with the line of the call. A function "
           "that is known only by its symbol is followed by the offset in it.",
       .json =
           "Each line has type symbol: address, frames (the innermost first: function, "
           "linkage_name, offset_bytes, file, line, inlined) and why (the reason why something is "
           "unknown). linkage_name is null if it is the same as function; offset_bytes is null "
           "if debug information has the function.",
       .complete = Complete::file,
       .run = run_symbolize},
      {.name = "why",
       .arguments = "[SECONDS]",
       .most = 1,
       .summary = "what costs time here: the causes in words, and the next command",
       .description =
           "Accounts for all time of all threads for SECONDS (default: 10), reads the kernel's "
           "counters meanwhile, and prints what costs the target the most time: who or what "
           "causes it, the evidence, and the command that shows more. The target is a process, "
           "a cgroup or a command name; without one it is the whole machine.\n\n"
           "A finding costs at least a tenth of the busy time, and a twentieth of the time of one "
           "thread, in two of the three parts of the run. Busy time is all time in which threads "
           "have something to do. On a healthy system nothing is found, and the reason is printed. "
           "Waits on futexes count only as far as a thread is known to hold the lock: otherwise a "
           "wait for a lock looks like a wait for work. If locks cost time, their holders are "
           "found in the last two fifths of the run; if it is time in the kernel, the calls of the "
           "target are counted then; otherwise it ends earlier.",
       .options = why_options(),
       .examples = {{"why", "what slows down this machine?"},
                    {"why -p 1234 30", "what slows down process 1234?"},
                    {"why -c /system.slice/app.service", "the same of a service"},
                    {"why --fail --json 10", "in a script: status 5 if there is a cause"},
                    {"why --rules", "all causes that it knows"}},
       .rights = "Those of walltime: CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE, or root.",
       .output =
           "The first line is how many threads were busy. Then each cause: a sentence with its "
           "share of the busy time, the evidence, the processes, disks or cgroups that cause it, "
           "and a command. Causes of the target's own come first, unless others cost twice as "
           "much. Then notes: events that are wrong however little time they cost, such as dropped "
           "datagrams. Exit status: 0, or with --fail 5 if there is a finding.",
       .json =
           "The first line has type answer: subject, target, seconds, cpus, threads, time_ns, "
           "busy_ns, cpu_ns, certain (false: many events were not seen) and nothing_found (the "
           "reason, or null). Each cause has type finding: rank, id, text, share (of 1), "
           "lost_ns, below_thresholds, losers (processes, with their shares), evidence (name, value, source), culprits (kind, name), "
           "through (ids of findings that it causes) and command. Notes have type note: id, text, "
           "count and command.",
       .run = run_why},
      {.name = "compare",
       .arguments = "BEFORE... [--] AFTER...",
       .least = 1,
       .most = SIZE_MAX,
       .summary = "what changed between two recordings, and how certain that is",
       .description =
           "Each file is a recording (biolatency --record before.ctr --duration 300), or has the lines that "
           "the tool printed with --json and an interval. Compared are histograms; tables (rates of "
           "counts and sums, and means, of each key); events (rates by command and other labels, "
           "percentiles of their latency); and stacks (time or samples of each function, by itself "
           "and with what it calls, and of each stack; reasons, states and wakers are frames). "
           "Stacks need an interval, too: profile --record before.ctr --interval 1. Of walltime the "
           "states are compared, or, if it was recorded with --svg, its stacks by state. Two files are compared, or two sets of at least three, with "
           "-- between them. Their lengths may differ: rates and shares are compared, no counts.\n\n"
           "A load changes from second to second, so its intervals are not independent, and a test "
           "of all counts together would take that for a difference. Each recording is cut into "
           "eight groups of intervals; the spread between them, with the correlation of "
           "neighbouring intervals, gives the error. A change is shown if it is certain at 99 % "
           "for all lines together, and at least --at-least. A recording needs at least 16 "
           "intervals, and 8 values beyond a percentile. Lost events widen the ranges.\n\n"
           "Stacks are scaled to time: their values are per second. A change of a function or stack "
           "counts from half a percent of all time on; those with less are not compared. --svg "
           "draws a flame graph in which only certain changes are red (more) or blue (less).",
       .options = compare_options(),
       .examples = {{"compare before.ctr after.ctr", "what changed?"},
                    {"compare before.ctr after.ctr --fail-if 'p99 > +10%'",
                     "in a script: status 5 if p99 is certainly more than 10 % larger"},
                    {"compare before.ctr after.ctr --svg diff.svg",
                     "which functions take more time: red in a flame graph"},
                    {"compare before.ctr after.ctr --fail-if 'self/s of function=memcpy > +10%'",
                     "status 5 if a function takes certainly more time"},
                    {"compare --plan 5% before.ctr",
                     "how long recordings must be so that 5 % are found"},
                    {"compare --paired a1 a2 a3 a4 a5 a6 -- b1 b2 b3 b4 b5 b6",
                     "recordings in turns, which see the same drift of the load"}},
       .rights = "The right to read the files.",
       .output =
           "The first line has both recordings, what was lost, and facts that differ. Then a line "
           "each: the value before and after; the change, if it is certain; the range that "
           "contains it at 99 %; and the smallest change that would be found in 8 of 10 runs. "
           "Slots of histograms are powers of two, in which percentiles have ranges only; shares "
           "above their bounds are exact, and are tested instead. If there are several keys, a "
           "sentence has those that carry a change. Conditions of --fail-if are WHAT [of "
           "KEY=VALUE] > or < N, with %, ns, us, ms, s or /s. WHAT is p50, p90, p99, p99.9, mean, "
           "max, events/s, COLUMN/s, mean COLUMN, rate, share or lost; of stacks self/s, total/s and "
           "stack/s, of function=NAME or stack=COMMAND;...;NAME. A condition holds if the whole range does. Exit "
           "status: 5 if a condition holds; with --strict 6 if one is undecided and none holds.",
       .json =
           "The first line has type comparison: before and after (host, kernel, seconds, "
           "recordings, kept, lost), different, paired and rare_keys. Each line has type change: "
           "what, key, unit, a, b, change, low, high, p (for all lines together), smallest, "
           "contribution (of stacks: part of all time) and verdict (more, less, same, too_few, lost or untested); changes are "
           "parts of a. Type contribution: "
           "what, key, part, changed. Type condition: condition, answer (holds, does_not_hold or "
           "undecided) and text.",
       .complete = Complete::file,
       .run = run_compare},
      {.name = "serve",
       .arguments = "[FILE]",
       .most = 1,
       .summary = "run tools continuously and serve their metrics to Prometheus",
       .description =
           "Each entry of FILE, in TOML, is the command line of a tool, as typed after coretap. "
           "The metrics are at http://127.0.0.1:9961/metrics unless FILE or --listen says "
           "otherwise, in the text format of Prometheus and compatible software. Names, units "
           "and labels are derived from the fields of the tool. On SIGHUP, FILE is read again: "
           "unchanged entries keep their counters. A tool that exits is restarted. If FILE is "
           "invalid, nothing starts; on SIGHUP, the previous configuration stays in effect.",
       .options = serve_options(),
       .examples = {{"serve --run 'biolatency -D' --run runqlat", "two tools, without a file"},
                    {"serve --once --every 10 --run tcpretrans", "one page, covering ten seconds"},
                    {"serve --check /etc/coretap/exporter.toml",
                     "what this file produces, and whether its tools run here"},
                    {"serve exporter.toml --textfile /var/lib/node_exporter/ct.prom",
                     "through the textfile collector of node_exporter, without a port"}},
       .rights =
           "Those of the tools: CAP_BPF and CAP_PERFMON for most; some need more, as their pages "
           "say. Each tool drops the capabilities that it no longer needs once it is attached. "
           "The process that answers requests has no capabilities, no BPF descriptors and a "
           "system call filter; it opens connections only with [otlp]. Metrics contain no "
           "command lines, paths or addresses, and command names only if labels requests them. "
           "Profiles contain command names, process ids, functions and file paths, of all users. "
           "Requests are not encrypted and not authenticated: the default address is reachable "
           "only from this machine. Pushed events contain all fields of the event, and are not "
           "encrypted either.",
       .output =
           "A page in the text format of Prometheus. Names are coretap_TOOL_WORD_UNIT; times are "
           "in seconds, amounts of memory and data in bytes; counters end with _total. Labels "
           "are the keys of the tool's JSON that have few values: disks, operations, errors, "
           "names of system calls. Names that any user can create (comm, cgroup, uid) are labels "
           "only if the entry's labels key lists them; process ids, addresses and paths never "
           "are. An entry has at most max_series lines; values beyond that are counted in a "
           "series labelled other, so that rates of sums stay exact. A new series is shown as 0 "
           "first. Tools that show a state (loads, extfrag --index and --unusable) have gauges, "
           "which are read for each page.\n\n"
           "Tools with stacks have profiles: /debug/pprof/NAME?seconds=N is what NAME counts in "
           "the next N seconds (60 at most), or without seconds what it has counted since it "
           "started, in the format of pprof. /debug/pprof/ lists the profiles. At most four "
           "profile requests can wait at a time.\n\n"
           "All tools have these metrics, with the label tool: coretap_events_total, all events "
           "that hooks saw, by outcome (shown, filtered, lost and others, as in the ledger of "
           "coretap-output(7)); coretap_events_degraded_total; coretap_tool_up; "
           "coretap_tool_down with the reason; coretap_tool_restarts_total; and what they cost. "
           "A tool that does not answer within a second is left out.\n\n"
           "With the table [hindsight] in FILE, tools are also recorded, and the last minutes are "
           "saved by triggers, SIGUSR1 and requests POST /dump; coretap_hindsight_dumps_total, "
           "coretap_hindsight_bytes and coretap_hindsight_unrecorded_events_total are about it.\n\n"
           "With the table [otlp] in FILE, metrics are also pushed by OTLP over HTTP, and events "
           "as log records, for tools whose entry requests it.\n\n"
           "coretap-exporter.toml(5) describes FILE.",
       .complete = Complete::file,
       .run = run_serve},
      {.name = "mcp",
       .arguments = "[TOOL...]",
       .most = SIZE_MAX,
       .summary = "offer tools to clients of the Model Context Protocol",
       .description =
           "Reads requests from standard input and answers them on standard output, one message of "
           "JSON-RPC 2.0 per line, until the input ends. It offers why and all tools, or only each "
           "TOOL (also why), which makes the list shorter. A call runs the tool with --json for "
           "its parameter seconds (5, at most 60); its other parameters are the tool's options, "
           "without those that write files, read files, run commands, or change how traced "
           "programs run. Four calls can run at a time, and an answer has 256 KiB of output at "
           "most. No shell is involved, no network, and nothing is changed; but what tools show, "
           "such as command lines, paths and queries, goes to the program that asks.",
       .examples = {{"mcp", "for a client that starts it"},
                    {"mcp why walltime runqlat biolatency", "only these"}},
       .complete = Complete::tool,
       .run = run_mcp},
      {.name = "link",
       .arguments = "[DIRECTORY]",
       .most = 1,
       .summary = "create a link for each tool, so that it runs by its own name",
       .description =
           "The links point to this executable and are created in DIRECTORY, by default the "
           "directory of the executable. With a prefix, the part after the last hyphen of the "
           "name is the tool. Nothing is overwritten: if one of the names exists and is not such "
           "a link, no link is created. If a package installed this executable, the directory is "
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
       .arguments = "[PAGE]",
       .most = 1,
       .summary = "show the manual page of a tool, or of coretap",
       .description =
           "PAGE is a tool or command, or one of exporter.toml, guide, migrate and output (options "
           "and formats of all tools). The page is shown by man(1) or mandoc(1), also in a pipe; without them its source is "
           "printed.",
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
      "coretap: CO-RE BPF tracers for Linux in one executable; most need root\n\n"
      "Usage: coretap TOOL [OPTIONS]     run a tool; with --help, print its options\n"
      "       coretap COMMAND [OPTIONS]  one of the commands below\n\nCommands:\n");
  for (auto& c : commands())
    text += help_row(fmt::format("{}{}{}", c.name, c.arguments.empty() ? "" : " ", c.arguments),
                     c.summary);
  return text +
         "\nTo begin: coretap why prints what costs time here, and which tool shows more;\n"
         "          coretap guide lists procedures; coretap find WORD... finds a tool\n"
         "More: coretap COMMAND --help; man coretap\n";
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
