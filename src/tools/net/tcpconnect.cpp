// tcpconnect: attempts to open TCP connections.
#include "net/tcpconnect.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcpconnect.skel.h"

using namespace coretap;
using Opt = rodata_of<tcpconnect_bpf>;
using Event = tcpconnect_event;
using Count = Row<flow, tcpconnect_count>;

TOOL(tcpconnect) {
  return {
      .name = "tcpconnect",
      .summary = "TCP connections that processes open: which process, where to",
      .description =
          "One line when a process starts to open a TCP connection, by connect(2) or with the "
          "first data (TCP Fast Open), whether or not it is established later. Accepted "
          "connections are not shown; tcpaccept shows them. An IPv6 socket used for IPv4 counts as "
          "IPv4.\n\n"
          "With --failed one line for each attempt that fails, when it fails, with the socket's "
          "error. This includes non-blocking attempts, and attempts that connect(2) refuses before "
          "it sends anything (no route, no free port). ERR is empty if the process closed the "
          "socket before there was an answer.\n\n"
          "The kernel chooses the local port after it starts the attempt. With --source-port the "
          "line appears when connect(2) returns, or when the attempt ends if that is earlier.",
      .overhead =
          "a hook, run a few times per connection: not measurable. With --source-port or --failed "
          "also a hook on every system call, some tens of nanoseconds each",
      .examples = {{"tcpconnect", "all connections that are opened"},
                   {"tcpconnect -t -p 181", "connections of process 181, with the seconds"},
                   {"tcpconnect -P 80,443 -U", "to these ports, with the user"},
                   {"tcpconnect -x", "attempts that failed, and why"},
                   {"tcpconnect -c", "how often each source connects to each destination"}},
      .questions = {{"Which process opens connections to this address?",
                     "tcpconnect --raddr 192.0.2.1"},
                    {"Which connections are refused or time out?", "tcpconnect -x"},
                    {"How often does a service connect to its database?", "tcpconnect -c -P 5432"}},
      .differs = {{Difference::both,
                   "An attempt is shown when it starts, even if it fails immediately. Peers show "
                   "it when connect(2) returns, if it has not failed by then. Connections of TCP "
                   "Fast Open are shown, too."},
                  {Difference::libbpf_tools,
                   "The local port is LPORT, as in bcc. There it is SPORT, and -s is what -L is "
                   "here and in bcc."}},
      .object = skeleton<tcpconnect_bpf>(),
      .options = {shared::timestamp('t'),
                  flag('L', "source-port", "print the local port; with --count, count by it, too",
                       setting(&Opt::with_lport))
                      .also("lport"),
                  flag('c', "count", "count for each connection, and print at the end",
                       setting(&Opt::counting)),
                  flag('x', "failed", "only attempts that fail, and why",
                       setting(&Opt::failed_only)),
                  shared::print_uid(), shared::wide(), shared::pid(), shared::tid(0), shared::uid(),
                  shared::comm(), shared::cgroup(0), shared::ipv4(), shared::ipv6(),
                  shared::remote_ports('P', "port"), shared::local_addresses(),
                  shared::remote_addresses(), shared::netns(), shared::max_keys()},
      .elsewhere = {{'C', "", "filter by --cgroup, which takes paths and ids"},
                    {'M', "", "filter by --cgroup, which takes paths and ids"},
                    {'s', "", "use -L (--source-port)"},
                    {'d', "dns",
                     "run gethostlatency alongside, which shows the names that are looked up"}},
      .hooks = {{"changes of state", {{{progs::on_state}}}},
                {"ends of connect(2)", {{{progs::on_exit}}}, "source-port|failed"},
                {"end of sockets", {{{progs::on_destroy}}}, "failed"}},
      .maps = {{maps::attempts, MapSize::objects, "source-port|failed"}},
      .report =
          events<Event>(
              {owner<&Event::owner>(id::uid, id::pid, id::comm), net::ip_version<&Event::flow>(),
               net::titled(net::local_address<&Event::flow>(), "SADDR"),
               net::local_port<&Event::flow>().only("source-port"),
               net::titled(net::remote_address<&Event::flow>(), "DADDR"),
               net::titled(net::remote_port<&Event::flow>(), "DPORT"),
               derived<Event, [](const Event& e) { return unless_0(e.error); }>(
                   "error", "ERR", as::error, "why it failed; null: no error is known")
                   .with("failed"),
               owner<&Event::owner>(id::tid, id::cgroup), net::namespace_id<&Event::flow>()})
              .timed({{TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .other_reports = {{"count",
                         table<flow, tcpconnect_count>(
                             maps::connects,
                             {net::local_address<&Count::key>(), net::remote_address<&Count::key>(),
                              net::local_port<&Count::key>().only("source-port"),
                              net::remote_port<&Count::key>(),
                              of_value<Count, &tcpconnect_count::connects>("connects", "CONNECTS",
                                                                           as::number, "attempts"),
                              net::ip_version<&Count::key>().with("json"),
                              net::namespace_id<&Count::key>()},
                             "connects")
                             .timed_with("timestamp")}},
      .announce = "Tracing TCP connects",
  };
}
