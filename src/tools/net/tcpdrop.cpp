// tcpdrop: TCP packets that the kernel drops: the reason, connection, and location.
#include "net/tcpdrop.h"

#include <algorithm>
#include <memory>
#include <set>

#include <fmt/format.h>

#include "coretap/config.hpp"
#include "coretap/flags.hpp"
#include "coretap/kernel.hpp"
#include "coretap/nearest.hpp"
#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/symbols.hpp"
#include "coretap/tool.hpp"
#include "tcpdrop.skel.h"

using namespace coretap;
using Opt = rodata_of<tcpdrop_bpf>;
using Event = tcpdrop_event;
using Key = tcpdrop_key;
using Line = Row<Key, tcpdrop_count>;

namespace {

constexpr std::string_view kReasons = "skb_drop_reason", kPrefix = "SKB_DROP_REASON_";

/// "no_socket"
std::string shown(std::string_view word) {
  std::string name(word);
  std::ranges::transform(name, name.begin(), ::tolower);
  return name.starts_with("skb_drop_reason_") ? name.substr(kPrefix.size()) : name;
}

/// The names as shown, with their numbers, if this kernel has such an enum.
std::vector<std::pair<std::string, std::int64_t>> reasons() {
  auto all = enumerators_of(kReasons);
  for (auto& [name, number] : all) name = shown(name);
  std::erase_if(all, [](auto& r) { return r.second <= 0 || r.second >= TCPDROP_REASONS; });
  return all;
}

struct Settings {
  std::set<std::string> reasons;
  std::shared_ptr<KernelSymbols> symbols;  ///< set if the kernel gives no reasons
};

Option reason() {
  auto option = comma_list(
      0, "reason", "REASON", "only for these reasons, separated by commas",
      [](Config& c, std::string_view part) {
        c.own<Settings>().reasons.insert(shown(part));
        return true;
      },
      "reasons", "for example --reason no_socket,netfilter_drop");
  return one_of(option, [] {
    std::vector<Completion> all;
    for (auto& [name, number] : reasons()) all.push_back({name});
    return all;
  });
}

Result<void> look_up(Config& c) {
  auto known = reasons();
  auto& own = c.own<Settings>();
  if (known.empty()) own.symbols = std::make_shared<KernelSymbols>();
  if (own.reasons.empty()) return {};
  if (known.empty())
    return Error{"--reason: this kernel gives no reasons", "it has no enum skb_drop_reason",
                 "without --reason each drop is shown with its location", kUnsupported};
  c.set(setting(&Opt::by_reason), 1);
  for (auto& name : own.reasons) {
    auto found = std::find_if(known.begin(), known.end(), [&](auto& r) { return r.first == name; });
    if (found == known.end()) {
      std::vector<std::string_view> words;
      words.reserve(known.size());
      for (auto& [word, number] : known) words.push_back(word);
      auto hint = did_you_mean(name, words);
      return usage(fmt::format("--reason: this kernel has no reason '{}'", name),
                   hint.empty() ? "for example no_socket or netfilter_drop" : hint);
    }
    auto wanted = setting(&Opt::wanted_reasons);
    c.set({wanted.offset + static_cast<std::size_t>(found->second), 1}, 1);
  }
  return {};
}

/// Without reasons, only the location distinguishes drops from packets that a driver frees after
/// sending.
bool is_drop(const Config& c, std::uint64_t location) {
  auto& symbols = c.own<Settings>().symbols;
  if (!symbols) return true;
  auto where = symbols->find(location);
  if (!where.known()) return where.module.empty() || where.module == "kernel";
  for (auto* prefix : {"tcp_", "ip_", "ip6_", "ipv6_", "nf_", "kfree_skb_list"})
    if (where.name.starts_with(prefix)) return true;
  return false;
}
bool wanted(const Config& c, const void* e) {
  return is_drop(c, static_cast<const Event*>(e)->location);
}
bool wanted_row(const Line& l, const FieldContext& context) {
  return !context.config || is_drop(*context.config, l.key.location);
}

std::string local(const Event& e) { return ip_endpoint(e.flow.ip, e.flow.local, e.flow.lport); }
std::string remote(const Event& e) { return ip_endpoint(e.flow.ip, e.flow.remote, e.flow.rport); }
std::string source(const Event& e) { return e.received ? remote(e) : local(e); }
std::string destination(const Event& e) { return e.received ? local(e) : remote(e); }
std::string arrow(const Event&) { return ">"; }
std::string direction(const Event& e) { return e.received ? "received" : "sent"; }

Value state(const Event& e) { return value_if(e.state, tcp_state(e.state)); }
Value flags(const Event& e) {
  constexpr FlagWord kFlags[] = {{"FIN", 1},  {"SYN", 2},  {"RST", 4},  {"PSH", 8},
                                 {"ACK", 16}, {"URG", 32}, {"ECE", 64}, {"CWR", 128}};
  return value_if(e.whole, e.flags ? flag_words(kFlags, e.flags) : "");
}

constexpr Format kReason = as::enumerator(kReasons, kPrefix, -18);

}  // namespace

TOOL(tcpdrop) {
  return {
      .name = "tcpdrop",
      .summary = "TCP packets that the kernel drops: why, of which connection, where",
      .description =
          "One line for each TCP packet, received or to be sent, that the kernel frees without "
          "using it, with the reason that the kernel gives, and the kernel stack. Reasons have the "
          "names of this kernel's enum skb_drop_reason, such as no_socket, netfilter_drop or "
          "tcp_old_data. Not all are losses: tcp_old_data is data that had already arrived. "
          "Packets that are freed without a specified reason are left out; --reason not_specified "
          "shows them.\n\n"
          "Kernels before 5.17 give no reasons. There, a packet that functions of TCP, IP or "
          "netfilter free counts as dropped; the location shows where. Packets that TCP drops "
          "after it has found their socket cannot be seen there, nor packets in a device queue.\n\n"
          "STATE is the state of the socket, if the kernel identifies it: for received packets on "
          "6.12 and later. A packet is dropped in the context of whatever task it interrupts. PID "
          "is not that task but the process that was seen to connect, listen on, accept or shut "
          "down the socket, or the sender's socket if the sender is on this host; without one, no "
          "task filter matches the line. For filters the destination of a received packet is the "
          "local end, even if the packet would have been forwarded.\n\n"
          "In IPv6 packets up to eight extension headers are skipped; TCP after more is not shown. "
          "A fragment other than the first has no ports and no flags.\n\n"
          "--count prints one table of reasons and stacks at the end.",
      .overhead =
          "a hook for each dropped packet of any protocol, and a kernel stack for each TCP packet; "
          "use --count if there are thousands a second",
      .examples = {{"tcpdrop", "each dropped packet, with its stack"},
                   {"tcpdrop --no-stack -L 80,443", "a web server, without stacks"},
                   {"tcpdrop -c", "how often for each reason and stack, until Ctrl-C"},
                   {"tcpdrop --reason netfilter_drop", "what the firewall drops"}},
      .questions = {{"Why does the kernel drop TCP packets?", "tcpdrop -c"},
                    {"Which connections does the firewall drop?",
                     "tcpdrop --reason netfilter_drop --no-stack"}},
      .differs = {{Difference::bcc,
                   "Reasons have the names of the running kernel; there, a fixed table misnames "
                   "most of them. PID is the process that owns the connection, if known. There, it "
                   "is the interrupted task."},
                  {Difference::bcc,
                   "FLAGS and REASON are without parentheses, and the number of the reason is only "
                   "in --json. The columns' order is that of bcc; COMM, with -w, is the last."}},
      .object = skeleton<tcpdrop_bpf>(),
      .options =
          joined({{reason(),
                   flag('c', "count", "count for each reason and stack, and print at the end",
                        setting(&Opt::counting)),
                   flag(0, "no-stack", "no kernel stacks")},
                  shared::flow_filters(),
                  {shared::wide(), shared::pid(), shared::tid(), shared::uid(), shared::comm(),
                   shared::cgroup(0), shared::max_keys()},
                  belonging_to("!no-stack", {shared::stack_depth()}),
                  belonging_to("count", {shared::stack_storage()})}),
      .elsewhere = {{0, "netns-id", "use --netns"}, {0, "pid-netns", "use --netns PID"}},
      .hooks = {{"drops",
                 {{{progs::on_drop}, {has_enumerator(kReasons, "SKB_DROP_REASON_NOT_SPECIFIED")}},
                  {.programs = {progs::on_drop},
                   .caveat = "the kernel gives no reasons, and does not report packets that TCP "
                             "drops after it has found their socket"}}},
                {"owners of sockets", {{{progs::on_state}}}},
                accepted_connections(),
                ended_sockets()},
      .maps = {{maps::owners, MapSize::sockets}},
      .report =
          events<Event>(
              {owner<&Event::owner>(id::pid, id::comm.with("wide")),
               net::ip_version<&Event::flow>(),
               derived<Event, source>("source", "SADDR:SPORT", as::endpoint, "where it comes from")
                   .in_text(),
               derived<Event, arrow>("arrow", ">", as::wide(as::text, -1), "to").in_text(),
               derived<Event, destination>("destination", "DADDR:DPORT", as::endpoint,
                                           "where it goes")
                   .in_text(),
               derived<Event, state>("state", "STATE", as::text,
                                     "state of the socket; null: not known")
                   .bounded(),
               derived<Event, flags>("tcp_flags", "FLAGS", as::text,
                                     "flags of the TCP header; null: it could not be read"),
               derived<Event, [](const Event& e) { return unless_0(e.reason); }>(
                   "reason", "REASON", kReason, "why; null: the kernel gives no reasons"),
               derived<Event, [](const Event& e) { return unless_0(e.reason); }>(
                   "reason_code", "CODE", as::small, "the reason as the kernel's number")
                   .with("json"),
               field<&Event::location>("location", "LOCATION", as::symbol,
                                       "function that frees the packet")
                   .with("no-stack"),
               derived<Event, direction>("direction", "DIRECTION", as::text, "received or sent")
                   .bounded()
                   .with("json"),
               net::namespace_id<&Event::flow>(), net::parts<&Event::flow>()},
              "!no-stack")
              .only(wanted)
              .timed({{TimeColumn::wall, "TIME", 12, ""}})
              .columns({{"pid,ip,source,arrow,destination,state,tcp_flags,reason"}}),
      .other_reports = {{"count",
                         table<Key, tcpdrop_count>(
                             maps::drops,
                             {of_value<Line, &tcpdrop_count::drops>("drops", "DROPS", as::number,
                                                                    "dropped packets"),
                              derived<Line, [](const Line& l) { return unless_0(l.key.reason); }>(
                                  "reason", "REASON", kReason,
                                  "why; null: the kernel gives no reasons"),
                              of_key<Line, &Key::location>("location", "LOCATION", as::symbol,
                                                           "function that frees the packet"),
                              kernel_stack_of<Line, &Key::kernel_stack>().only("!no-stack")},
                             "drops")
                             .only<Line, wanted_row>()}},
      .announce = "Tracing dropped TCP packets",
      .look_up = look_up,
  };
}
