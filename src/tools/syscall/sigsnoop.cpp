// sigsnoop: signals, their senders and receivers, and the outcome.
#include "syscall/sigsnoop.h"

#include <csignal>

#include "coretap/config.hpp"
#include "coretap/errors.hpp"
#include "coretap/flags.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "sigsnoop.skel.h"

using namespace coretap;
using Event = sigsnoop_event;
using Rodata = rodata_of<sigsnoop_bpf>;

namespace {

constexpr int kSignals = 64;
constexpr std::string_view kCalls[] = {
    "kill", "tkill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "pidfd_send_signal"};
static_assert(std::size(kCalls) == SIGSNOOP_CALLS - 1);
// The kernel's TRACE_SIGNAL_*.
constexpr std::string_view kOutcomes[] = {"delivered", "ignored", "pending", "overflow",
                                          "delivered without siginfo"};
constexpr NumberedWord<int> kCodes[] = {{SI_USER, "SI_USER"},   {SI_KERNEL, "SI_KERNEL"},
                                        {SI_QUEUE, "SI_QUEUE"}, {SI_TIMER, "SI_TIMER"},
                                        {SI_MESGQ, "SI_MESGQ"}, {SI_ASYNCIO, "SI_ASYNCIO"},
                                        {SI_SIGIO, "SI_SIGIO"}, {SI_TKILL, "SI_TKILL"}};

bool by_call(const Event& e) { return e.call && e.call < SIGSNOOP_CALLS; }
Value call(const Event& e) { return by_call(e) ? Value(std::string(kCalls[e.call - 1])) : Value(); }
std::string name(const Event& e) {
  return e.signal ? signal_name(static_cast<int>(e.signal)) : std::string("0");
}
Value outcome(const Event& e) { return e.sent ? detail::word_at(kOutcomes, e.outcome) : Value(); }
/// A number as in similar tools; --signal-names gives names.
Value signal_column(const Event& e, const FieldContext& context) {
  if (context.config && context.config->given("signal-names")) return name(e);
  return std::uint64_t{e.signal};
}
Value result_column(const Event& e, const FieldContext&) {
  constexpr auto kLong = std::size(kOutcomes) - 1;
  if (by_call(e)) return error_name(-e.ret);
  return e.sent && e.outcome == kLong ? Value(std::string("no_siginfo")) : outcome(e);
}
Value code(const Event& e) {
  return value_if(e.sent, word_of(kCodes, e.code, std::to_string(e.code)));
}
bool from_kernel(const Event& e) { return e.sent && (e.code > 0 || e.code == SI_TIMER); }
Value receiver(const Event& e) {
  if (by_call(e) && e.given != SIGSNOOP_BY_PIDFD) return std::int64_t{e.given};
  return e.target.known ? Value(std::int64_t{e.target.pid}) : Value();
}
Value pidns_of_receiver(const Event& e) { return value_if(e.sent, e.target_pidns); }

Option signals() {
  auto option = comma_list(
      's', "signal", "SIGNAL,...", "only these signals, by name or number",
      [](Config& c, std::string_view part) {
        auto number = signal_number(part);
        if (number) c.add_bit(setting(&Rodata::wanted_signals), static_cast<unsigned>(number) - 1);
        return number != 0;
      },
      "signals", "give names such as KILL, SIGUSR1 and RTMIN+1, or numbers from 1 to 64");
  return one_of(option, [] {
    std::vector<Completion> all;
    for (int n = 1; n <= kSignals; n++)
      if (auto word = signal_name(n); word.starts_with("SIG"))
        all.push_back({word, std::to_string(n)});
    return all;
  });
}

}  // namespace

TOOL(sigsnoop) {
  return {
      .name = "sigsnoop",
      .summary = "signals: who sends which to whom, and with what result",
      .description =
          "One line per signal that is sent: the sender, the receiver (TPID, TCOMM), and the "
          "result: delivered, ignored by the receiver, pending (one with the same number was "
          "already pending), or overflow (the receiver's queue is full). The kernel's own signals "
          "are included, such as SIGCHLD, SIGSEGV and those from timers and terminals; their "
          "sender is the task that ran at that time.\n\n"
          "With --kill one line per call to kill, tkill, tgkill, rt_sigqueueinfo, "
          "rt_tgsigqueueinfo and pidfd_send_signal instead, when it returns, even if it fails: "
          "RESULT is 0 or the error. TPID is the target of the call as the sender numbers it; 0, "
          "-1 or a negative number means several. TCOMM is the first process that got the signal; "
          "'-': none did. Signal 0 only checks whether a process exists.\n\n"
          "Not seen with --kill: calls by 32-bit programs on a 64-bit kernel.",
      .overhead =
          "one hook per signal; with --kill also two per call, and a small cost on every other "
          "system call, because the kernel then takes its slow path",
      .examples = {{"sigsnoop -n", "all signals, by their names"},
                   {"sigsnoop -k", "calls that send signals, with their errors"},
                   {"sigsnoop -n -s KILL,TERM", "only these two signals"},
                   {"sigsnoop -T 181", "what process 181 gets"},
                   {"sigsnoop -k -x -p 181", "calls of process 181 that failed"}},
      .questions = {{"Which process kills another one?", "sigsnoop -n -s KILL,TERM"},
                    {"Which signals does a process get?", "sigsnoop -n -T 1234"},
                    {"Why can a process not send a signal?", "sigsnoop -k -x"}},
      .other_names = {{"killsnoop", "--kill"}},
      .differs =
          {{Difference::both,
            "RESULT has words and the names of errors instead of numbers. All calls that send "
            "signals are traced, and real-time signals can be selected."},
           {Difference::bcc,
            "As killsnoop it has the column TCOMM, after the others, and sees all calls that send signals. In bcc it "
            "sees only kill."},
           {Difference::libbpf_tools,
            "-n and --name show the names of signals, as there. Senders are selected by --comm."}},
      .object = skeleton<sigsnoop_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {flag('k', "kill", "calls that send signals, with their results",
                       setting(&Rodata::calls_only)),
                  flag('x', "failed", "only signals that were not delivered, or calls that failed",
                       setting(&Rodata::failed_only)),
                  signals(),
                  number('T', "tpid", "PID", "only signals to this process",
                         {.least = 1, .most = INT32_MAX}, setting(&Rodata::wanted_target)),
                  flag('n', "signal-names", "signals by name").also("name"), shared::pid(),
                  shared::tid(), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"signals", {{{progs::on_signal}}}},
                {"results", {{{progs::on_exit}}}, "kill"},
                {"kill", {{{progs::on_kill}}}, "kill"},
                {"tkill", {{{progs::on_tkill}}}, "kill"},
                {"tgkill", {{{progs::on_tgkill}}}, "kill"},
                {"rt_sigqueueinfo", {{{progs::on_rt_sigqueueinfo}}}, "kill"},
                {"rt_tgsigqueueinfo", {{{progs::on_rt_tgsigqueueinfo}}}, "kill"},
                {"pidfd_send_signal", {{{progs::on_pidfd_send_signal}}}, "kill"}},
      .report =
          events<Event>(
              {who<&Event::who>(id::pid, id::comm, id::tid),
               derived<Event, signal_column>("signal", "SIG", as::wide(as::text, -11), "the signal")
                   .in_text(),
               derived<Event, receiver>("target_pid", "TPID", as::pid,
                                        "target process; with --kill also 0, -1 and negative "
                                        "numbers, for several"),
               owner<&Event::target>(id::comm.keyed("target_comm", "TCOMM"),
                                     id::tid.keyed("target_tid", "TTID"),
                                     id::uid.keyed("target_uid", "TUID").with("json")),
               derived<Event, result_column>(
                   "result", "RESULT", as::text,
                   "result of the signal or the call; no_siginfo: delivered "
                   "without siginfo")
                   .in_text(),
               with("json",
                    {field<&Event::signal>("signal_number", "SIGNO", as::small, "the signal"),
                     derived<Event, name>("signal_name", "SIGNAL", as::text, "its name").bounded(),
                     derived<Event, outcome>("outcome", "OUTCOME", as::text,
                                             "delivered, ignored, pending, overflow, or delivered "
                                             "without siginfo; null: none was sent")
                         .bounded(),
                     failure<&Event::ret>("error of the call; null: it succeeded"),
                     derived<Event, call>("call", "CALL", as::text, "the call, with --kill")
                         .bounded(),
                     derived<Event, code>("si_code", "CODE", as::text,
                                          "why it was sent: SI_USER and so on, or a number "
                                          "specific to the signal"),
                     derived<Event, from_kernel>("from_kernel", "KERNEL", as::small,
                                                 "the kernel itself sent it"),
                     field<&Event::sent>("receivers", "SENT", as::small,
                                         "number of receivers; several for a group"),
                     field<&Event::pidns>("pidns", "PIDNS", as::number,
                                          "pid namespace of the sender: the inode of "
                                          "/proc/PID/ns/pid"),
                     derived<Event, pidns_of_receiver>("target_pidns", "TPIDNS", as::number,
                                                       "the same for the receiver"),
                     who<&Event::who>(id::uid)}),
               who<&Event::who>(id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, ""}})
              .columns({{"pid,comm,tid,signal,target_pid,result"}}),
      .announce = "Tracing signals",
  };
}
