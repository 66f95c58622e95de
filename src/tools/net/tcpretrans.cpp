// tcpretrans: retransmitted TCP segments.
#include "net/tcpretrans.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcpretrans.skel.h"

using namespace coretap;
using Opt = rodata_of<tcpretrans_bpf>;
using Event = tcpretrans_event;
using Count = Row<flow, tcpretrans_count>;

namespace {

constexpr std::string_view kSigns[] = {"R>", "L>", "S>"};
constexpr std::string_view kKinds[] = {"retransmit", "loss_probe", "syn_ack"};
static_assert(std::size(kSigns) == TCPRETRANS_KINDS && std::size(kKinds) == TCPRETRANS_KINDS);

std::string state(const Event& e) { return tcp_state(e.state); }
std::string arrow(const Count&) { return "<->"; }

template <std::size_t Cause>
Field count_of(std::string_view key, std::string_view title, std::string_view doc) {
  return of_element<Count, &tcpretrans_count::causes, Cause>(key, title, as::wide(as::number, 7),
                                                             doc);
}

}  // namespace

TOOL(tcpretrans) {
  return {
      .name = "tcpretrans",
      .summary = "TCP retransmits: which connections send again, in which state",
      .description =
          "One line for each buffer that TCP sends again, as one segment or several, because the "
          "other end has not acknowledged it: a sign of loss, or of an end that does not keep up. T shows what is "
          "sent: R data, L a tail loss probe (with --lossprobe), S a SYN-ACK.\n\n"
          "A retransmit runs in the context of whatever task its timer or a packet interrupts. PID "
          "is not that task but the process that was seen to connect, accept or shut down the "
          "socket; if none was seen, as with connections older than the tracer, there is no PID, "
          "and no task filter matches the line.\n\n"
          "CAUSE is rack where RACK marks a connection's lost segments: by the times when others "
          "were sent that have been acknowledged (RFC 8985). That is so if both ends use SACK, "
          "unless the sysctl net.ipv4.tcp_recovery forbids it on an older kernel. Elsewhere counts "
          "of duplicate acknowledgements mark them: fast. The kernel does not keep whether an "
          "acknowledgement or RACK's timer showed the loss.\n\n"
          "--count prints one table of connections at the end, with a column for each cause. An "
          "IPv6 socket used for IPv4 counts as IPv4.",
      .overhead =
          "a hook per retransmit, one per change of a connection's state and one per accepted "
          "connection: not measurable",
      .examples = {{"tcpretrans", "each retransmit"},
                   {"tcpretrans -l -s", "with tail loss probes and sequence numbers"},
                   {"tcpretrans -c", "how often each connection sent again, and why, until Ctrl-C"},
                   {"tcpretrans -6 -p 181", "process 181, only IPv6"}},
      .questions = {{"Does the network lose packets?", "tcpretrans"},
                    {"Which connections send again, and how often?", "tcpretrans -c"},
                    {"Why does connecting take a second or more?", "tcpretrans"}},
      .differs = {{Difference::bcc,
                   "PID is the process that owns the connection, if known. There, it is the "
                   "interrupted task. With -c ends are ADDRESS:PORT instead of [ADDRESS]#PORT. "
                   "Retransmitted SYN-ACKs have lines, too."}},
      .object = skeleton<tcpretrans_bpf>(),
      .options = joined({{flag('s', "sequence", "print sequence numbers"),
                          flag('l', "lossprobe", "also tail loss probes that repeat a segment",
                               setting(&Opt::with_probes)),
                          flag('c', "count", "count for each connection, and print at the end",
                               setting(&Opt::counting))},
                         shared::flow_filters(0, 0),
                         {shared::wide(), shared::pid(), shared::tid(), shared::uid(),
                          shared::comm(), shared::cgroup(0), shared::max_keys()}}),
      .hooks = {{"retransmits", {{{progs::on_retransmit}}}},
                {"answers to SYN", {{{progs::on_synack}}}},
                {"owners of sockets", {{{progs::on_state}}}},
                accepted_connections(),
                ended_sockets()},
      .report =
          events<Event>(
              {owner<&Event::owner>(id::pid, id::comm.with("wide")),
               net::ip_version<&Event::flow>(), net::local_endpoint<&Event::flow>(),
               named<&Event::kind, kSigns>("sign", "T>", as::wide(as::text, -2),
                                           "R: retransmit, L: tail loss probe, S: SYN|ACK")
                   .in_text(),
               net::remote_endpoint<&Event::flow>(),
               derived<Event, state>("state", "STATE", as::text, "state of the connection")
                   .bounded(),
               field<&Event::sequence>("sequence", "SEQ", as::wide(as::number, -10),
                                       "first sequence number of the segment")
                   .with("sequence"),
               named<&Event::cause, kRetransmitCauses>(
                   "cause", "CAUSE", as::wide(as::text, -10),
                   "why: timeout, fast, rack, loss_probe, syn_ack or other"),
               named<&Event::kind, kKinds>("kind", "KIND", as::text,
                                           "retransmit, loss_probe or syn_ack")
                   .with("json"),
               field<&Event::length>("length_bytes", "LEN", as::number,
                                     "length; SYN and FIN count as a byte")
                   .with("json"),
               field<&Event::segments>("segments", "SEGS", as::number, "packets that it is sent as")
                   .with("json"),
               field<&Event::congestion>(
                   "congestion_state", "CONGESTION", as::enumerator("tcp_ca_state", "TCP_CA_", -10),
                   "state of congestion control: loss (after a timeout), recovery "
                   "(acknowledgements with gaps), or the state before either"),
               net::namespace_id<&Event::flow>(), net::parts<&Event::flow>()})
              .timed({{TimeColumn::wall, "TIME", 12, ""}}),
      .other_reports =
          {{"count",
            table<flow, tcpretrans_count>(
                maps::flows,
                {net::local_endpoint<&Count::key>(),
                 derived<Count, arrow>("arrow", "", as::wide(as::text, -3), "between the two ends")
                     .key_part()
                     .in_text(),
                 net::remote_endpoint<&Count::key>(),
                 of_value<Count, &tcpretrans_count::retransmits>(
                     "retransmits", "RETRANSMITS", as::number, "retransmitted segments"),
                 of_value<Count, &tcpretrans_count::bytes>("sent_again_bytes", "BYTES", as::number,
                                                           "bytes in these segments")
                     .with("json"),
                 count_of<RETRANSMIT_TIMEOUT>("timeouts", "TIMEOUT", "after a timeout"),
                 count_of<RETRANSMIT_FAST>("fast", "FAST",
                                           "when duplicate acknowledgements show a loss"),
                 count_of<RETRANSMIT_RACK>("rack", "RACK",
                                           "when the times of acknowledged segments show it"),
                 count_of<RETRANSMIT_LOSS_PROBE>("loss_probes", "PROBE", "tail loss probes"),
                 count_of<RETRANSMIT_SYN_ACK>("syn_acks", "SYN-ACK", "answers to a SYN"),
                 count_of<RETRANSMIT_OTHER>("others", "OTHER", "for other causes"),
                 net::ip_version<&Count::key>().with("json"), net::namespace_id<&Count::key>(),
                 net::parts<&Count::key>()},
                "retransmits")}},
      .announce = "Tracing TCP retransmits",
  };
}
