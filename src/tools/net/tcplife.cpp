// tcplife: TCP sessions.
#include "net/tcplife.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcplife.skel.h"

using namespace coretap;
using Event = tcplife_event;

namespace {

Value lasted(const Event& e) { return value_if(e.has_begin, e.lasted_ns); }

bool established(const Event& e) { return e.established; }

std::string opened_by(const Event& e) {
  return e.active ? "local" : e.has_begin ? "remote" : "unknown";
}

}  // namespace

TOOL(tcplife) {
  return {
      .name = "tcplife",
      .summary = "TCP sessions: who talked to whom, how long, how many bytes",
      .description =
          "One line when a TCP session ends: the process, both ends, the bytes sent and received, "
          "and how long it lasted, from when it was established to its end. A failed attempt to "
          "connect is shown with no bytes and the time since its first packet.\n\n"
          "Bytes are application data: sent bytes that the other end has acknowledged, and bytes "
          "received in order. Over the loopback each session is shown twice, once for each end. A "
          "session that is older than the tracer is shown without its duration.\n\n"
          "The process is the one that connected, accepted, shut down or closed the socket, "
          "whichever came first. If the peer resets the connection before a process is identified, "
          "the line appears when a process closes the socket. If no process was seen to own a "
          "session, its line has no process, and no task filter matches it. An IPv6 socket used "
          "for IPv4 counts as IPv4.",
      .overhead =
          "three hooks, run a few times per session: not measurable except with many thousands of "
          "short sessions per second",
      .examples = {{"tcplife", "all sessions"},
                   {"tcplife -t -p 181",
                    "sessions of process 181, with the seconds since the start"},
                   {"tcplife -T -L 80,443", "sessions of a web server, with the time of day"},
                   {"tcplife -w -6", "only IPv6, in wider columns"},
                   {"tcplife -- curl -s http://192.0.2.1/", "what one command does"}},
      .questions = {{"Who connects to whom, and how much is transferred?", "tcplife"},
                    {"Which service do all these short connections go to?", "tcplife -t"},
                    {"How long do sessions of a web server last?", "tcplife -T -L 80,443"}},
      .differs = {{Difference::both,
                   "The process is the one that connected, accepted, shut down or closed the "
                   "socket. Peers show the interrupted task if the local end closes first."},
                  {Difference::libbpf_tools,
                   "TX_KB and RX_KB are whole numbers, as in bcc. -L also finds connections "
                   "that this machine opens."}},
      .object = skeleton<tcplife_bpf>(),
      .options = joined(
          {{shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
           shared::flow_filters(),
           {flag('T', "time", "print the time of day"), shared::timestamp('t'), shared::wide()}}),
      .elsewhere = {{'s', "", "use --csv, which has all columns under the names of --json"}},
      .hooks = {{"changes of state", {{{progs::on_state}}}},
                accepted_connections(),
                {"end of sockets", {{{progs::on_destroy}}}}},
      .report =
          events<Event>(
              {owner<&Event::owner>(id::pid, id::comm),
               net::ip_version<&Event::flow>().with("wide"), net::local_address<&Event::flow>(),
               net::local_port<&Event::flow>(), net::remote_address<&Event::flow>(),
               net::remote_port<&Event::flow>(),
               field<&Event::tx_bytes>("tx_bytes", "TX_KB", as::kilobytes, "sent and acknowledged"),
               field<&Event::rx_bytes>("rx_bytes", "RX_KB", as::kilobytes, "received"),
               derived<Event, lasted>("lasted_ns", "MS", as::milliseconds,
                                      "how long it lasted; none if it is older than the tracer"),
               owner<&Event::owner>(id::tid, id::uid.with("json")),
               derived<Event, opened_by>("opened_by", "OPENED", as::text,
                                         "local: connected from here, remote: accepted, or "
                                         "unknown")
                   .with("json"),
               derived<Event, established>("established", "ESTABLISHED", as::number,
                                           "false: the attempt to connect failed")
                   .with("json"),
               net::namespace_id<&Event::flow>()})
              .spanning("lasted_ns")
              .timed({{TimeColumn::wall, "TIME", 12, "time"},
                      {TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .announce = "Tracing TCP sessions",
  };
}
