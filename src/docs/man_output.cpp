// coretap-output(7): options, formats and terms that all tools share and that their pages omit.
#include <fmt/format.h>

#include "cli/help.hpp"
#include "cli/parser.hpp"
#include "docs/man.hpp"
#include "docs/man_parts.hpp"
#include "stacks/stack_group.hpp"
#include "text/json_kinds.hpp"
#include "unwind/walker.hpp"

namespace coretap {

namespace {

/// A tool with all options that the library adds: some depend on other options or on fields.
Tool any_tool() {
  Tool tool;
  tool.name = "NAME";
  tool.positionals = shared::interval_count();
  tool.options = {shared::pid(), shared::comm(), shared::cgroup()};
  EventReport report;
  auto nothing = [](auto*, auto&) { return Value(); };
  report.fields = {{.key = "pid", .read = nothing}, {.key = "container", .read = nothing}};
  tool.report = report;
  AggregateReport histograms;
  histograms.layout = AggregateReport::histograms;
  histograms.fields = {{.key = "comm", .read = nothing}};
  tool.other_reports = {{"", histograms}, {"", StackReport{"samples"}}};
  return tool;
}

void options(Page& p) {
  p.section("COMMON OPTIONS");
  p.prose(
      "A tool that uses one of these letters for something else accepts only the long name, as "
      "its page shows. Long names mean the same in all tools and can be shortened to any "
      "unambiguous prefix.");
  p.begin("-tag -width Ds");
  for (auto& o : all_options(any_tool())) p.item(option_item(o), o.doc);
  p.item(
      "Fl - Ar COMMAND Op Ar ARGS ...",
      "Runs this command with the privileges of the caller, and exits when it ends. A tool that can "
      "filter by process traces the command and its children only. The command starts after all "
      "programs are attached, so that its first events are seen.");
  p.end();
  p.prose(
      "Times are given in seconds, or with a unit: 100ms, 2s, 5m, 1h. Sizes are given in bytes, or "
      "with K, M or G for KiB, MiB or GiB.");
}

void filters(Page& p) {
  p.section("FILTERS");
  p.prose(
      "Filters by task apply to the task that an event belongs to, which need not be the task "
      "that runs when the event happens: for block I/O it is the task that submitted the "
      "request, for a TCP connection the task that owns the socket. Process and thread ids are "
      "those of the pid namespace that the tool runs in. Cgroups are version 2 cgroups; a filter "
      "by cgroup also matches the cgroups below it. A list, or an option that is given several "
      "times, matches if any of its values matches; filters of different kinds must all match. "
      "--comm compares whole names, --name matches a part. Filters are evaluated in the kernel, "
      "and the events that they exclude are counted.\n\n"
      "--max-rate N limits the events that pass the filters, by their timestamps. After a second "
      "or more with fewer events, a burst of N is allowed, so that a second has at most twice N. "
      "Events above the limit are counted as limited.");
}

void rows(Page& p) {
  p.section("ROWS BY OTHER KEYS");
  p.prose(
      "In tools that aggregate in the kernel, --by KEY,... adds up rows by the keys that it "
      "names and no others: biotop --by disk has a row for each disk. If what is counted belongs "
      "to a task, the keys may also be those of this task, whatever the tool shows by default: "
      "pid, comm, uid, cgroup, cgroup_id, container, container_id, pod and unit. The kernel "
      "program then keeps a row for each of them; without --by it does not read them.\n\n"
      "The task is the one that filters apply to: for a wait for a CPU the task that waits, for "
      "block I/O the task that submits it, for a TCP connection the process that opened or "
      "accepted it. Writeback that kernel threads do for a cgroup belongs to the cgroup. If the "
      "task is not known, because what is counted started before tracing, these keys are null, "
      "and empty in text.");
  p.literal(
      "biolatency --by cgroup 10 1\n"
      "syscount --by syscall,container\n"
      "runqlat --by unit --json 60");
}

void files(Page& p) {
  p.section("OUTPUT FILES");
  p.prose(
      "--output creates FILE for its owner only (mode 0600). With --append, existing content is "
      "kept, which suits a tool that a service manager restarts: a line that a crash left "
      "incomplete is terminated, and the new run starts with its header.\n\n"
      "With --rotate, before a line would make FILE larger than SIZE, FILE is renamed to FILE.1, "
      "FILE.1 to FILE.2, and so on; the oldest is replaced. Each file starts with the header "
      "line of JSON, or the titles of CSV or of a list of events; a header longer than half of "
      "SIZE does not count towards SIZE. Lines are never split: a line longer than SIZE gets a "
      "separate file. A report in text is not split if it fits into a file and into 64 KiB. A "
      "new file has the mode of the previous one, and its group if the user may assign it. If "
      "FILE cannot be renamed, a single note says why; FILE keeps growing, and renaming is tried "
      "again after another SIZE. If nothing more can be written, because the disk is full, the "
      "tool exits with status 1. Only one tool may write to a FILE that is rotated.\n\n"
      "SIGUSR1 makes a tool with --output close the file and open the one that is now called "
      "FILE, or create it. This lets logrotate(8) rename the file, with create or nocreate: all "
      "events read before the signal are in the old file, all later ones in the new one, after "
      "its header. If the name still refers to the same file, nothing changes; if it cannot be "
      "opened, the old file stays in use and a note says why. traceloop --dump-signal USR1 "
      "reserves this signal for dumps; USR2 leaves it free.");
  p.literal(
      "/var/log/execs.jsonl {\n"
      "    daily\n"
      "    create 0640 root adm\n"
      "    postrotate\n"
      "        systemctl kill --signal=USR1 execs.service\n"
      "    endscript\n"
      "}");
  p.prose(
      "When tracing starts, a tool drops its capabilities; it then renames and opens files with "
      "the privileges of its user. A tool started by root can do so in directories whose mode lets "
      "root write, but not in those of other users, although it could create FILE there; with "
      "--rotate a note says so at the start. It also cannot reopen a FILE that belongs to "
      "another user and whose mode does not let root write.");
}

void formats(Page& p) {
  auto kinds = json_kinds(any_tool());
  auto &header = kinds.front(), &ledger = kinds.back();
  p.section("TEXT");
  p.prose(
      "Events are flushed line by line to a terminal, and at least every 100 ms to a pipe or a file. Control "
      "characters, escape sequences and bytes that are not UTF-8 appear as \\xNN in all text that "
      "comes from other programs.");
  p.section("JSON");
  p.prose(
      "With --json each line is one object. The key type names its kind. Keys keep their names, "
      "order and types in later versions; new ones may be added. The suffix _ns, _us, _ms, "
      "_bytes, _kb, _mb, _pages or _ratio of a key is its unit. Each object has the key tool, so "
      "that several tools can write to one log. Times have six fractional digits, because many "
      "parsers accept no more (RFC 5424, Python's strptime); monotonic_ns gives the exact order "
      "of events.");
  p.macro("Ss Header");
  p.prose("The first line:");
  key_items(p, header.keys);
  p.macro("Ss Ledger");
  p.prose("The last line, and in text the lines on standard error when tracing ends:");
  key_items(p, ledger.keys);
  p.section("CSV");
  p.prose(
      "With --csv the first line has the names of the columns, which are the same as the keys of "
      "JSON. Fields are quoted as in RFC 4180. Unknown values are empty. There is no header line "
      "with options; the ledger goes to standard error, as for text.");
}

void attach_points(Page& p) {
  constexpr std::pair<std::string_view, std::string_view> kKinds[] = {
      {"tp_btf", "a tracepoint whose arguments are typed by the kernel's BTF"},
      {"raw_tp", "a raw tracepoint"},
      {"tracepoint", "a tracepoint as tracefs lists it"},
      {"fentry", "the entry of a kernel function, by a trampoline"},
      {"fexit", "the return of a kernel function, by a trampoline"},
      {"kprobe", "the entry of a kernel function, by a breakpoint"},
      {"kretprobe", "the return of a kernel function, by a breakpoint"},
      {"uprobe", "the entry of a user function"},
      {"uretprobe", "the return of a user function"},
      {"perf_event", "a sample of a hardware or software counter"},
      {"iter", "an iterator over kernel objects"},
      {"run", "run by the tool itself: at the start on each CPU, or when it needs an answer"},
  };
  p.section("ATTACH POINTS");
  p.prose(
      "The pages of the tools list the candidates for each hook, the preferred one first. "
      "Candidates are written like the sections of BPF programs:");
  p.begin("-tag -width tracepoint -compact");
  for (auto& [kind, meaning] : kKinds) p.item(fmt::format("Ql {}", kind), meaning);
  p.end();
}

void user_stacks(Page& p) {
  p.section("USER STACKS");
  p.prose(
      "User stacks are unwound with the tables in .eh_frame that programs and "
      "libraries carry for exceptions, so that code without frame pointers is covered. The "
      "tables are read once per file: for a command before it starts, for running processes in "
      "the background, for other files when a stack first passes through them. Frames are kept "
      "as locations in files, so that they have names after their process has exited; for this, "
      "up to 256 programs and libraries outside system directories are kept open while a tool "
      "runs, and their file systems cannot be unmounted. In code without such tables (of JIT "
      "compilers, for example) the frame pointer is tried; the number of frames found that way "
      "is reported with the stack, as [guessed frames: 1], and in JSON. They may be wrong where "
      "code keeps no frame pointer either.\n\n"
      "A stack that ends before the function in which its program or thread started is marked at "
      "its outer end, such as [truncated: no mapping]. The ledger counts these by reason:");
  p.begin("-tag -width Ds");
  for (auto& reason : cut_reasons())
    if (!reason.words.empty()) p.item("Sy " + inline_words(reason.words), reason.meaning);
  p.end();
  p.prose(
      "If a library is mapped at addresses where another one was mapped before, the tables of "
      "the old one are used for up to 50 ms; a stack from that time may have a wrong frame.");
}

void stack_tables(Page& p) {
  p.section("FUNCTIONS, GROUPS AND CALL TREES");
  p.prose(fmt::format(
      "Tools that sum up stacks can show other things than the list of stacks. --functions is a "
      "table: in the column SELF what was found in the function itself, in TOTAL with all that it "
      "calls (a function counts once in a stack, however often it is there), and the file or the "
      "module of the kernel that it belongs to. --by adds up by a key: {}; alone it is a table of "
      "the groups, and with other options the name of the group replaces that of the task. "
      "Processes that have ended are included; cgroups are those of version 2; object is the file "
      "whose code is innermost, caller the innermost one of the user stack that is not the C "
      "library.\n\n"
      "--tree is a call tree: the share of everything, the share of the frame itself, and the "
      "frame below its caller. Frames that call only one other stay in one column. --inverted "
      "begins with the innermost frame, --callees-of with the outermost call of that function; "
      "--callers-of shows what calls it, the nearest caller first. They apply to --folded, --svg, "
      "--pprof and --dot, too. A function's name may have * for any text, and no parameters. With "
      "--interval each report is of the time since the last one; --screen redraws it on a "
      "terminal, with the keys q quit, s other order, r reverse, p or space pause.\n\n"
      "With --lines, frames have their source lines, and functions that the compiler inlined are "
      "frames above the one that they are part of, marked (inlined) in text and _[i] by "
      "--annotations; a profile of --pprof has them as lines of one location, and JSON has them "
      "in kernel_frames and user_frames. Debug information (DWARF) must have the build id of the "
      "running code; it is read from /usr/lib/debug or from the file itself, in 10 seconds of CPU "
      "time altogether. Other frames stay as they are.",
      StackGroup::words()));
}

void signals(Page& p) {
  p.section("SIGNALS");
  p.prose(
      "SIGINT (Ctrl-C), SIGTERM, SIGHUP and SIGQUIT end tracing: what was counted is printed, "
      "and the exit status is 0. A second signal ends the tool immediately. SIGHUP stays ignored if "
      "it was when the tool started (nohup); SIGINT, SIGTERM and SIGQUIT end tracing also if they "
      "were ignored then, as by shells for background commands of scripts. Signals that come "
      "before tracing has ended count as one: timeout(1) sends its signal twice.");
  p.prose(
      "What is in the buffer when tracing ends is shown for up to a tenth of a second; the rest is "
      "counted as unread. If the reader of standard output takes nothing, the tool gives up after a "
      "signal and says so; where standard error is a terminal, it waits until a second signal comes. "
      "The kernel removes some probes one after another; a process named coretap-detach then stays "
      "for up to a second after the tool has ended.");
  p.prose("SIGUSR1 reopens the file of --output; see OUTPUT FILES.");
}

void exit_status(Page& p) {
  p.section("EXIT STATUS");
  p.begin("-tag -width Ds -compact");
  for (auto& s : exit_statuses()) p.item(std::to_string(s.status), s.meaning);
  p.end();
  p.prose("With --exit-status it is the exit status of the command.");
}

}  // namespace

std::string output_man_page() {
  Page p("coretap-output", 7, "options, output formats and exit status of all coretap tools");
  p.section("DESCRIPTION");
  p.prose(
      "This page describes what the tools of coretap(8) have in common. Data goes to standard "
      "output, everything else to standard error.");
  options(p);
  filters(p);
  formats(p);
  rows(p);
  files(p);
  attach_points(p);
  user_stacks(p);
  stack_tables(p);
  signals(p);
  exit_status(p);
  return p.finish({"coretap 8"});
}

}  // namespace coretap
