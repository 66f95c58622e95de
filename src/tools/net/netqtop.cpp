// netqtop: packets by queue of network interfaces.
#include "net/netqtop.h"

#include <net/if.h>
#include <sys/stat.h>

#include <string>
#include <vector>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "netqtop.skel.h"

using namespace coretap;
using Opt = rodata_of<netqtop_bpf>;
using Key = netqtop_key;
using Sums = netqtop_value;
using Line = Row<Key, Sums>;

namespace {

constexpr std::string_view kDirections[] = {"TX", "RX"};

/// Key for the queues of an interface in one direction.
std::uint64_t side(const Line& l) {
  return std::uint64_t{l.key.netns} << 32 ^ (std::uint64_t{l.key.ifindex} << 1 | l.key.direction);
}
Value share(const Line& l, const FieldContext& context) {
  auto found = context.groups.find(side(l));
  if (found == context.groups.end() || !found->second.sum) return {};
  return static_cast<double>(l.value.packets) / static_cast<double>(found->second.sum);
}
Value imbalance(const Line& l, const FieldContext& context) {
  auto found = context.groups.find(side(l));
  if (found == context.groups.end() || !found->second.sum || !l.key.queues) return {};
  auto mean = static_cast<double>(found->second.sum) / l.key.queues;
  return static_cast<double>(found->second.most) / mean;
}

/// Finds an interface of this network namespace, unless --netns names another one.
Result<void> find_interface(Config& c) {
  auto name = c.text("interface");
  if (name.empty()) return {};
  if (!c.flows.netns) {
    struct stat own {};
    if (!if_nametoindex(std::string(name).c_str()))
      return usage(fmt::format("--interface: there is no interface '{}'", name),
                   "see `ip link`; --netns names another network namespace");
    if (!stat("/proc/self/ns/net", &own)) c.flows.netns = static_cast<std::uint32_t>(own.st_ino);
  }
  auto place = setting(&Opt::interface);
  for (std::size_t i = 0; i < name.size(); i++)
    c.set({place.offset + i, 1}, static_cast<unsigned char>(name[i]));
  c.set(setting(&Opt::one_interface), 1);
  return {};
}

Option interface() {
  auto option =
      value('n', "interface", "IFACE", "only this network interface",
            [](Config&, std::string_view text) -> Result<void> {
              if (!text.empty() && text.size() < NETQTOP_NAME) return {};
              return usage(fmt::format("--interface: '{}' is not an interface name", text));
            })
          .also("name");
  return one_of(option, [] {
    std::vector<Completion> all;
    auto* list = if_nameindex();
    for (auto* i = list; i && i->if_index; i++) all.push_back({i->if_name});
    if (list) if_freenameindex(list);
    return all;
  });
}

}  // namespace

TOOL(netqtop) {
  return {
      .name = "netqtop",
      .summary = "packets by queue of network interfaces: sizes, rates and imbalance",
      .description =
          "Packets that drivers were given to send (TX) and passed up (RX) in each interval, by "
          "interface queue, in size classes. SHARE is the queue's share of the interface's packets "
          "in that direction; MAX/MEAN is the imbalance, the busiest queue relative to the mean of "
          "all queues: 100 % if all have the same, 400 % if one of four has all.\n\n"
          "Sizes include the link header. A packet counts as the driver has it: a packet that the "
          "interface itself segments is one packet sent, and packets merged on arrival (GRO) are "
          "one packet received. If the driver does not report the receive queue, packets count for "
          "queue 0. An interface on top of another one (bridge, VLAN) has separate rows.\n\n"
          "Task filters apply to the task that runs at that moment. What a process sends is often "
          "handed to the driver while it runs; what it receives may arrive while any task runs.",
      .overhead = "a hook per packet in each direction, counted in the kernel",
      .examples = {{"netqtop", "all interfaces, redrawn every second; q quits"},
                   {"netqtop -n eth0 -t", "one interface, with rates"},
                   {"netqtop -C -n eth0 5 2", "two reports of five seconds, one after another"},
                   {"netqtop -s imbalance_ratio", "the most uneven interfaces first"}},
      .questions = {{"Do all queues of a network card have the same load?", "netqtop -n eth0"},
                    {"How large are the packets that are sent?", "netqtop -t"}},
      .differs = {{Difference::bcc,
                   "Both directions and all interfaces are in one table, the queues with most "
                   "packets first. There, -n is required."},
                  {Difference::bcc, "Tasks are selected by --comm. --name is an interface."},
                  {Difference::bcc,
                   "The size of a received packet includes the link header, as for a sent packet. "
                   "Packets of 64K and more are counted; --wide shows them."}},
      .object = skeleton<netqtop_bpf>(),
      .positionals = shared::interval_count(1),
      .options = joined({shared::screen(),
                         {interface(), flag('t', "throughput", "show bytes and packets per second"),
                          shared::wide(0), shared::netns(), shared::pid(), shared::tid(0),
                          shared::uid(), shared::comm(), shared::cgroup(), shared::max_keys()}}),
      .hooks = {{"packets to send", {{{progs::on_transmit}}}},
                {"packets received", {{{progs::on_receive}}}}},
      .report =
          table<Key, Sums>(
              maps::queues,
              {of_key<Line, &Key::name>("interface_name", "IFACE", as::wide(as::text, -15),
                                        "network interface")
                   .capped(),
               named_key<Line, &Key::direction, kDirections>(
                   "direction", "DIR", as::wide(as::text, -3), "TX: sent, RX: received"),
               of_key<Line, &Key::queue>("queue_index", "QUEUE", as::small, "number of the queue"),
               mean_of<Line, &Sums::bytes, &Sums::packets, true>(
                   "average_bytes", "AVG_SIZE", as::wide(as::number, 8), "mean size of a packet"),
               of_element<Line, &Sums::sizes, 0>("size_0_63", "[0,64)", as::pages,
                                                 "packets of this size"),
               of_element<Line, &Sums::sizes, 1>("size_64_511", "[64,512)", as::pages, "the same"),
               of_element<Line, &Sums::sizes, 2>("size_512_2047", "[512,2K)", as::pages,
                                                 "the same"),
               of_element<Line, &Sums::sizes, 3>("size_2048_16383", "[2K,16K)", as::pages,
                                                 "the same"),
               of_element<Line, &Sums::sizes, 4>("size_16384_65535", "[16K,64K)",
                                                 as::wide(as::number, 9), "the same"),
               of_element<Line, &Sums::sizes, 5>("size_65536_up", "[64K,)", as::pages,
                                                 "packets of 64K and more")
                   .with("wide"),
               of_value<Line, &Sums::packets>("packets", "PACKETS", as::pages, "all packets"),
               of_value<Line, &Sums::bytes>("bytes", "BYTES", as::number, "their bytes")
                   .with("json"),
               rate_of<Line, &Sums::bytes>("bytes_per_second", "BPS", as::number,
                                           "bytes per second")
                   .with("throughput"),
               rate_of<Line, &Sums::packets>("packets_per_second", "PPS", as::number,
                                             "packets per second")
                   .with("throughput"),
               derived<Line, share>("share_ratio", "SHARE%", as::percent,
                                    "share of the interface's packets in this direction"),
               derived<Line, imbalance>("imbalance_ratio", "MAX/MEAN", as::wide(as::thousandths, 9),
                                        "packets of the busiest queue relative to the mean of all"),
               of_key<Line, &Key::queues>("queues", "QUEUES", as::small,
                                          "queues of the interface in this direction")
                   .with("json"),
               of_key<Line, &Key::ifindex>("interface", "IFINDEX", as::small,
                                           "index of the interface")
                   .with("json"),
               of_key<Line, &Key::netns>("netns", "NETNS", as::number,
                                         "network namespace: the inode of /proc/PID/ns/net")
                   .with("json")},
              "packets,bytes", 0)
              .without_owner("packets are queued by whatever task runs")
              .grouped_by<Line, side>()
              .on_screen(),
      .announce = "Tracing packets of network interfaces",
      .look_up = find_interface,
  };
}
