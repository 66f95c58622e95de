// udpconnect: UDP sockets that are connected to an address.
#include "net/udpconnect.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "udpconnect.skel.h"

using namespace coretap;
using Opt = rodata_of<udpconnect_bpf>;
using Event = udpconnect_event;

TOOL(udpconnect) {
  return {
      .name = "udpconnect",
      .summary = "UDP sockets that are connected: which process talks to whom",
      .description =
          "One line per call to connect(2) on a UDP socket, when it returns: the process, the "
          "other end, and 0 or the error. The call sends nothing: the socket then sends to that "
          "end and receives only from it. DNS lookups are such connections, to port 53. --wide "
          "also shows the local end.\n\n"
          "Not seen: datagrams of sockets that are not connected, and calls that dissolve a "
          "connection.",
      .overhead =
          "two hooks per call to connect; a small cost on every other system call, because the "
          "kernel then takes its slow path",
      .examples = {{"udpconnect", "all calls"},
                   {"udpconnect -P 53", "DNS lookups"},
                   {"udpconnect -w -t -U", "with both ends, times and users"},
                   {"udpconnect -- curl -s https://example.org/", "calls by a command"}},
      .questions = {{"Which process queries which DNS server?", "udpconnect -P 53"},
                    {"Which processes use QUIC?", "udpconnect -P 443"}},
      .object = skeleton<udpconnect_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {flag('x', "failed", "only calls that failed", setting(&Opt::failed_only)),
                  shared::remote_ports('P', "port"), shared::local_ports(0), shared::ipv4(),
                  shared::ipv6(), shared::local_addresses(), shared::remote_addresses(),
                  shared::netns(), shared::timestamp('t'), shared::print_uid(), shared::wide(),
                  shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"results", {{{progs::on_exit}}}}, {"connect", {{{progs::on_connect}}}}},
      .report = events<Event>(
          {who<&Event::who>(id::uid, id::pid, id::comm), net::ip_version<&Event::flow>(),
           net::remote_address<&Event::flow>(), net::remote_port<&Event::flow>(),
           net::local_address<&Event::flow>().with("wide"),
           net::local_port<&Event::flow>().with("wide"),
           derived<Event, [](const Event& e) { return -e.ret; }>("result_errno", "RET", as::error,
                                                                 "error of the call")
               .in_text(),
           with("json", {failure<&Event::ret>("error of the call; null: it succeeded"),
                         derived<Event, [](const Event& e) { return ip_protocol(e.protocol); }>(
                             "protocol", "PROTO", as::text, "its protocol")
                             .bounded()}),
           who<&Event::who>(id::tid, id::cgroup), net::namespace_id<&Event::flow>()}),
      .announce = "Tracing connected UDP sockets",
  };
}
