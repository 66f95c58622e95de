// tcppktlat: time that received TCP data waits until a process reads it.
#include "net/tcppktlat.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "coretap/clock.hpp"
#include "coretap/config.hpp"
#include "coretap/fd.hpp"
#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "tcppktlat.skel.h"

using namespace coretap;
using Opt = rodata_of<tcppktlat_bpf>;
using Event = tcppktlat_event;
using Key = tcppktlat_key;

namespace {

std::vector<Option> flows() {
  auto all = shared::flow_filters('l', 'r');
  for (auto& o : all)
    if (o.name == "localport" || o.name == "remoteport")
      o.alias = o.name == "localport" ? "lport" : "rport";
  return all;
}

constexpr std::uint64_t kMicrosecond = 1'000;
constexpr std::string_view kParts[] = {"reader", "softirq"};

/// The kernel timestamps received packets while any socket requests it.
Result<void> stamp_packets(Config& c) {
  static Fd socket_that_wants_it;
  if (!c.given("softirq")) return {};
  Fd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int yes = 1;
  if (fd.get() < 0 || setsockopt(fd.get(), SOL_SOCKET, SO_TIMESTAMPNS, &yes, sizeof yes))
    return Error{"--softirq: cannot turn on time stamps of packets", strerror(errno)};
  socket_that_wants_it = std::move(fd);
  c.set(setting(&Opt::wall_clock_ns), static_cast<std::uint64_t>(since_1970_ns(0)));
  return {};
}

}  // namespace

TOOL(tcppktlat) {
  return {
      .name = "tcppktlat",
      .summary = "how long received TCP data waits until a process reads it",
      .description =
          "One line when a process reads data from an established TCP connection: the time from "
          "the arrival of the oldest segment that it reads, when TCP had it in order, until it is "
          "copied. Segments that arrive later do not change that. A long time is due to the "
          "reader: it was busy, or waited for a CPU.\n\n"
          "--softirq adds the time before that: from when the kernel received the packet until TCP "
          "had it. That is packet processing in soft interrupts, the per-CPU queues, and waiting "
          "for a process that uses the socket at that moment. It is empty if the packet has no "
          "time stamp, and wrong after the wall clock is set.\n\n"
          "One call may read several buffers: each has a line. If more than 16 segments wait in a "
          "socket, the 16th represents those after it. Data that arrives while this end is closing "
          "a connection is not timed. An IPv6 socket used for IPv4 counts as IPv4.",
      .overhead =
          "a hook per received packet and one per buffer that is read; --softirq makes the kernel "
          "read the clock for each packet of any protocol",
      .examples = {{"tcppktlat", "all data"},
                   {"tcppktlat 1000", "only data that waited for a millisecond or more"},
                   {"tcppktlat -T -l 443", "a web server, with the time of day"},
                   {"tcppktlat --softirq 500", "with the time before TCP had it"},
                   {"tcppktlat -H -i 5", "histograms, every five seconds"}},
      .questions = {{"Does a process read its data late?", "tcppktlat 1000"},
                    {"Is it the network stack or the process that is slow?",
                     "tcppktlat -H --softirq"}},
      .differs = {{Difference::libbpf_tools,
                   "The time is that of the oldest unread segment. There, each later segment "
                   "restarts the time."}},
      .object = skeleton<tcppktlat_bpf>(),
      .positionals = {shared::threshold("MIN_US", kMicrosecond,
                                        "only data that waited for at least MIN_US microseconds",
                                        setting(&Opt::min_ns))},
      .options = joined(
          {{flag('H', "histogram", "histograms instead of lines", setting(&Opt::distribution)),
            flag(0, "softirq",
                 "also the time from when the kernel received the packet until TCP had it",
                 setting(&Opt::with_softirq)),
            shared::timestamp('T'), shared::wide(), shared::pid(), shared::tid(), shared::uid(),
            shared::comm(), shared::cgroup()},
           flows(),
           belonging_to("histogram", {shared::milliseconds(), shared::interval()}),
           {shared::duration('d')}}),
      .hooks = {{"segments that arrive", {{{progs::on_segment}}}},
                {"data that is read", {{{progs::on_taken}}}},
                ended_sockets()},
      .report =
          events<Event>(
              {owner<&Event::who>(id::pid, id::tid.with(""), id::comm),
               net::ip_version<&Event::flow>().with("wide"), net::local_address<&Event::flow>(),
               net::local_port<&Event::flow>(), net::remote_address<&Event::flow>(),
               net::remote_port<&Event::flow>(),
               field<&Event::latency_ns>("latency_ns", "MS", as::precise(as::milliseconds, 3),
                                         "time from when TCP had the data until it was read"),
               derived<Event, [](const Event& e) { return unless_0(e.softirq_ns); }>(
                   "softirq_ns", "SOFTIRQ(ms)", as::wide(as::precise(as::milliseconds, 3), 11),
                   "time before that, since the kernel received the packet")
                   .with("softirq"),
               owner<&Event::who>(id::uid.with("json"), id::cgroup),
               net::namespace_id<&Event::flow>()})
              .timed({{TimeColumn::wall, "TIME", 12, "timestamp"}}),
      .other_reports = {{"histogram",
                         histogram<Key>(maps::waits, "times",
                                        {named<&Key::part, kParts>(
                                             "part", "part", as::text,
                                             "reader: until a process read it; softirq: before")
                                             .with("softirq")})}},
      .announce = "Tracing how long received data waits",
      .look_up = stamp_packets,
  };
}
