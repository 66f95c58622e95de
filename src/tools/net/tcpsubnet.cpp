// tcpsubnet: bytes sent over TCP by destination subnet.
#include "net/tcpsubnet.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "coretap/address.hpp"
#include "coretap/config.hpp"
#include "coretap/net.hpp"
#include "coretap/parse.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/sock_io.hpp"
#include "coretap/tool.hpp"
#include "tcpsubnet.skel.h"

using namespace coretap;
using Key = tcpsubnet_key;
using Sums = tcpsubnet_value;
using Line = Row<Key, Sums>;

namespace {

constexpr std::string_view kUsual =
    "127.0.0.1/32,10.0.0.0/8,172.16.0.0/12,192.168.0.0/16,0.0.0.0/0,::1/128,fc00::/7,::/0";

struct Subnet {
  std::string text;
  AddressPrefix prefix;
  bool ipv6;

  bool holds(const Subnet& other) const {
    auto start = other.prefix.address;
    for (auto bit = prefix.bits; bit < 128; bit++)
      start[bit / 8] &= static_cast<std::uint8_t>(~(0x80 >> bit % 8));
    return ipv6 == other.ipv6 && prefix.bits <= other.prefix.bits && start == prefix.address;
  }
};
using Subnets = std::vector<Subnet>;

std::string subnet(const Line& l, const FieldContext& context) {
  if (!context.config) return {};
  auto& all = context.config->own<Subnets>();
  return l.key.subnet < all.size() ? all[l.key.subnet].text : std::string();
}
/// Adds the next subnet of the list.
Result<void> add(Config& c, std::string_view text) {
  auto& all = c.own<Subnets>();
  auto prefix = parse_address_prefix(text);
  if (!prefix)
    return usage(fmt::format("'{}' is not a subnet", text), "for example 10.0.0.0/8,2001:db8::/32");
  Subnet one{std::string(text), *prefix, text.find(':') != text.npos};
  for (auto& before : all) {
    if (before.prefix == one.prefix && before.ipv6 == one.ipv6)
      return usage(fmt::format("{} and {} are the same subnet", before.text, one.text));
    if (before.holds(one))
      c.notes.push_back(
          fmt::format("{0} is inside {1}, which is named before it; traffic to {0} counts only "
                      "there",
                      one.text, before.text));
  }
  if (all.size() == TCPSUBNET_MOST)
    return usage(fmt::format("too many subnets; {} at most", TCPSUBNET_MOST));
  address_prefix key{.bits = prefix->bits};
  std::ranges::copy(prefix->address, key.address);
  c.put(one.ipv6 ? maps::subnets_ipv6 : maps::subnets_ipv4,
        std::string(reinterpret_cast<const char*>(&key), sizeof key),
        std::string(1, static_cast<char>(all.size())));
  all.push_back(std::move(one));
  return {};
}

Result<void> take(Config& c, std::string_view text) {
  Result<void> added;
  bool all = take_parts(text, [&](auto part) {
    added = add(c, part);
    return bool(added);
  });
  if (!all && added) return usage(fmt::format("'{}' contains an empty subnet", text));
  return added;
}

std::vector<Positional> words() {
  return {{.metavar = "SUBNETS",
           .doc = "subnets, separated by commas; without it this machine, private networks, and "
                  "all others",
           .apply = take,
           .otherwise = std::string(kUsual)},
          shared::interval_count(1).front()};
}

/// In bits.
struct UnitOfAmounts {
  std::uint64_t bits = 8;
};

Option unit_of_amounts() {
  return choice('f', "format", "UNIT",
                "show amounts in bits (b), kilobits (k), megabits (m), bytes (B), which is "
                "the default, kilobytes (K) or megabytes (M)",
                {{"B", 8, "bytes"},
                 {"K", 8 << 10, "kilobytes"},
                 {"M", 8 << 20, "megabytes"},
                 {"b", 1, "bits"},
                 {"k", 1 << 10, "kilobits"},
                 {"m", 1 << 20, "megabits"}},
                [](Config& c, std::uint64_t bits) { c.own<UnitOfAmounts>().bits = bits; });
}

std::string amount(const Line& l, const FieldContext& context) {
  auto bits = context.config ? context.config->own<UnitOfAmounts>().bits : 8;
  return fmt::format("{:>10.0f}",
                     static_cast<double>(l.value.bytes) * 8 / static_cast<double>(bits));
}

}  // namespace

TOOL(tcpsubnet) {
  return {
      .name = "tcpsubnet",
      .summary = "bytes sent over TCP by the subnet that they go to",
      .description =
          "Bytes that processes sent over TCP in each interval, summed by the subnet of the other "
          "end. Bytes are those that the calls returned. An address in several subnets counts for "
          "the smallest of them; an address in none counts as excluded by filters. An IPv6 socket "
          "used for IPv4 counts as IPv4.\n\n"
          "Without SUBNETS the subnets are 127.0.0.1/32, 10.0.0.0/8, 172.16.0.0/12, "
          "192.168.0.0/16, 0.0.0.0/0, ::1/128, fc00::/7 and ::/0.\n\n"
          "Not seen: MPTCP sockets.",
      .overhead = "a hook per send, counted in the kernel",
      .examples = {{"tcpsubnet", "private networks and the rest, every second"},
                   {"tcpsubnet 10.1.0.0/16,10.0.0.0/8,0.0.0.0/0 5",
                    "three subnets, every 5 seconds"},
                   {"tcpsubnet -f K 2001:db8::/32,::/0", "IPv6, in kilobytes"},
                   {"tcpsubnet -p 181", "only what process 181 sends"}},
      .questions = {{"How much is sent outside our own network?", "tcpsubnet"},
                    {"Does a service send to that data centre?", "tcpsubnet 198.51.100.0/24 10"}},
      .differs = {{Difference::bcc,
                   "An address counts for the smallest subnet that it is in, and a note is printed "
                   "if a larger one is named before it. There, it counts for the first one."},
                  {Difference::bcc,
                   "Bytes are those that calls returned, also over IPv6. There, they are the "
                   "requested sizes, over IPv4."},
                  {Difference::bcc,
                   "A report starts with the time, as 13:05:59, and titles. There it starts with "
                   "date and time in brackets."}},
      .object = skeleton<tcpsubnet_bpf>(),
      .positionals = words(),
      .options = joined({{unit_of_amounts(), shared::sort(0), shared::top(), shared::pid(),
                          shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
                         shared::flow_filters()}),
      .other_meanings = {{0, "json",
                          "an object for each subnet, in bytes; bcc's has one for each interval "
                          "(--output-format json: without this note)"}},
      .elsewhere = {{'J', "", "use --json"}},
      .hooks = sock_io::hooks(sock_io::sends),
      .report =
          table<Key, Sums>(
              maps::amounts_cpus,
              {derived<Line, subnet>("subnet", "SUBNET", as::wide(as::text, -21), "the subnet")
                   .bounded(),
               derived<Line, amount>("amount", "      SENT", as::wide(as::text, 10),
                                     "sent, in the unit of --format")
                   .in_text(),
               of_value<Line, &Sums::bytes>("tx_bytes", "BYTES", as::number, "sent").with("json"),
               rate_of<Line, &Sums::bytes>("tx_bytes_per_second", "BYTES/s", as::number,
                                           "sent per second")
                   .with("json"),
               of_value<Line, &Sums::sends>("sends", "SENDS", as::number, "calls that sent")},
              "tx_bytes")
              .by_slots(),
      .announce = "Tracing bytes sent by subnet",
  };
}
