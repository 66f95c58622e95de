// tcpaccept: accepted TCP connections.
#include "net/tcpaccept.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcpaccept.skel.h"

using namespace coretap;
using Event = tcpaccept_event;

TOOL(tcpaccept) {
  return {
      .name = "tcpaccept",
      .summary = "TCP connections that are accepted, with process and both ends",
      .description =
          "One line when a process accepts a TCP connection (accept, accept4): the process, the "
          "other end (RADDR, RPORT) and this one (LADDR, LPORT). An IPv6 socket used for IPv4 "
          "counts as IPv4. Connections that wait in a listener's queue have no line until they are "
          "accepted.",
      .overhead = "two hooks per connection that is accepted",
      .examples = {{"tcpaccept", "all connections"},
                   {"tcpaccept -t -p 181",
                    "connections of process 181, with the seconds since the start"},
                   {"tcpaccept -T -P 80,443", "connections to a web server, with the time of day"},
                   {"tcpaccept -6 --raddr 2001:db8::/32", "from these IPv6 addresses"}},
      .questions = {{"Which hosts connect to this machine, and to which processes?", "tcpaccept"},
                    {"How often do clients connect to a server?", "tcpaccept -T -P 443"}},
      .object = skeleton<tcpaccept_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {flag('T', "time", "print the time of day"), shared::timestamp('t'),
                  shared::local_ports('P', "port"), shared::remote_ports(0), shared::ipv4(),
                  shared::ipv6(), shared::local_addresses(), shared::remote_addresses(),
                  shared::netns(), shared::print_uid(), shared::wide(), shared::pid(),
                  shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"accepted connections",
                 {{{progs::on_accepted, progs::on_exit}},
                  {.programs = {progs::on_exit},
                   .caveat = "not seen: connections accepted by io_uring, by the kernel itself, "
                             "and by 32-bit programs on a 64-bit kernel"}}}},
      .report = events<Event>(
                    {who<&Event::who>(id::uid, id::pid, id::comm), net::ip_version<&Event::flow>(),
                     net::remote_address<&Event::flow>(), net::remote_port<&Event::flow>(),
                     net::local_address<&Event::flow>(), net::local_port<&Event::flow>(),
                     who<&Event::who>(id::tid, id::cgroup), net::namespace_id<&Event::flow>()})
                    .timed({{TimeColumn::wall, "TIME", 12, "time"},
                            {TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .announce = "Tracing accepted TCP connections",
  };
}
