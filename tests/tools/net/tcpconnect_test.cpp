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
      expect_fields(e, {{"pid", seen.number("client_pid")},
                        {"comm", "tcp"},
                        {"uid", 0},
                        {"ip", family.ip},
                        {"local_address", family.address},
                        {"remote_address", family.address},
                        {"remote_port", seen.number("server_port")},
                        {"error", nullptr}});
      EXPECT_EQ(e.has("local_port"), with_ports) << "without -L it is not known yet";
      if (with_ports) {
        EXPECT_EQ(ports.erase(e["local_port"].u64()), 1u) << "each once";
      }
    }
  }
  EXPECT_EQ(seen.shown(2), 0u);
  auto rows = seen.body(3);
  ASSERT_EQ(rows.size(), 1u);
  expect_fields(rows[0], {{"connects", all.size()}, {"remote_port", seen.number("server_port")}});
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
      expect_fields(e, {{"error", "ECONNREFUSED"},
                        {"pid", seen.pid},
                        {"remote_port", seen.number("server_port")}});
      EXPECT_NE(e["local_port"].u64(), 0u);
    }
  }
  ASSERT_EQ(own(given_up, report).size(), 1u);
  EXPECT_TRUE(own(given_up, report)[0]["error"].is_null());
  EXPECT_EQ(polled.shown(1), 3u);
  EXPECT_EQ(polled.shown(2), 0u);
  EXPECT_GE(polled.report(2).lost("filtered"), 3u);
  auto rows = lines(polled.text(3));
  expect_row(rows.at(0), "PID COMM IP SADDR DADDR DPORT ERR");
  expect_row(rows.at(1), polled.filled("{pid} tcp 6 ::1 ::1 {server_port} ECONNREFUSED"));
}

TOOL_TEST(Tcpconnect, RefusedByTheKernel) {
  auto [no_route, no_port] = watch_each(
      {{"tcp --unreachable --sessions 2 --nonblocking", {"tcpconnect --json --strict -x"}},
       {"tcp --exhausted --sessions 3", {"tcpconnect --json --strict -x -c -p {pid}"}}},
      {});
  struct {
    const Seen& of;
    std::size_t events;
    const char *error, *address;
  } cases[] = {{no_route, 2, "ENETUNREACH", "192.0.2.1"},
               {no_port, 3, "EADDRNOTAVAIL", "127.0.0.1"}};
  for (auto& [of, events, error, address] : cases) {
    auto all = own(of, no_route.report());
    EXPECT_EQ(all.size(), events);
    for (auto& e : all)
      expect_fields(e, {{"error", error},
                        {"remote_address", address},
                        {"remote_port", of.number("server_port")},
                        {"pid", of.pid}});
  }
  EXPECT_EQ(no_port.report().sum("connects"), 3u);
}

const DeclareTests kTcpconnect{{
    .name = "tcpconnect",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
    .events = {"-U -w", "tcp"},
    .stress = sessions(400, 1, {}, "--unbound"),
}};

}  // namespace
}  // namespace coretap::tooltest
