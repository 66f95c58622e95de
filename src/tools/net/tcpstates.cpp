// tcpstates: state changes of TCP sockets.
#include "net/tcpstates.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcpstates.skel.h"

using namespace coretap;
using Event = tcpstates_event;

namespace {

/// The spelling of RFC 9293, by the kernel's numbers.
std::string rfc_state(std::uint32_t state) {
  constexpr std::string_view kStates[] = {
      "",       "ESTABLISHED", "SYN-SENT", "SYN-RECEIVED", "FIN-WAIT-1", "FIN-WAIT-2",  "TIME-WAIT",
      "CLOSED", "CLOSE-WAIT",  "LAST-ACK", "LISTEN",       "CLOSING",    "SYN-RECEIVED"};
  return state && state < std::size(kStates) ? std::string(kStates[state]) : std::to_string(state);
}

std::string old_state(const Event& e) { return tcp_state(e.oldstate); }
std::string new_state(const Event& e) { return tcp_state(e.newstate); }
std::string old_rfc(const Event& e) { return rfc_state(e.oldstate); }
std::string new_rfc(const Event& e) { return rfc_state(e.newstate); }
std::string arrow(const Event&) { return "->"; }
Value in_state(const Event& e) { return unless_0(e.in_state_ns); }

}  // namespace

TOOL(tcpstates) {
  return {
      .name = "tcpstates",
      .summary = "changes of the states of TCP sockets, with the time in each state",
      .description =
          "One line when a TCP socket goes from one state to another. MS is the time in the old "
          "state; it is empty for the first change seen of a socket. States have the kernel's "
          "names, with --rfc those of RFC 9293. A socket is not seen in TIME_WAIT: the kernel "
          "tracks that state separately, and the socket goes to CLOSE.\n\n"
          "A change may be made by a process, or by a packet in the context of whatever task it "
          "interrupts. The process shown is the one that was seen to connect, listen on, accept, "
          "shut down or close the socket. The first two changes of an accepted socket come before "
          "it is accepted, and have no process; a socket accepted before tracing began has none "
          "until it is closed here. No task filter matches a line without a process.\n\n"
          "The kernel chooses the local port of a client after the first change, and fills in the "
          "other end of an accepted socket after its first one: the line has zeros there. With a "
          "filter by ports or addresses such a line is filtered, and shown, with the next one. An "
          "IPv6 socket used for IPv4 counts as IPv4.",
      .overhead =
          "a hook per change of state, five or six for each end of a connection, and one "
          "per accepted connection",
      .examples = {{"tcpstates", "all changes"},
                   {"tcpstates -T -L 80,443", "a web server's sockets, with the time"},
                   {"tcpstates --rfc -p 181", "process 181, with states as in RFC 9293"},
                   {"tcpstates -w -6", "only IPv6, in wider columns"}},
      .questions = {{"Which sockets stay in CLOSE_WAIT?", "tcpstates -L 8080"},
                    {"How long does a connection stay in each state?", "tcpstates -t -p 181"}},
      .differs =
          {{Difference::both,
            "PID and COMM are the process that uses the socket, if known; there, C-PID and C-COMM "
            "are the interrupted task. The time in the first state is empty instead of 0. -L also "
            "finds the first change of a client."},
           {Difference::libbpf_tools, "-T is the time of day under the title TIME."}},
      .object = skeleton<tcpstates_bpf>(),
      .options =
          joined({{flag('T', "time", "print the time of day"), shared::timestamp('t'),
                   flag(0, "rfc", "name states as RFC 9293 does"), shared::wide(), shared::pid(),
                   shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
                  shared::flow_filters()}),
      .other_meanings = {{0, "timestamp",
                          "seconds since the start, as in bcc; in libbpf-tools the time of day, as "
                          "--time (-t: without this note)"},
                         {0, "csv",
                          "columns are the keys of --json; bcc's are others (--output-format csv: "
                          "without this note)"}},
      .elsewhere = {{'s', "", "use --csv, which has all columns under the names of --json"},
                    {'Y', "journal", "write --json to `systemd-cat -t tcpstates`"}},
      .hooks = {{"changes of state", {{{progs::on_state}}}},
                accepted_connections(),
                ended_sockets()},
      .report = events<Event>(
                    {field<&Event::socket>("socket", "SKADDR", as::pointer,
                                           "address of the socket in the kernel"),
                     owner<&Event::owner>(id::pid, id::comm),
                     net::ip_version<&Event::flow>().with("wide"),
                     net::local_address<&Event::flow>(), net::local_port<&Event::flow>(),
                     net::remote_address<&Event::flow>(), net::remote_port<&Event::flow>(),
                     derived<Event, old_state>("old_state", "OLDSTATE", as::text, "old state")
                         .bounded()
                         .with("!rfc"),
                     derived<Event, old_rfc>("old_state_rfc", "OLDSTATE", as::text,
                                             "the same, as named in RFC 9293")
                         .with("rfc"),
                     derived<Event, arrow>("arrow", "->", as::wide(as::text, -2), "to").in_text(),
                     derived<Event, new_state>("new_state", "NEWSTATE", as::text, "new state")
                         .bounded()
                         .with("!rfc"),
                     derived<Event, new_rfc>("new_state_rfc", "NEWSTATE", as::text,
                                             "the same, as named in RFC 9293")
                         .with("rfc"),
                     derived<Event, in_state>("in_state_ns", "MS", as::precise(as::milliseconds, 3),
                                              "time in the old state; null: not known"),
                     owner<&Event::owner>(id::tid, id::uid.with("json"), id::cgroup),
                     net::namespace_id<&Event::flow>()})
                    .spanning("in_state_ns")
                    .timed({{TimeColumn::wall, "TIME", 12, "time"},
                            {TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .announce = "Tracing the states of TCP sockets",
  };
}
