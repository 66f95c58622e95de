// protostat: events of TCP and UDP, by the process that owns the socket.
#include "net/protostat.h"

#include "coretap/identity.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "protostat.skel.h"

using namespace coretap;
using Key = protostat_key;
using Counts = protostat_value;
using Line = Row<Key, Counts>;

namespace {

template <std::size_t Counter>
Field count_of(std::string_view key, std::string_view title, int width, std::string_view doc) {
  return of_element<Line, &Counts::count, Counter>(key, title, as::wide(as::number, width), doc);
}
template <std::size_t Cause>
Field cause_of(std::string_view key, std::string_view title, std::string_view doc) {
  return count_of<PROTOSTAT_RETRANSMITS + Cause>(key, title, 7, doc);
}

std::uint64_t retransmits(const Line& l) {
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < RETRANSMIT_CAUSES; i++)
    all += l.value.count[PROTOSTAT_RETRANSMITS + i];
  return all;
}
std::uint64_t segments(const Line& l) {
  return l.value.count[PROTOSTAT_SEGS_IN] + l.value.count[PROTOSTAT_SEGS_OUT] +
         l.value.count[PROTOSTAT_UDP_IN] + l.value.count[PROTOSTAT_UDP_OUT];
}
Value netns(const Key& k) { return unless_0(k.netns); }

}  // namespace

TOOL(protostat) {
  return {
      .name = "protostat",
      .summary = "events of TCP and UDP by process: retransmits, opens, resets, drops",
      .description =
          "The counters that nstat and netstat -s show for a network namespace, for each process: "
          "segments, retransmits by their cause, connections that were opened, failed or reset, "
          "and what sockets dropped. --by comm, cgroup, container or netns adds them up by that.\n\n"
          "The kernel keeps most of these counters in each socket. They are read at each report, "
          "by a pass over the open files of all processes, and when the socket is closed. So they "
          "are exact, and cost nothing for each packet. What happens after a process has closed a "
          "socket counts when the kernel is done with the socket.\n\n"
          "The process is the one that connects, listens, closes, or else has a file of the "
          "socket. If several have one, as after fork(2), it remains the first of them that was "
          "seen until it no longer has the file. Where no process was seen, PID and COMM are "
          "empty; the cgroup is then that of the process that made the socket, or of its listener. "
          "A row without a cgroup has the segments for which there is no socket, and the resets "
          "that answer them; before Linux 6.10 these are not seen.\n\n"
          "The sums over a network namespace are those of nstat (TcpOutSegs, TcpActiveOpens, "
          "TcpRetransSegs, ...), except for what no socket shows: segments of connections in "
          "TIME_WAIT, or in FIN_WAIT2 after close(2); handshakes that are not completed "
          "(tcpsynbl); TCP segments with a wrong checksum, and datagrams for ports without "
          "a socket (tcpdrop shows the former); windows of size zero (ss -ti shows how long one "
          "limited a connection). SEGS-IN counts segments before the kernel joins "
          "them (GRO), TcpInSegs after that.\n\n"
          "MPTCP connections count when they end, accepted ones without a process. Drops of a UDP "
          "socket count until the last report before it is closed.",
      .overhead =
          "a hook per change of a connection's state, per retransmit and per reset; a pass over "
          "all open files per report, about 0.1 us for each; with --udp a hook per send and "
          "receive on any IP socket",
      .examples = {{"protostat", "since its start, until Ctrl-C"},
                   {"protostat 1", "each second"},
                   {"protostat --by container -w 10 1", "all counters of ten seconds by container"},
                   {"protostat --udp --by comm 5", "with datagrams, by command name"},
                   {"protostat -s retransmits --top 5 10", "the five that retransmit most"}},
      .questions = {{"Which process or container causes the events that nstat counts?",
                     "protostat -w 10 1"},
                    {"Whose TCP connections fail in the handshake, or break?",
                     "protostat -s established_resets 10"},
                    {"Which process loses datagrams, or connections that wait to be accepted?",
                     "protostat --udp 10"}},
      .object = skeleton<protostat_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag('U', "udp", "count datagrams, too"), shared::wide(), shared::sort(),
                  shared::top(), shared::timestamp(), shared::netns(), shared::pid(),
                  shared::tid(0), shared::uid(), shared::comm(), shared::cgroup(),
                  shared::max_keys()},
      .hooks = {{"changes of connections", {{{progs::on_state}}}},
                {"ends of sockets", {{{progs::on_destroy}}}},
                {.name = "open files", .candidates = {{{progs::on_file}}}},
                {"retransmits", {{{progs::on_retransmit}}}},
                {"retransmits of SYN-ACKs", {{{progs::on_synack}}}},
                {"resets sent", {{{progs::on_reset_sent}}}},
                {"resets received", {{{progs::on_reset_received}}}},
                {.name = "datagrams sent",
                 .candidates = {{{progs::on_send}}, {{progs::on_send_ipv4, progs::on_send_ipv6}}},
                 .when = "udp"},
                {.name = "datagrams received",
                 .candidates = {{{progs::on_receive}},
                                {{progs::on_receive_ipv4, progs::on_receive_ipv6}}},
                 .when = "udp"}},
      .report =
          table<Key, Counts>(
              maps::counters,
              {owner<&Key::who>(id::pid, id::comm, id::uid.with("json")),
               who<&Key::who>(id::cgroup),
               derived<Key, netns>("netns", "NETNS", as::number,
                                   "network namespace: the inode of /proc/PID/ns/net; null: not "
                                   "known")
                   .key_part()
                   .with("json"),
               count_of<PROTOSTAT_SEGS_IN>("segments_in", "SEGS-IN", 9, "TCP segments received"),
               count_of<PROTOSTAT_SEGS_OUT>("segments_out", "SEGS-OUT", 9, "TCP segments sent"),
               count_of<PROTOSTAT_DATA_SEGS_IN>("data_segments_in", "DATA-IN", 9,
                                                "those received with data")
                   .with("wide"),
               count_of<PROTOSTAT_DATA_SEGS_OUT>("data_segments_out", "DATA-OUT", 9,
                                                 "those sent with data")
                   .with("wide"),
               derived<Line, retransmits>("retransmits", "RETRANS", as::wide(as::number, 7),
                                          "TCP segments sent again, for all causes")
                   .no_metric(),
               cause_of<RETRANSMIT_TIMEOUT>("timeouts", "TIMEOUT", "sent again after a timeout"),
               cause_of<RETRANSMIT_FAST>("fast", "FAST",
                                         "when duplicate acknowledgements show a loss"),
               cause_of<RETRANSMIT_RACK>("rack", "RACK",
                                         "when the times of acknowledged segments show it"),
               cause_of<RETRANSMIT_LOSS_PROBE>("loss_probes", "PROBE", "tail loss probes"),
               cause_of<RETRANSMIT_SYN_ACK>("syn_acks", "SYN-ACK", "answers to a SYN").with("wide"),
               cause_of<RETRANSMIT_OTHER>("others", "OTHER", "for other causes").with("wide"),
               count_of<PROTOSTAT_DSACKS>("duplicate_sacks", "DSACK", 6,
                                          "reports of the other end that it got data twice")
                   .with("wide"),
               count_of<PROTOSTAT_OUT_OF_ORDER>("out_of_order", "OOO", 6,
                                                "segments received out of order"),
               count_of<PROTOSTAT_REORDERINGS>(
                   "reorderings", "REORD", 6,
                   "times that acknowledgements showed that the network had changed the order")
                   .with("wide"),
               count_of<PROTOSTAT_ACTIVE_OPENS>("active_opens", "ACTIVE", 7,
                                                "connections begun by connect"),
               count_of<PROTOSTAT_PASSIVE_OPENS>("passive_opens", "PASSIVE", 7,
                                                 "connections that came to a listener"),
               count_of<PROTOSTAT_FAILED>("failed", "FAILED", 6,
                                          "connections that failed in the handshake"),
               count_of<PROTOSTAT_ESTABLISHED_RESETS>(
                   "established_resets", "BROKEN", 6,
                   "established connections that ended at once, by a reset or an error"),
               count_of<PROTOSTAT_RESETS_IN>("resets_in", "RST-IN", 7, "resets received"),
               count_of<PROTOSTAT_RESETS_OUT>("resets_out", "RST-OUT", 7, "resets sent"),
               count_of<PROTOSTAT_LISTEN_DROPS>(
                   "listen_drops", "LDROPS", 6,
                   "what listening sockets dropped, as when the accept queue is full"),
               count_of<PROTOSTAT_TCP_DROPS>("tcp_drops", "DROPS", 6,
                                             "segments that other TCP sockets dropped"),
               count_of<PROTOSTAT_UDP_IN>("datagrams_in", "UDP-IN", 9, "datagrams received")
                   .with("udp"),
               count_of<PROTOSTAT_UDP_OUT>("datagrams_out", "UDP-OUT", 9, "datagrams sent")
                   .with("udp"),
               count_of<PROTOSTAT_UDP_DROPS>(
                   "udp_drops", "UDROPS", 7,
                   "datagrams that UDP sockets dropped: no room, or a wrong checksum"),
               derived<Line, segments>("packets", "PACKETS", as::number,
                                       "segments and datagrams in both directions")
                   .no_metric()
                   .with("json")},
              "packets")
              .counted_by(PROTOSTAT_EVENTS)
              .passes(progs::on_file),
      .announce = "Counting events of TCP and UDP",
  };
}
