// tcpcong: time that TCP connections spend in each congestion control state.
#include "net/tcpcong.h"

#include <cstddef>

#include "coretap/live_report.hpp"
#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcpcong.skel.h"

using namespace coretap;
using Times = tcpcong_times;
using Key = tcpcong_key;

/// Row<tcpcong_flow, Times>, with the parts of its key.
struct Line {
  flow key;
  char algorithm[sizeof(tcpcong_flow::algorithm)];
  Times value;
};
static_assert(offsetof(Line, value) == sizeof(tcpcong_flow));

namespace {

enum State { open, disorder, cwr, recovery, loss };  // the kernel's numbers

/// In milliseconds, or with --microseconds in microseconds.
template <State Of>
std::vector<Field> state(std::string_view key, std::string_view title, std::string_view key_us,
                         std::string_view title_us, std::string_view doc) {
  return {of_element<Line, &Times::ns, Of>(key, title, as::milliseconds, doc).with("!microseconds"),
          of_element<Line, &Times::ns, Of>(key_us, title_us, as::whole_microseconds, doc)
              .no_metric()
              .with("microseconds")
              .in_text()};
}

constexpr std::uint64_t kNoThreshold = 0x7fffffff;  // TCP_INFINITE_SSTHRESH

Value window(const Line& l) { return unless_0(std::uint64_t{l.value.window.slots[0]}); }
Value threshold(const Line& l) {
  auto packets = std::uint64_t{l.value.threshold.slots[0]};
  return value_if(packets && packets < kNoThreshold, packets);
}

void add_running(Times& t, std::uint64_t now_ns) {
  if (t.state && t.state <= TCPCONG_STATES && now_ns > t.since)
    t.ns[t.state - 1] += now_ns - t.since;
  t.since = t.state = 0;
}

}  // namespace

TOOL(tcpcong) {
  return {
      .name = "tcpcong",
      .summary = "time of TCP connections in each state of congestion control",
      .description =
          "For each connection whose congestion control changes its state, the time in each state, "
          "and how often it changed. Open is the normal state; Dod (disorder): duplicate "
          "acknowledgements arrive, which may mean a loss; Rcov (recovery): lost segments are "
          "retransmitted; Cwr: the window is reduced because a router marked packets (ECN) or a "
          "queue of this host was full; Los (loss): a timeout, everything is retransmitted. Cwnd and "
          "Ssthr are the congestion window and the threshold of slow start, in packets, at the last "
          "change. A connection that changes its algorithm has a row for each.\n\n"
          "A connection appears with its first change, and then in each report until it is closed. "
          "Its first state lasts from its first SYN, or from the start of the tracer if the "
          "connection is older. The state at the end of an interval counts up to that point, and "
          "the rest counts in the next interval. --dist shows histograms of how long states last; "
          "a state counts when it ends.\n\n"
          "States change in the context of whatever task a timer or a packet interrupts. A task "
          "filter matches connections that the process was seen to open or accept, not those older "
          "than the tracer. An IPv6 socket used for IPv4 counts as IPv4.",
      .overhead =
          "one hook per change of congestion control's state and one per change of a connection's "
          "state; if the first is missing, hooks per received segment",
      .examples = {{"tcpcong", "all connections until Ctrl-C"},
                   {"tcpcong -T 1 10", "ten reports of one second, with the time"},
                   {"tcpcong -R 443 -u", "connections to port 443, in microseconds"},
                   {"tcpcong -d", "how long each state lasts"}},
      .questions = {{"Are connections slowed down by congestion control?", "tcpcong 1"},
                    {"How long does TCP need to recover from losses?", "tcpcong -d 60 1"}},
      .differs = {{Difference::bcc,
                   "Ends are ADDRESS:PORT instead of ADDRESS/PORT, in one table for IPv4 and IPv6, "
                   "connections with the most changes first. The current state of a connection "
                   "counts up to the end of the interval. There, it counts when it ends."}},
      .object = skeleton<tcpcong_bpf>(),
      .positionals = shared::interval_count(),
      .options = joined(
          {{flag('d', "dist", "histograms of how long each state lasts",
                 setting(&rodata_of<tcpcong_bpf>::distributed)),
            shared::microseconds("times in microseconds"), shared::timestamp(), shared::wide()},
           shared::flow_filters('L', 'R'),
           {shared::pid(), shared::tid(), shared::uid(0), shared::comm(), shared::cgroup(),
            shared::max_keys()}}),
      .hooks = {{"changes of congestion control's state",
                 {{{progs::on_set}},
                  {.programs = {progs::after_alert, progs::after_loss, progs::after_cwr,
                                progs::after_probe},
                   .caveat =
                       "connections that are older than the tracer count from when congestion "
                       "control first handles them"},
                  {.programs = {progs::on_segment, progs::on_retransmit},
                   .caveat = "a change is seen only with the next segment that is received or "
                             "retransmitted; older connections count from then"}}},
                {"states of connections", {{{progs::on_state}}}},
                accepted_connections("task-filter"),
                {"start of tracing", {{{progs::on_start}}}},
                ended_sockets()},
      .report =
          LiveReport{
              table<tcpcong_flow, Times>(
                  maps::flows,
                  {net::titled(net::local_endpoint<&Line::key>(), "LAddrPort"),
                   net::titled(net::remote_endpoint<&Line::key>(), "RAddrPort"),
                   state<open>("open_ns", "Open_ms", "open_us", "Open_us", "the normal state"),
                   state<disorder>("disorder_ns", "Dod_ms", "disorder_us", "Dod_us",
                                   "duplicate acknowledgements arrive"),
                   state<recovery>("recovery_ns", "Rcov_ms", "recovery_us", "Rcov_us",
                                   "lost segments are retransmitted"),
                   state<cwr>("cwr_ns", "Cwr_ms", "cwr_us", "Cwr_us", "the window is reduced"),
                   state<loss>("loss_ns", "Los_ms", "loss_us", "Los_us", "after a timeout"),
                   of_value<Line, &Times::changes>("changes", "Chgs", as::small,
                                                   "changes of the state"),
                   derived<Line, window>("cwnd_packets", "Cwnd", as::small,
                                         "congestion window, in packets, at the last change of "
                                         "the interval; null: there was none")
                       .or_null(),
                   derived<Line, threshold>("ssthresh_packets", "Ssthr", as::small,
                                            "threshold of slow start then; null: there is none yet")
                       .or_null(),
                   field<&Line::algorithm>("algorithm", "Algorithm", as::wide(as::text, -9),
                                           "algorithm of congestion control")
                       .bounded(),
                   net::ip_version<&Line::key>().with("json"), net::namespace_id<&Line::key>(),
                   net::parts<&Line::key>()},
                  "changes")
                  .without_owner("rows are connections; tcpstates shows their owners")
                  .with_largest<&Times::window>()
                  .with_largest<&Times::threshold>()
                  .timed_with("timestamp"),
              of_counters<Times, add_running>},
      .other_reports = {{"dist",
                         histogram<Key>(
                             maps::durations, "times in one state",
                             {field<&Key::state>("congestion_state", "state",
                                                 as::enumerator("tcp_ca_state", "TCP_CA_", -10),
                                                 "state of congestion control")})
                             .without_owner("rows are connections; tcpstates shows their owners")
                             .in_milliseconds()}},
      .announce = "Tracing the states of congestion control",
  };
}
