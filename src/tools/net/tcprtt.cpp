// tcprtt: TCP round-trip times as a histogram.
#include "net/tcprtt.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcprtt.skel.h"

using namespace coretap;
using Opt = rodata_of<tcprtt_bpf>;
using Key = tcprtt_key;

namespace {

std::string local(const Key& k) { return ip_address(k.ip, k.local); }
std::string remote(const Key& k) { return ip_address(k.ip, k.remote); }

}  // namespace

TOOL(tcprtt) {
  return {
      .name = "tcprtt",
      .summary = "TCP round-trip times as a histogram",
      .description =
          "A log2 histogram of the smoothed round-trip time of a connection, added each time that "
          "it receives a segment. It is what ss -i calls rtt: an average in which a new sample has "
          "a weight of one eighth. The value is the one before the segment, whose own "
          "acknowledgement counts with the next segment.\n\n"
          "With --raw each sample counts once: the time from sending a segment until it was "
          "acknowledged, without smoothing. The kernel keeps the latest one for connections with "
          "selective acknowledgements, which nearly all have. The mean deviation, which ss -i "
          "prints after the slash, is not shown: histograms of samples show more.\n\n"
          "A segment is received in the context of whatever task it interrupts. A task filter "
          "matches connections that the process was seen to open or accept, not those older than "
          "the tracer. An IPv6 socket used for IPv4 counts as IPv4.",
      .overhead = "one hook per received segment of established connections, no output per event",
      .examples = {{"tcprtt", "one histogram of all connections until Ctrl-C"},
                   {"tcprtt -i 1 -d 10 -m", "each second for ten seconds, in milliseconds"},
                   {"tcprtt -p 80,443 -B", "a web server, a histogram for each client"},
                   {"tcprtt --raw -A 192.0.2.0/24", "samples of connections to a network"}},
      .questions = {{"Is the network slow, and to which hosts?", "tcprtt -B -e"},
                    {"Does the round-trip time vary?", "tcprtt --raw -i 1"}},
      .differs = {{Difference::both,
                   "Processes are selected by --pid: -p is the local port, as there. Ports may be "
                   "lists and ranges, addresses may have prefixes."},
                  {Difference::both,
                   "-e prints average, total and count below each histogram, "
                   "instead of the average above it."}},
      .object = skeleton<tcprtt_bpf>(),
      .options = {flag(0, "raw", "samples instead of smoothed values", setting(&Opt::raw)),
                  flag('b', "byladdr", "one histogram per local address", setting(&Opt::by_local)),
                  flag('B', "byraddr", "one histogram per remote address",
                       setting(&Opt::by_remote)),
                  flag('e', "extension", "print average, total and count below each histogram"),
                  shared::interval(),
                  shared::duration('d'),
                  shared::timestamp(),
                  shared::milliseconds(),
                  shared::ipv4(),
                  shared::ipv6(),
                  shared::local_ports('L').also("lport").also('p'),
                  shared::remote_ports('P').also("rport"),
                  shared::local_addresses('a'),
                  shared::remote_addresses('A'),
                  shared::netns(),
                  shared::pid(0),
                  shared::tid(),
                  shared::uid(),
                  shared::comm(),
                  shared::cgroup(),
                  shared::max_keys()},
      .elsewhere = {{'D', "debug", "use --verbose"}},
      .hooks = {{"received segments", {{{progs::on_segment}}}},
                {"owners of sockets", {{{progs::on_state}}}, "task-filter|by"},
                accepted_connections("task-filter|by"),
                ended_sockets("raw|task-filter")},
      .report = histogram<Key>(
          maps::times, "round-trip times",
          {derived<Key, local>("local_address", "Local Address", as::address, "local address")
               .key_part()
               .with("byladdr"),
           derived<Key, remote>("remote_address", "Remote Address", as::address, "remote address")
               .key_part()
               .with("byraddr")},
          "extension"),
      .announce = "Tracing TCP round-trip times",
  };
}
