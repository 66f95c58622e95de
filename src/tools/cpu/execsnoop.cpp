// execsnoop: programs that are run, with their arguments.
#include "cpu/execsnoop.h"

#include <fmt/format.h>

#include "cli/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "execsnoop.skel.h"

using namespace coretap;
using Event = execsnoop_event;
using Rodata = rodata_of<execsnoop_bpf>;

namespace {

std::uint64_t failed(const Event& e) { return e.ret < 0 ? static_cast<std::uint64_t>(-e.ret) : 0; }
std::int64_t result(const Event& e) { return e.ret; }
std::uint64_t truncated(const Event& e) {
  return (e.what & (EXECSNOOP_CUT | EXECSNOOP_NO_ARGS)) != 0;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

/// The words as the program gets them; one that is empty shows in quotes only.
std::string arguments(const Event& e) {
  auto rest = text_of(e, e.args);
  std::string line;
  for (std::uint32_t n = 0; !rest.empty(); n++) {
    if (n == e.max_args && e.max_args) return line + " ...";
    auto word = rest.substr(0, rest.find('\0'));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    if (n) line += ' ';
    line += e.what & EXECSNOOP_QUOTE ? quoted(word) : std::string(word);
  }
  if (e.what & EXECSNOOP_NO_ARGS && line.empty()) line = text_of(e, e.file);
  return truncated(e) ? line + " ..." : line;
}

bool line_matches(const Config& c, const void* record) {
  auto& e = *static_cast<const Event*>(record);
  auto wanted = c.text("line");
  if (wanted.empty()) return true;
  std::string line(text_of(e, e.args));
  for (auto& ch : line)
    if (!ch) ch = ' ';
  return line.find(wanted) != line.npos;
}

}  // namespace

TOOL(execsnoop) {
  return {
      .name = "execsnoop",
      .summary = "programs that are run, with their arguments",
      .description =
          "One line per program that a process has begun to run, with --fails also one per try "
          "that failed. PCOMM is the new name of the process (of a try: the old one), RET is 0 or "
          "the error. Arguments are those that the new program got, up to 4096 bytes; ' ...' "
          "stands for what is missing.\n\n"
          "The names and ids that filters ask for are those after the program has begun; with "
          "failed tries, of the process that tried.\n\n"
          "Not seen: failed tries of 32-bit programs on a 64-bit kernel and through io_uring.",
      .overhead = "one hook per program run, about a microsecond; with --fails two more",
      .examples = {{"execsnoop", "all programs that are run"},
                   {"execsnoop -x -T", "with attempts that failed, and the time of day"},
                   {"execsnoop -U -n sh", "shells, and whose"},
                   {"execsnoop -q -l /etc/passwd", "what has this in its arguments, quoted"}},
      .questions = {{"What short-lived programs are run here?", "execsnoop"},
                    {"Who runs this command all the time, and with which arguments?",
                     "execsnoop -n curl"},
                    {"Which program cannot be started, and why?", "execsnoop -x"}},
      .object = skeleton<execsnoop_bpf>(),
      .options = {shared::pid(), shared::tid(0), shared::uid(), shared::comm('n'), shared::cgroup(),
                  flag('T', "time", "print the time of day"), shared::timestamp('t'),
                  shared::print_uid(), flag('x', "fails", "also programs that could not be run"),
                  flag('q', "quote", "arguments in double quotes", setting(&Rodata::quote)),
                  value('l', "line", "TEXT", "only with this text in the arguments",
                        [](Config&, std::string_view text) -> Result<void> {
                          if (text.empty()) return Error{"--line: needs a text", {}, {}, kUsage};
                          return {};
                        }),
                  number(0, "max-args", "N", "at most so many arguments (default: all)",
                         Range{.least = 1}, setting(&Rodata::max_args)),
                  flag('P', "parent", "print the parent's name")},
      .hooks = {{"programs", {{{"on_exec"}}}},
                {"failed execve", {{{"on_execve", "on_failed"}}}, "fails"},
                {"failed execveat", {{{"on_execveat"}}}, "fails", "failed execveat is not seen"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::uid, id::comm.titled("PCOMM")),
               field<&Event::parent_comm>("parent_comm", "PARENT", as::comm, "name of its parent")
                   .with("parent"),
               who<&Event::who>(id::pid.columns(-6)),
               field<&Event::ppid>("ppid", "PPID", as::wide(as::pid, -6), "its parent"),
               who<&Event::who>(id::tid),
               derived<Event, result>("ret", "RET", as::wide(as::small, 3),
                                      "0, or the error as a negative number"),
               derived<Event, failed>("error", "ERROR", as::error, "error by name").with("json"),
               text_field<&Event::file>("file", "FILE", as::text, "file as it was named")
                   .with("json"),
               derived<Event, truncated>("truncated", "CUT", as::small, "1: arguments are missing")
                   .with("json"),
               who<&Event::who>(id::cgroup),
               derived<Event, arguments>("args", "ARGS", as::rest, "arguments")})
              .timed({{TimeColumn::wall, "TIME", 12, "time"}, {}})
              .high_rate()
              .only(line_matches),
      .announce = "Tracing programs that are run",
  };
}
