// tcptracer: TCP connections that are opened, accepted and closed.
#include "net/tcptracer.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcptracer.skel.h"

using namespace coretap;
using Event = tcptracer_event;

namespace {

constexpr std::string_view kSigns[] = {"C", "A", "X"};
constexpr std::string_view kKinds[] = {"connect", "accept", "close"};
static_assert(std::size(kSigns) == TCPTRACER_KINDS && std::size(kKinds) == TCPTRACER_KINDS);

Option netns() {
  auto option = shared::netns();
  option.letter = 'N';
  return option;
}

}  // namespace

TOOL(tcptracer) {
  return {
      .name = "tcptracer",
      .summary = "TCP connections that are opened, accepted and closed",
      .description =
          "One line for each end of a TCP connection when it is opened and when it is closed. T "
          "shows what happens: C a connection that a process opened is established, A a process "
          "accepts one, X one is closed. Over the loopback both ends have lines.\n\n"
          "X appears when this end closes its direction with shutdown(2) or close(2), with the "
          "process that does it. If the other end resets the connection, X has the process that "
          "opened it; for an accepted connection X has the process that closes the socket, and "
          "appears then; of MPTCP none, where a thread of the kernel closes it. An IPv6 socket used "
          "for IPv4 counts as IPv4.\n\n"
          "Not seen: connections accepted by io_uring, by the kernel itself and by 32-bit programs "
          "on a 64-bit kernel.",
      .overhead =
          "a hook, run a few times per connection, and one per accept(2); a small cost on every "
          "other system call, because the kernel then takes its slow path",
      .examples = {{"tcptracer", "all connections"},
                   {"tcptracer -t -U", "with the seconds and the user"},
                   {"tcptracer -p 181 -4", "connections of process 181, only IPv4"},
                   {"tcptracer --json --netns 4026532281",
                    "connections of a network namespace, with all fields"}},
      .questions = {{"Which connections do processes of a container open and accept?",
                     "tcptracer --netns 4026532281"},
                    {"Which process closed this connection?", "tcptracer -p 181"}},
      .differs = {{Difference::both,
                   "Connections that fail have no lines. X also appears when a process shuts down "
                   "one direction; there, only on the last close."}},
      .object = skeleton<tcptracer_bpf>(),
      .options = {shared::timestamp('t'), shared::print_uid(), shared::wide(), shared::pid(),
                  shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(), shared::ipv4(),
                  shared::ipv6(), shared::local_ports(), shared::remote_ports(),
                  shared::local_addresses(), shared::remote_addresses(), netns()},
      .elsewhere = {{'v', "verbose",
                     "use --json, which has words for T, nanoseconds and the network namespace; "
                     "--explain shows what is attached"},
                    {'C', "", "filter by --cgroup, which takes paths and ids"},
                    {'M', "", "filter by --cgroup, which takes paths and ids"}},
      .hooks = {{"changes of state", {{{progs::on_state}}}},
                {"accepted connections", {{{progs::on_accept}}}},
                {"end of sockets", {{{progs::on_destroy}}}}},
      .report =
          events<Event>(
              {owner<&Event::owner>(id::uid),
               named<&Event::kind, kSigns>("sign", "T", as::wide(as::text, -2),
                                           "C: connect, A: accept, X: close")
                   .in_text(),
               named<&Event::kind, kKinds>("kind", "TYPE", as::text, "connect, accept or close")
                   .with("json"),
               owner<&Event::owner>(id::pid, id::comm), net::ip_version<&Event::flow>(),
               net::titled(net::local_address<&Event::flow>(), "SADDR"),
               net::titled(net::remote_address<&Event::flow>(), "DADDR"),
               net::titled(net::local_port<&Event::flow>(), "SPORT"),
               net::titled(net::remote_port<&Event::flow>(), "DPORT"),
               owner<&Event::owner>(id::tid, id::cgroup), net::namespace_id<&Event::flow>()})
              .timed({{TimeColumn::since_start, "TIME(s)", 14, "timestamp"}}),
      .announce = "Tracing TCP connections",
  };
}
