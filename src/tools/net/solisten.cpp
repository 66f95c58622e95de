// solisten: sockets that start to listen.
#include "net/solisten.h"

#include "coretap/net.hpp"
#include "coretap/skeleton.hpp"
#include "coretap/tool.hpp"
#include "solisten.skel.h"

using namespace coretap;
using Event = solisten_event;

namespace {

std::string protocol(const Event& e) {
  return ip_protocol(e.protocol) + (e.flow.ip == 6 ? "v6" : "v4");
}

Option netns() {
  auto option = shared::netns();
  option.letter = 'n';
  return option;
}

}  // namespace

TOOL(solisten) {
  return {
      .name = "solisten",
      .summary = "calls to listen: which process serves which address and port",
      .description =
          "One line per call to listen(2) on an Internet socket, when it returns: the process, 0 "
          "or the error, the queue length that the program requested (BACKLOG), and where the "
          "socket listens. MAX, with --wide, is the length that the kernel has set: never more "
          "than net.core.somaxconn.",
      .overhead =
          "two hooks per call, which is rare; a small cost on every other system call, because the "
          "kernel then takes its slow path",
      .examples = {{"solisten", "all calls"},
                   {"solisten -t -w", "with the time of day, and room for IPv6 addresses"},
                   {"solisten -n /proc/self/ns/net", "in the tool's own network namespace"},
                   {"solisten -- nginx", "where a command listens"}},
      .questions = {{"Which process starts to serve a port?", "solisten -t"},
                    {"Does a server request a long enough queue?", "solisten -w -p 1234"}},
      .differs = {{Difference::both,
                   "BACKLOG is what the program passed. Peers show it after the kernel has capped "
                   "it; that is the column MAX."},
                  {Difference::bcc,
                   "RET is a column after COMM, and PROTO follows BACKLOG, as in libbpf-tools."},
                  {Difference::libbpf_tools, "RET has the name of the error."}},
      .object = skeleton<solisten_bpf>(),
      .positionals = {shared::duration_argument()},
      .options = {shared::timestamp('t'), netns(),
                  flag(0, "show-netns", "print the network namespace"), shared::local_ports('P'),
                  shared::local_addresses(), shared::ipv4(), shared::ipv6(), shared::wide(),
                  shared::pid(), shared::tid(0), shared::uid(), shared::comm(), shared::cgroup()},
      .hooks = {{"results", {{{progs::on_exit}}}}, {"listen", {{{progs::on_listen}}}}},
      .report =
          events<Event>({who<&Event::who>(id::pid, id::comm),
                         net::namespace_id<&Event::flow>().with("show-netns"),
                         derived<Event, [](const Event& e) { return -e.ret; }>(
                             "result_errno", "RET", as::wide(as::error, -10), "error of the call")
                             .in_text(),
                         failure<&Event::ret>("error of the call; null: it succeeded").with("json"),
                         field<&Event::backlog>("backlog", "BACKLOG", as::wide(as::small, -7),
                                                "queue length that the program requested"),
                         field<&Event::max_backlog>("max_backlog", "MAX", as::wide(as::small, -7),
                                                    "length that the kernel has set")
                             .with("wide"),
                         derived<Event, protocol>("protocol", "PROTO", as::wide(as::text, -7),
                                                  "protocol and version of IP")
                             .bounded(),
                         net::titled(net::local_port<&Event::flow>(), "PORT"),
                         net::titled(net::local_address<&Event::flow>(), "ADDR"),
                         net::ip_version<&Event::flow>().with("json"),
                         who<&Event::who>(id::tid, id::uid.with("json"), id::cgroup)})
              .timed({{TimeColumn::wall, "TIME", 12, "timestamp"}})
              .columns({{"pid,comm,netns,result_errno,backlog,protocol,local_port,local_address"}}),
      .announce = "Tracing calls to listen",
  };
}
