// tcpsynbl: accept queue length of listening sockets when a handshake completes, as histograms.
#include "net/tcpsynbl.h"

#include <algorithm>
#include <string_view>

#include "coretap/live_report.hpp"
#include "coretap/net.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/small_files.hpp"
#include "coretap/tool.hpp"
#include "tcpsynbl.skel.h"

using namespace coretap;
using Opt = rodata_of<tcpsynbl_bpf>;
using Key = tcpsynbl_key;

namespace {

struct Refused {
  std::uint64_t overflows, drops;
};

/// The value in the column with this title; the file has two lines for each group of counters.
std::uint64_t tcp_counter(std::string_view text, std::string_view title) {
  constexpr std::string_view kGroup = "TcpExt:";
  auto titles = text.substr(std::min(text.find(kGroup), text.size()));
  auto values = titles.substr(std::min(titles.find(kGroup, kGroup.size()), titles.size()));
  while (!titles.empty() && !values.empty()) {
    auto name = take_until(titles, ' '), value = take_until(values, ' ');
    if (name == title) return parse_unsigned(value).value_or(0);
  }
  return 0;
}

void read_refused(Refused& r) {
  auto text = read_file("/proc/thread-self/net/netstat").value_or("");
  r = {tcp_counter(text, "ListenOverflows"), tcp_counter(text, "ListenDrops")};
}

Value backlog_max(const Key& k) { return value_if(k.backlog_max_1, k.backlog_max_1 - 1); }
Value port(const Key& k) { return unless_0(k.port); }

constexpr HistogramScale kBacklog{unit::plain, 1, false, "backlog"};

}  // namespace

TOOL(tcpsynbl) {
  return {
      .name = "tcpsynbl",
      .summary = "accept queues of listening TCP sockets when handshakes complete",
      .description =
          "How many connections wait to be accepted when a handshake completes and adds another "
          "one, as a log2 histogram for each queue size: the backlog of listen(2), or "
          "net.core.somaxconn if that is less. Large numbers mean that a server accepts too "
          "slowly, or that its queue is too short.\n\n"
          "When the queue is full the kernel refuses to complete a handshake, and drops further "
          "SYNs. These are in no histogram. The kernel's own counters, since tracing began, are "
          "above the histograms: ListenOverflows, handshakes for which a queue was full, and "
          "ListenDrops, everything that listening sockets dropped. They are the counters of the "
          "network namespace that the tool runs in; nsenter -t PID -n runs it in another one.\n\n"
          "A handshake completes in the context of whatever task its last packet interrupts. A "
          "task filter matches the queues of processes that were seen to call listen(2) on a bound "
          "socket. If several sockets share an address and port (SO_REUSEPORT), all their queues "
          "count for the process that called listen(2) last. On older kernels an IPv6 socket that "
          "also accepts IPv4 counts as IPv6, and address filters match the address that the "
          "listening socket is bound to.",
      .overhead = "one hook per change of a connection's state, no output per event",
      .examples = {{"tcpsynbl", "all queues until Ctrl-C"},
                   {"tcpsynbl -T 1 10", "ten reports of one second, with the time"},
                   {"tcpsynbl --by-port -L 80,443", "a web server's queues, each port separately"}},
      .questions = {{"Is the backlog of a server large enough?", "tcpsynbl --by-port 10 1"},
                    {"Are connections refused because a queue is full?", "tcpsynbl 1"}},
      .differs = {{Difference::bcc,
                   "A handshake that a full queue refuses is in the counters above the histograms. "
                   "There it is in a histogram. An IPv4 connection to an IPv6 socket is found "
                   "with -4 on newer kernels only; on older ones with -6."}},
      .object = skeleton<tcpsynbl_bpf>(),
      .positionals = shared::interval_count(),
      .options = {flag(0, "by-port", "one histogram for each local port too",
                       setting(&Opt::by_port)),
                  shared::timestamp(), shared::ipv4(), shared::ipv6(), shared::local_ports(),
                  shared::local_addresses(), shared::netns(), shared::pid(), shared::tid(),
                  shared::uid(), shared::comm(), shared::cgroup(), shared::max_keys()},
      .hooks = {{"handshakes", {{{progs::on_state}}}}},
      .maps = {{maps::owners, MapSize::sockets}},
      .report = LiveReport{.aggregate =
                               histogram<Key>(maps::backlogs, "lengths of accept queues",
                                              {derived<Key, backlog_max>(
                                                   "backlog_max", "backlog_max", as::number,
                                                   "size of the queue; null: no handshake")
                                                   .key_part(),
                                               derived<Key, port>("local_port", "port", as::port,
                                                                  "local port; null: no handshake")
                                                   .key_part()
                                                   .with("by-port")})
                                   .scaled(kBacklog)
                                   .with_totals<Refused>(
                                       {}, "ListenOverflows/ListenDrops",
                                       FieldList{field<&Refused::overflows>(
                                                     "listen_overflows", "OVERFLOWS", as::number,
                                                     "handshakes that a full queue refused"),
                                                 field<&Refused::drops>(
                                                     "listen_drops", "DROPS", as::number,
                                                     "everything that listening sockets dropped")}),
                           .read_totals = of_counters<Refused, read_refused>},
      .announce = "Tracing the accept queues of listening sockets",
  };
}
