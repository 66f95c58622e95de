// bindsnoop: addresses and ports that sockets are bound to.
#include "net/bindsnoop.h"

#include "bindsnoop.skel.h"
#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"

using namespace coretap;
using Opt = rodata_of<bindsnoop_bpf>;
using Event = bindsnoop_event;
using Count = Row<flow, bindsnoop_count>;

namespace {

/// A letter for each enabled option, at a fixed position.
std::string letters(const Event& e) {
  constexpr std::string_view kLetters = "FTNRr";
  std::string text(kLetters.size(), '.');
  for (std::size_t i = 0; i < kLetters.size(); i++)
    if (e.options >> i & 1) text[i] = kLetters[i];
  return text;
}

}  // namespace

TOOL(bindsnoop) {
  return {
      .name = "bindsnoop",
      .summary = "calls to bind: which process binds which address and port",
      .description =
          "One line per call to bind(2) on an Internet socket, when it returns: the process, the "
          "protocol, the address and port that the socket then has, and its options: F "
          "IP_FREEBIND, T IP_TRANSPARENT, N IP_BIND_ADDRESS_NO_PORT, R SO_REUSEADDR, r "
          "SO_REUSEPORT. IF is the index of the interface that it is bound to; 0: none.\n\n"
          "--with-errors adds calls that failed, with the error and the requested address and "
          "port. --count prints one table at the end.",
      .overhead =
          "two hooks per call, which is rare; a small cost on every other system call, because the "
          "kernel then takes its slow path",
      .examples = {{"bindsnoop", "all calls that succeed"},
                   {"bindsnoop -E -U", "with failed calls, and the user"},
                   {"bindsnoop -P 80,443 -t", "only these ports, with times"},
                   {"bindsnoop --count", "how often each address and port was bound"},
                   {"bindsnoop -E -- nginx -g 'daemon off;'", "what a command binds"}},
      .questions = {{"Which process binds a port?", "bindsnoop -t"},
                    {"Why is an address already in use?", "bindsnoop -E -P 80"}},
      .differs = {{Difference::both,
                   "-P also finds calls that failed: their port is the requested one. All "
                   "protocols have names."},
                  {Difference::libbpf_tools,
                   "The columns have the order of bcc; RET is RC, shown with -E or -x."},
                  {Difference::both, "RC is the name of the error. There it is a number."}},
      .object = skeleton<bindsnoop_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = joined(
          {{flag('E', "with-errors", "also calls that failed", setting(&Opt::with_errors)),
            flag('x', "with-failed", "the same as --with-errors", setting(&Opt::with_errors)),
            flag(0, "count", "count for each address and port, and print at the end",
                 setting(&Opt::counting)),
            shared::local_ports('P', "port").also("ports"), shared::local_addresses(),
            shared::ipv4(), shared::ipv6(), shared::netns()},
           belonging_to("!count",
                        {shared::timestamp('t').also("since-start"), shared::print_uid()}),
           {shared::wide(), shared::pid(), shared::tid(0), shared::uid(), shared::comm(),
            shared::cgroup(), shared::max_keys()}}),
      .other_meanings = {{'t', "timestamp",
                          "seconds since the start, as in bcc; in libbpf-tools the time of day, "
                          "which --json has (--since-start: without this note)"}},
      .elsewhere = {{0, "debug-source",
                     "the program is already compiled; --explain shows where it is attached"},
                    {0, "errors", "use --with-errors, or -E"},
                    {0, "failed", "use --with-failed, or -x"}},
      .hooks = {{"results", {{{progs::on_exit}}}}, {"bind", {{{progs::on_bind}}}}},
      .report = events<Event>(
          {who<&Event::who>(id::uid),
           derived<Event, [](const Event& e) { return -e.ret; }>(
               "result_errno", "RC", as::wide(as::error, -13), "error of the call")
               .with("with-errors|with-failed")
               .in_text(),
           failure<&Event::ret>("error of the call; null: it succeeded").with("json"),
           who<&Event::who>(id::pid, id::comm),
           derived<Event, [](const Event& e) { return ip_protocol(e.protocol); }>(
               "protocol", "PROT", as::wide(as::text, -5), "its protocol")
               .bounded(),
           net::titled(net::local_address<&Event::flow>(), "ADDR"),
           net::titled(net::local_port<&Event::flow>(), "PORT"),
           derived<Event, letters>("socket_options", "OPTS", as::wide(as::text, -5),
                                   "options that are set: F freebind, T transparent, N no port, R "
                                   "reuse address, r reuse port"),
           field<&Event::interface>("interface", "IF", as::wide(as::small, -3),
                                    "index of the interface; 0: none"),
           net::ip_version<&Event::flow>().with("json"), net::namespace_id<&Event::flow>(),
           who<&Event::who>(id::tid, id::cgroup)}),
      .other_reports = {{"count",
                         table<flow, bindsnoop_count>(
                             maps::binds,
                             {net::local_address<&Count::key>(), net::local_port<&Count::key>(),
                              of_value<Count, &bindsnoop_count::binds>("binds", "BINDS", as::number,
                                                                       "calls that succeeded"),
                              net::ip_version<&Count::key>().with("json"),
                              net::namespace_id<&Count::key>()},
                             "binds")
                             .timed_with("timestamp")}},
      .announce = "Tracing calls to bind",
  };
}
