// tcpconnect against a process that opens a known number of connections to a known port.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

void expect_connects(const std::string& options, const Family& family) {
  auto seen = watch({"tcpconnect --json --strict", "tcpconnect --json --strict -L -p {pid}",
                     "tcpconnect --json -x --netns {pid}", "tcpconnect --json -c --netns {pid}"},
                    options, family);
  auto all = client_ports(seen.truth);
  std::set<std::uint64_t> ports(all.begin(), all.end());
  for (bool with_ports : {false, true}) {
    auto events = own(seen, with_ports ? 1 : 0);
    EXPECT_EQ(events.size(), all.size());
    for (auto& e : events) {
      expect_fields(e, seen.filled(family.ends() + "pid {client_pid} comm tcp uid 0 "
                                                   "remote_port {server_port} error null"));
      EXPECT_EQ(e.has("local_port"), with_ports) << "without -L it is not known yet";
      if (with_ports) {
        EXPECT_EQ(ports.erase(e["local_port"].u64()), 1u) << "each once";
      }
    }
  }
  EXPECT_EQ(seen.shown(2), 0u);
  expect_fields(only(seen.body(3)),
                seen.filled("remote_port {server_port} connects ") + std::to_string(all.size()));
}

// The kernel chooses the ports after the attempts have started.
TOOL_TEST(Tcpconnect, PortsThatTheKernelChooses) {
  expect_connects("--unbound --sessions 5", kFour);
}
TOOL_TEST(Tcpconnect, WithoutBlockingByIpv6) { expect_connects("--unbound --nonblocking", kSix); }
TOOL_TEST(Tcpconnect, MappedAddresses) { expect_connects("", kMapped); }

TOOL_TEST(Tcpconnect, AttemptsThatFail) {
  auto [polled, refused, given_up] =
      watch_each({{"tcp --refused --nonblocking --sessions 3 --family 6",
                   {"tcpconnect --json --strict -x -L", "tcpconnect --json -x -6 --netns {pid}",
                    "tcpconnect --json -x -P 1 --netns {pid}", "tcpconnect -x -p {pid}"}},
                  {"tcp --refused --sessions 2"},
                  {"tcp --give-up 20"}},
                 {});
  auto report = polled.report();
  for (auto& [seen, count] : {std::pair{refused, 2u}, {polled, 3u}}) {
    auto events = own(seen, report);
    EXPECT_EQ(events.size(), count);
    for (auto& e : events) {
      expect_fields(e, seen.filled("error ECONNREFUSED pid {pid} remote_port {server_port}"));
      EXPECT_NE(e["local_port"].u64(), 0u);
    }
  }
  expect_fields(only(own(given_up, report)), "error null");
  EXPECT_EQ(polled.shown(1), 3u);
  EXPECT_EQ(polled.shown(2), 0u);
  EXPECT_GE(polled.report(2).lost("filtered"), 3u);
  expect_row(lines(polled.text(3)).at(1),
             polled.filled("{pid} tcp 6 ::1 ::1 {server_port} ECONNREFUSED"));
}

TOOL_TEST(Tcpconnect, RefusedByTheKernel) {
  auto [no_route, no_port] = watch_each(
      {{"tcp --unreachable --sessions 2 --nonblocking", {"tcpconnect --json --strict -x"}},
       {"tcp --exhausted --sessions 3", {"tcpconnect --json --strict -x -c -p {pid}"}}},
      {});
  for (auto& [of, events, says] :
       {std::tuple{no_route, 2u, "error ENETUNREACH remote_address 192.0.2.1"},
        {no_port, 3u, "error EADDRNOTAVAIL remote_address 127.0.0.1"}}) {
    auto all = own(of, no_route.report());
    EXPECT_EQ(all.size(), events);
    for (auto& e : all) expect_fields(e, of.filled("remote_port {server_port} pid {pid} ") + says);
  }
  EXPECT_EQ(no_port.report().sum("connects"), 3u);
}

TESTS_OF(tcpconnect, .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
         .events = {"-U -w", "tcp"}, .stress = sessions(400, 1, {}, "--unbound"));

}  // namespace
}  // namespace coretap::tooltest
