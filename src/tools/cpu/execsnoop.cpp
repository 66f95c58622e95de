// execsnoop: new programs (exec), with their arguments.
#include "cpu/execsnoop.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "coretap/config.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "execsnoop.skel.h"

using namespace coretap;
using Event = execsnoop_event;
using Rodata = rodata_of<execsnoop_bpf>;

namespace {

/// True if the file is a script: its interpreter gets the file as second or third argument.
bool is_script(const Event& e) {
  auto rest = text_of(e, e.args), file = text_of(e, e.file);
  if (take_until(rest, '\0') == file) return false;
  return take_until(rest, '\0') == file || take_until(rest, '\0') == file;
}

struct Arguments {
  std::vector<std::string_view> words;  ///< argv of the program
  bool incomplete;
};

/// Without those excluded by --max-args.
Arguments arguments_of(const Event& e) {
  Arguments all{{}, (e.what & (EXECSNOOP_CUT | EXECSNOOP_NO_ARGS)) != 0};
  auto rest = text_of(e, e.args);
  while (!rest.empty() && (!e.max_args || all.words.size() < e.max_args))
    all.words.push_back(take_until(rest, '\0'));
  all.incomplete |= !rest.empty();
  return all;
}

bool incomplete(const Event& e) { return arguments_of(e).incomplete; }

/// On one line; only an empty word is quoted.
std::string line_of(const Event& e, const Arguments& all) {
  std::string line;
  for (auto& word : all.words) {
    if (&word != &all.words.front()) line += ' ';
    line += e.what & EXECSNOOP_QUOTE ? quoted(word, '"') : std::string(word);
  }
  if (line.empty() && e.what & EXECSNOOP_NO_ARGS) line = text_of(e, e.file);
  return all.incomplete ? line + " ..." : line;
}

TextList arguments(const Event& e) {
  auto all = arguments_of(e);
  return {{all.words.begin(), all.words.end()}, line_of(e, all)};
}

/// The same with the path of the file instead of argv[0].
Arguments with_file(const Event& e) {
  auto all = arguments_of(e);
  if (auto file = text_of(e, e.file); !all.words.empty() && !file.empty() && !is_script(e))
    all.words.front() = file;
  return all;
}

std::string command_line(const Event& e) { return line_of(e, with_file(e)); }

bool line_matches(const Config& c, const void* record) {
  auto& e = *static_cast<const Event*>(record);
  auto wanted = c.text("line");
  if (wanted.empty()) return true;
  auto has = [&](const Arguments& all) {
    return fmt::format("{}", fmt::join(all.words, " ")).find(wanted) != std::string::npos;
  };
  return has(with_file(e)) || has(arguments_of(e));
}

}  // namespace

TOOL(execsnoop) {
  return {
      .name = "execsnoop",
      .summary = "new programs (exec), with their arguments",
      .description =
          "One line per successful exec, with --fails also one per failed attempt. PCOMM is the "
          "new name of the process (for a failed attempt: the old one), RET is 0 or the error. "
          "ARGS is the file and the arguments that the new program got, up to 4096 bytes; ' ...' "
          "marks missing ones. In JSON and CSV args starts with the program's own name, as "
          "passed to it; file is the file. In JSON args is an array, without quotes, and "
          "incomplete is true if arguments are missing.\n\n"
          "Filters apply to the names and ids after the exec; for failed attempts, to those of "
          "the process that made them.\n\n"
          "Not seen: failed attempts of 32-bit programs on a 64-bit kernel and through io_uring.",
      .overhead = "one hook per program run, about a microsecond; with --fails two more",
      .examples = {{"execsnoop", "all new programs"},
                   {"execsnoop -x -T", "with failed attempts, and the time of day"},
                   {"execsnoop -U --comm sh,bash", "shells, and their users"},
                   {"execsnoop -q -l /etc/passwd",
                    "programs with this text in their arguments, "
                    "quoted"}},
      .questions = {{"What short-lived programs are run here?", "execsnoop"},
                    {"Who runs this command all the time, and with which arguments?",
                     "execsnoop -n curl"},
                    {"Which program cannot be started, and why?", "execsnoop -x"}},
      .differs = {{Difference::both,
                   "All arguments are shown, up to 4096 bytes. Peers show 20 arguments; "
                   "--max-args 20 does that here. RET is 0 or the name of the error, theirs a "
                   "number."},
                  {Difference::bcc,
                   "The command is under PCOMM, as in libbpf-tools, and its parent, with -M, "
                   "under PARENT. There these are COMM and PCOMM. -n and -l match plain text, "
                   "not a regular expression. execveat is traced, too."},
                  {Difference::libbpf_tools,
                   "-l searches the arguments. There it searches the command name. execveat, and "
                   "programs that a thread other than the first one runs, are shown, too."}},
      .object = skeleton<execsnoop_bpf>(),
      .options =
          {shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::name('n'),
           shared::cgroup(), shared::ppid('P', setting(&Rodata::wanted_parent)),
           flag('T', "time", "print the time of day"), shared::timestamp('t'), shared::print_uid(),
           flag('x', "fails", "also failed exec attempts"),
           flag('q', "quote", "arguments in double quotes", setting(&Rodata::quote)),
           free_text(
               'l', "line", "TEXT",
               "only with this text in the file and its arguments, or in the program's own name",
               Complete::nothing, "a text"),
           number(0, "max-args", "N", "maximum number of arguments (default: all)",
                  Range{.least = 1}, setting(&Rodata::max_args)),
           flag('C', "print-cpu", "print the CPU"),
           flag('M', "parent", "print the parent's name").also("print-pcomm")},
      .hooks =
          {{"programs", {{{progs::on_exec}}}},
           {"failed execve", {{{progs::on_execve, progs::on_failed}}}, "fails"},
           {"failed execveat", {{{progs::on_execveat}}}, "fails", "failed execveat is not seen"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::comm.titled("PCOMM")),
               field<&Event::parent_comm>("parent_comm", "PARENT", as::comm, "name of its parent")
                   .with("parent"),
               who<&Event::who>(id::pid.columns(-6)),
               field<&Event::ppid>("ppid", "PPID", as::wide(as::pid, -6), "its parent"),
               who<&Event::who>(id::tid),
               derived<Event, [](const Event& e) { return e.ret; }>(
                   "result_errno", "RET", as::error, "0, or the error by name")
                   .in_text(),
               derived<Event, [](const Event& e) { return e.ret; }>(
                   "ret", "", as::small, "0, or the error as a negative number")
                   .with("json"),
               failure<&Event::ret>("error by name; null: it runs").with("json"),
               text_field<&Event::file>("file", "FILE", as::text, "file as it was named")
                   .with("json"),
               derived<Event, incomplete>("incomplete", "CUT", as::small, "arguments are missing")
                   .with("json"),
               who<&Event::who>(id::cgroup),
               field<&Event::cpu>("cpu", "CPU", as::wide(as::small, -3), "CPU that it ran on")
                   .with("print-cpu"),
               derived<Event, arguments>("args", "ARGV", as::text, "arguments").with("json"),
               derived<Event, command_line>("command_line", "ARGS", as::rest, "file and arguments")
                   .in_text()})
              .timed({{TimeColumn::wall, "TIME", 12, "time"}, {}})
              .high_rate()
              .only(line_matches),
      .announce = "Tracing new programs (exec)",
  };
}
