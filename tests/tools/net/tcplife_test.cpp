// tcplife against sessions of a private network namespace: ports, bytes and owners are known.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Each session once from each end, with all its known values.
void expect_sessions(const std::string& options, const Family& family = kFour,
                     bool older_than_the_tracer = false) {
  auto seen = watch({"tcplife --json --strict"}, options, family);
  const auto server = seen.number("server_port");
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> ends;
  for (auto& e : own(seen)) {
    SCOPED_TRACE(e["local_port"].u64());
    ends[{e["local_port"].u64(), e["remote_port"].u64()}]++;
    bool client = e["remote_port"].u64() == server;
    expect_fields(e, family.ends() + "type event comm tcp uid 0 established true");
    expect_fields(e,
                  seen.filled(client ? "pid {pid} tx_bytes {client_bytes} rx_bytes {server_bytes}"
                                     : "pid {server_pid} tx_bytes {server_bytes} rx_bytes "
                                       "{client_bytes}"));
    auto* opened_by = client ? "local" : "remote";
    expect_fields(e, {{"opened_by", older_than_the_tracer ? "unknown" : opened_by}});
    ASSERT_EQ(e["lasted_ns"].is_null(), older_than_the_tracer);
    if (older_than_the_tracer) continue;
    EXPECT_LT(e["lasted_ns"].u64(), std::uint64_t(1e9) * kPatience.count());
    EXPECT_GT(e["lasted_ns"].u64(), 0u);
  }
  auto ports = client_ports(seen.truth);
  for (auto& port : ports) {
    EXPECT_EQ((ends[{port, server}]), 1) << "client's end at " << port;
    EXPECT_EQ((ends[{server, port}]), 1) << "server's end for " << port;
  }
  EXPECT_EQ(own(seen).size(), 2 * ports.size());
}

TOOL_TEST(Tcplife, ClientCloses) { expect_sessions("--sessions 20"); }
TOOL_TEST(Tcplife, ServerCloses) {
  expect_sessions("--sessions 20 --closer server --client-bytes 0");
}
// A connection's data may be sent several times, in one subflow or several.
TOOL_TEST(Tcplife, Mptcp) {
  auto seen = watch({"tcplife --json --strict"}, "--mptcp", kFour);
  for (auto& e : own(seen))
    expect_fields(e, seen.filled(e["remote_port"].u64() == seen.number("server_port")
                                     ? "pid {pid} opened_by local"
                                     : "pid {server_pid} opened_by remote"));
  EXPECT_EQ(own(seen).size(), 2 * client_ports(seen.truth).size());
}
TOOL_TEST(Tcplife, Ipv6) { expect_sessions("--server-bytes 3000000", kSix); }
TOOL_TEST(Tcplife, MappedAddresses) { expect_sessions("", kMapped); }

// A packet closes the server's end, in the context of any task: its owner follows later.
TOOL_TEST(Tcplife, ResetByTheOtherEnd) { expect_sessions("--closer reset --sessions 5"); }

TOOL_TEST(Tcplife, OlderThanTheTracer) {
  for (std::string closer : {"client", "server", "reset"}) {
    SCOPED_TRACE(closer);
    expect_sessions("--older --sessions 1 --closer " + closer, kFour, true);
  }
}

TOOL_TEST(Tcplife, AttemptsThatFail) {
  auto seen = watch({"tcplife --json --strict"}, "tcp --refused --sessions 2");
  ASSERT_EQ(own(seen).size(), 2u);
  for (auto& e : own(seen))
    expect_fields(e, {{"pid", seen.pid}, {"established", false}, {"tx_bytes", 0}, {"rx_bytes", 0}});
}

TOOL_TEST(Tcplife, Filters) {
  auto [pair, other] =
      watch_each({{"tcp --sessions 2",
                   {"tcplife --json -p {pid}", "tcplife --json -L {server_port},1",
                    "tcplife --json -D 2,{server_port}", "tcplife --json -6", "tcplife --json -4",
                    "tcplife --json --netns /proc/{pid}/ns/net",
                    "tcplife --json --laddr 10.0.0.0/8,127.0.0.0/8 --raddr 127.0.0.1",
                    "tcplife --json --raddr 127.0.0.0/9,::/127",
                    "tcplife --json --laddr 127.0.0.2 --raddr 192.0.2.0/24"}},
                  {"tcp --sessions 2 --family 6"}},
                 {});
  EXPECT_EQ(pair.shown(0), 2u);
  EXPECT_GE(pair.report(0).lost("filtered"), 6u);
  for (auto& e : pair.body(0)) EXPECT_EQ(e["pid"].u64(), pair.pid);
  for (auto& e : pair.body(1)) EXPECT_EQ(e["local_port"].u64(), pair.number("server_port"));
  for (auto& e : pair.body(2)) EXPECT_EQ(e["remote_port"].u64(), pair.number("server_port"));
  EXPECT_EQ(pair.shown(5), 4u);
  EXPECT_EQ(pair.shown(8), 0u);
  struct {
    std::size_t tool, of_pair, of_other;
  } both[] = {{1, 2, 0}, {2, 2, 0}, {3, 0, 4}, {4, 4, 0}, {6, 4, 0}, {7, 4, 4}};
  for (auto& [tool, of_pair, of_other] : both) {
    EXPECT_EQ(own(pair, tool).size(), of_pair) << tool;
    EXPECT_EQ(own(other, pair.report(tool)).size(), of_other) << tool;
  }
  Scene one("tcp --sessions 2", {});
  auto below = std::to_string(one.ready()["server_port"].u64() - 1);
  one.trace("tcplife --json --netns {pid} -L " + below + "-{server_port}");
  EXPECT_EQ(one.finish().report().body.size(), 2u);
}

TOOL_TEST(Tcplife, Text) {
  auto seen = watch({"tcplife -T -t -p {pid}"}, "tcp --sessions 1");
  EXPECT_TRUE(safe_for_terminals(seen.text()));
  auto rows = lines(seen.text());
  expect_row(rows.at(0), "TIME TIME(s) PID COMM LADDR LPORT RADDR RPORT TX_KB RX_KB MS");
  expect_row(rows.at(1), seen.filled("* * {pid} tcp 127.0.0.1 {client_ports} 127.0.0.1 "
                                     "{server_port} 4 68 *"));
}

TESTS_OF(tcplife, .events = {"-w", "tcp"}, .stress = sessions(200, 2, "pid server_pid"));

}  // namespace
}  // namespace coretap::tooltest
