// tcpconnlat: latency of TCP connects.
#include "net/tcpconnlat.h"

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/net.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcpconnlat.skel.h"

using namespace coretap;
using Opt = rodata_of<tcpconnlat_bpf>;
using Event = tcpconnlat_event;

TOOL(tcpconnlat) {
  return {
      .name = "tcpconnlat",
      .summary = "latency of TCP connects: from the SYN to the answer",
      .description =
          "One line when a TCP connection that a process opens is established: the time from the "
          "first SYN to the answer that establishes it. This is the round trip of the network and "
          "of the other end's kernel; no server process takes part in it. A second or more means "
          "that a SYN or its answer was lost and retransmitted.\n\n"
          "With --failed one line for each attempt that failed, blocking or not, with the time "
          "until it failed and the socket's error. ERR is empty if the process closed the socket "
          "before there was an answer, or if connect(2) failed before it sent anything because no "
          "local port was free.\n\n"
          "The process is the one that started the attempt. An IPv6 socket used for IPv4 counts as "
          "IPv4.",
      .overhead = "a hook, run a few times per connection: not measurable",
      .examples = {{"tcpconnlat", "all connections"},
                   {"tcpconnlat 10", "only those that took 10 ms or more"},
                   {"tcpconnlat -t -L 0.5", "0.5 ms or more, with the seconds and the local port"},
                   {"tcpconnlat -x -p 181", "attempts of process 181 that failed"}},
      .questions = {{"How long does connecting take: is the network or the server slow?",
                     "tcpconnlat 10"},
                    {"How long does a program wait for a host that does not answer?",
                     "tcpconnlat -x"}},
      .differs = {{Difference::both,
                   "Attempts that are refused are not shown as connections; -x shows them and "
                   "those that time out, with the error."}},
      .object = skeleton<tcpconnlat_bpf>(),
      .positionals = {shared::threshold("MIN_MS", kMillisecond,
                                        "only attempts of at least MIN_MS milliseconds",
                                        setting(&Opt::min_ns))},
      .options = joined(
          {{shared::timestamp('t'), flag('L', "source-port", "print the local port").also("lport"),
            flag('x', "failed", "only attempts that fail, and why", setting(&Opt::failed_only)),
            shared::wide(), shared::pid(), shared::tid(0), shared::uid(), shared::comm(),
            shared::cgroup()},
           shared::flow_filters(0, 'P')}),
      .hooks = {{"changes of state", {{{progs::on_state}}}}, ended_sockets()},
      .report = events<Event>(
                    {owner<&Event::owner>(id::pid, id::comm), net::ip_version<&Event::flow>(),
                     net::titled(net::local_address<&Event::flow>(), "SADDR"),
                     net::local_port<&Event::flow>().with("source-port"),
                     net::titled(net::remote_address<&Event::flow>(), "DADDR"),
                     net::titled(net::remote_port<&Event::flow>(), "DPORT"),
                     field<&Event::latency_ns>("latency_ns", "LAT(ms)", as::milliseconds,
                                               "time from the first SYN to the end of the attempt"),
                     derived<Event, [](const Event& e) { return unless_0(e.error); }>(
                         "error", "ERR", as::error, "why it failed; null: no error is known")
                         .with("failed"),
                     owner<&Event::owner>(id::tid, id::uid.with("json"), id::cgroup),
                     net::namespace_id<&Event::flow>()})
                    .timed({{TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .announce = "Tracing the latency of TCP connects",
  };
}
