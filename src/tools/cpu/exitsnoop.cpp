// exitsnoop: processes, or threads, that exit.
#include "cpu/exitsnoop.h"

#include <fmt/format.h>
#include <sys/wait.h>

#include <csignal>

#include "coretap/config.hpp"
#include "coretap/kernel.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "exitsnoop.skel.h"

using namespace coretap;
using Event = exitsnoop_event;
using Rodata = rodata_of<exitsnoop_bpf>;

namespace {

int code(const Event& e) { return static_cast<int>(e.code); }

std::string signal_of(int number) {
  auto* name = number < SIGRTMIN ? sigabbrev_np(number) : nullptr;
  return name ? name : std::to_string(number);
}

Value status(const Event& e) {
  return value_if(WIFEXITED(code(e)), static_cast<unsigned>(WEXITSTATUS(code(e))));
}
Value signal_name(const Event& e) {
  return value_if(WIFSIGNALED(code(e)), signal_of(WTERMSIG(code(e))));
}
bool dumped(const Event& e) { return WIFSIGNALED(code(e)) && WCOREDUMP(code(e)); }

std::string how(const Event& e) {
  if (WIFEXITED(code(e)))
    return WEXITSTATUS(code(e)) ? fmt::format("code {}", WEXITSTATUS(code(e))) : "0";
  auto number = WTERMSIG(code(e));
  return fmt::format("signal {} ({}){}", number, signal_of(number),
                     dumped(e) ? ", core dumped" : "");
}

std::string seconds(const Event& e) {
  return fmt::format("{:.2f}", static_cast<double>(e.age_ns) / 1e9);
}
Value max_rss(const Event& e) { return value_if(e.ended, e.max_rss * page_bytes()); }
std::string label(const Event&, const FieldContext& context) {
  return context.config ? std::string(context.config->text("label")) : std::string();
}
}  // namespace

TOOL(exitsnoop) {
  return {
      .name = "exitsnoop",
      .summary = "processes that end: how, and after how long",
      .description =
          "One line per process, when its last thread exits: how long ago it was forked (AGE), "
          "and what its parent gets from wait(2): 0, the exit status (code 1), or the signal "
          "that ended it (signal 9 (KILL)), and whether it dumped core. A process whose first "
          "thread exits earlier is shown when its last thread exits.\n\n"
          "-T prints one line per thread, with the thread's own age and status. --extended adds "
          "the peak resident memory of the process (MAXRSS).",
      .overhead = "one hook per thread that exits",
      .examples = {{"exitsnoop", "all processes that end"},
                   {"exitsnoop -x -t", "those that fail, with the time of day"},
                   {"exitsnoop -T -p 181", "each thread of process 181"},
                   {"exitsnoop --utc --label web1", "times in UTC, each line marked"}},
      .questions = {{"Which processes fail or crash, and by which signal?", "exitsnoop -x -t"},
                    {"Are there very short-lived processes?", "exitsnoop"},
                    {"How much memory did a short-lived process need?", "exitsnoop -e"}},
      .differs = {{Difference::both,
                   "A process ends with its last thread. Peers report the end of its first "
                   "thread, and miss the real end if other threads continue."},
                  {Difference::libbpf_tools,
                   "Signals have short names, as in bcc: KILL instead of Killed."}},
      .object = skeleton<exitsnoop_bpf>(),
      .options = {flag('x', "failed", "only those that did not exit with status 0",
                       setting(&Rodata::failed_only)),
                  flag('T', "threaded", "one line per thread", setting(&Rodata::threaded))
                      .also("per-thread"),
                  shared::timestamp('t'), flag(0, "utc", "print the time of day in UTC"),
                  free_text(0, "label", "LABEL", "print a column with this text"),
                  shared::extended(), shared::duration('d'), shared::pid(), shared::tid(0),
                  shared::uid(), shared::comm(), shared::cgroup()},
      .elsewhere = {{0, "timespec", "use --json, which has both clocks"}},
      .hooks = {{"ends of threads", {{{progs::on_exit}}}}},
      .report =
          events<Event>(
              {derived<Event, label>("label", "LABEL", as::text, "text of --label").only("label"),
               who<&Event::who>(id::comm.titled("PCOMM"), id::pid),
               field<&Event::ppid>("ppid", "PPID", as::pid, "its parent"),
               who<&Event::who>(id::tid.with({})),
               derived<Event, seconds>("age", "AGE(s)", as::wide(as::text, -7), "since its fork")
                   .in_text(),
               field<&Event::age_ns>("age_ns", "AGE(ms)", as::milliseconds,
                                     "time since it was forked")
                   .with("json"),
               derived<Event, max_rss>("max_rss_bytes", "MAXRSS(KB)", as::wide(as::kilobytes, 10),
                                       "peak resident memory of the process")
                   .with("extended"),
               who<&Event::who>(id::cgroup),
               derived<Event, how>("code", "EXIT_CODE", as::rest, "how it ended").in_text(),
               with("json",
                    {derived<Event, status>("exit_status", "STATUS", as::small, "exit status")
                         .or_null(),
                     derived<Event, signal_name>("signal", "SIGNAL", as::text,
                                                 "signal that ended it, such as KILL")
                         .bounded(),
                     derived<Event, dumped>("core_dumped", "CORE", as::small, "it dumped core"),
                     derived<Event, [](const Event& e) { return bool(e.ended); }>(
                         "process_ended", "LAST", as::small, "the process ended with this thread"),
                     who<&Event::who>(id::uid)})})
              .spanning("age_ns")
              .timed({{TimeColumn::wall, "TIME", 12, "timestamp", "utc"},
                      {TimeColumn::utc, "TIME-UTC", 12, "utc"}}),
      .announce = "Tracing processes that end",
  };
}
