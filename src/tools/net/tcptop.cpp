// tcptop: bytes sent and received by process and TCP connection.
#include "net/tcptop.h"

#include <vector>

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/sock_io.hpp"
#include "coretap/tool.hpp"
#include "tcptop.skel.h"

using namespace coretap;
using Key = tcptop_key;
using Sums = tcptop_value;
using Line = Row<Key, Sums>;

namespace {

std::uint64_t bytes(const Line& l) { return l.value.rx_bytes + l.value.tx_bytes; }

/// Fields of the endpoints, whose titles are those of similar tools.
std::vector<Field> parts() {
  auto fields = net::parts<&Key::flow>();
  for (auto& field : fields) field.title = {};
  return fields;
}

}  // namespace

TOOL(tcptop) {
  return {
      .name = "tcptop",
      .summary = "bytes sent and received by process and TCP connection, as a screen",
      .description =
          "Bytes that processes sent and received over TCP connections in each interval. Bytes are "
          "those that the calls returned. Sent bytes are those that the socket's buffer accepted. "
          "Data read with MSG_PEEK counts only when it is consumed.\n\n"
          "The process is the one that makes the call, with the name of its first thread: a "
          "connection that two processes use has two rows. Over the loopback each connection has a "
          "row for each end. An IPv6 socket used for IPv4 counts as IPv4.\n\n"
          "Not seen: MPTCP sockets, and data received by mapping (TCP_ZEROCOPY_RECEIVE).",
      .overhead = "a hook per send and per receive, counted in the kernel",
      .examples = {{"tcptop", "redrawn every second; q quits"},
                   {"tcptop -C 5 2", "two reports of five seconds, one after another"},
                   {"tcptop -s received -r 5", "the five that receive most"},
                   {"tcptop -L 80,443", "the clients of a web server"},
                   {"tcptop -p 181", "only connections of process 181"}},
      .questions = {{"Which process uses the network now?", "tcptop"},
                    {"Which client takes most of a server's bandwidth?", "tcptop -L 443 -C 10"}},
      .differs = {{Difference::both,
                   "TX_KB is what calls returned. Peers add up the requested sizes, even of calls "
                   "that fail or send less."},
                  {Difference::both,
                   "All connections are in one table, IPv6 ones with their addresses in brackets. "
                   "Peers print IPv6 in a separate table."},
                  {Difference::both,
                   "COMM is the name of the process. Peers name the thread, and have a row for "
                   "each name."}},
      .object = skeleton<tcptop_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined(
          {shared::screen(),
           {flag('S', "nosummary", "leave out the line with the load average"), shared::wide(),
            shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
           shared::flow_filters(),
           {shared::max_keys()}}),
      .hooks = sock_io::hooks(sock_io::both),
      .report =
          table<Key, Sums>(
              maps::connections,
              {of_key<Line, &Key::pid>("pid", "PID", as::pid, "process that sent or received"),
               of_key<Line, &Key::comm>("comm", "COMM", as::comm, "command name of the process"),
               of_key<Line, &Key::uid>("uid", "UID", as::wide(as::pid, -6), "user id").with("json"),
               net::ip_version<&Key::flow>().with("json"),
               net::titled(net::local_endpoint<&Key::flow>(), "LADDR"),
               net::titled(net::remote_endpoint<&Key::flow>(), "RADDR"), parts(),
               of_value<Line, &Sums::rx_bytes>("rx_bytes", "RX_KB", as::wide(as::kilobytes, 8),
                                               "received"),
               of_value<Line, &Sums::tx_bytes>("tx_bytes", "TX_KB", as::wide(as::kilobytes, 8),
                                               "sent"),
               derived<Line, bytes>("total_bytes", "KB", as::wide(as::kilobytes, 8),
                                    "sent and received together")
                   .with("json"),
               rate_of<Line, &Sums::rx_bytes>("rx_bytes_per_second", "RX/s", as::number,
                                              "received per second")
                   .with("json"),
               rate_of<Line, &Sums::tx_bytes>("tx_bytes_per_second", "TX/s", as::number,
                                              "sent per second")
                   .with("json"),
               of_value<Line, &Sums::receives>("receives", "RECVS", as::number,
                                               "calls that received")
                   .with("json"),
               of_value<Line, &Sums::sends>("sends", "SENDS", as::number, "calls that sent")
                   .with("json"),
               net::namespace_id<&Key::flow>()},
              "total_bytes", 20)
              .counted_by(2)
              .sorted_also_by(
                  {{"all", "total_bytes"}, {"sent", "tx_bytes"}, {"received", "rx_bytes"}})
              .timed_with("!nosummary")
              .on_screen(),
      .announce = "Tracing bytes of TCP connections",
  };
}
