// tcplife against sessions of a network namespace of our own: ports, bytes and owners are known.
#include <algorithm>
#include <map>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

struct Expected {
  std::string address = "127.0.0.1";
  std::uint64_t ip = 4;
  bool client_begin = true, server_begin = true;
};

/// Each session once from each end, with all that is known about it.
void expect_sessions(const Connections& pair, const Json& truth, const std::vector<Json>& events,
                     const Expected& expected = {}) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, int> seen;
  for (auto& e : events) {
    SCOPED_TRACE(e["local_port"].u64());
    seen[{e["local_port"].u64(), e["remote_port"].u64()}]++;
    bool client = e["remote_port"].u64() == pair.server_port;
    EXPECT_EQ(e["type"].str(), "event");
    EXPECT_EQ(e["ip"].u64(), expected.ip);
    EXPECT_EQ(e["local_address"].str(), expected.address);
    EXPECT_EQ(e["remote_address"].str(), expected.address);
    EXPECT_EQ(e["pid"].u64(), client ? static_cast<std::uint64_t>(pair.pid()) : pair.server_pid);
    EXPECT_EQ(e["comm"].str(), "tcp");
    EXPECT_EQ(e["uid"].u64(), 0u);
    EXPECT_TRUE(e["established"].boolean());
    auto tx = truth[client ? "client_bytes" : "server_bytes"].u64();
    auto rx = truth[client ? "server_bytes" : "client_bytes"].u64();
    EXPECT_EQ(e["tx_bytes"].u64(), tx);
    EXPECT_EQ(e["rx_bytes"].u64(), rx);
    if (client ? expected.client_begin : expected.server_begin) {
      EXPECT_EQ(e["opened_by"].str(), client ? "local" : "remote");
      EXPECT_LT(e["lasted_ns"].u64(), std::uint64_t(1e9) * kPatience.count());
      EXPECT_GT(e["lasted_ns"].u64(), 0u);
    } else {
      EXPECT_TRUE(e["lasted_ns"].is_null());
      EXPECT_EQ(e["opened_by"].str(), "unknown");
    }
  }
  for (auto& port : truth["client_ports"].items()) {
    EXPECT_EQ((seen[{port.u64(), pair.server_port}]), 1) << "client's end at " << port.u64();
    EXPECT_EQ((seen[{pair.server_port, port.u64()}]), 1) << "server's end for " << port.u64();
  }
  EXPECT_EQ(events.size(), 2 * truth["client_ports"].items().size());
}

void expect_all_of(const Strings& options, const Expected& expected) {
  require_tool("tcplife");
  Connections pair(options);
  Tracer tracer("tcplife", {"--json", "--strict"});
  pair.release();
  auto truth = pair.truth();
  expect_sessions(pair, truth, pair.own(tracer.stop()), expected);
}

TOOL_TEST(Tcplife, ClientCloses) { expect_all_of({"--sessions", "20"}, {}); }
TOOL_TEST(Tcplife, ServerCloses) {
  expect_all_of({"--sessions", "20", "--closer", "server", "--client-bytes", "0"}, {});
}
TOOL_TEST(Tcplife, Ipv6) {
  expect_all_of({"--family", "6", "--server-bytes", "3000000"}, {.address = "::1", .ip = 6});
}
TOOL_TEST(Tcplife, MappedAddresses) { expect_all_of({"--family", "mapped"}, {}); }

// The server's end is closed by a packet, in whatever runs then: its owner comes by itself later.
TOOL_TEST(Tcplife, ResetByTheOtherEnd) {
  expect_all_of({"--closer", "reset", "--sessions", "5"}, {});
}

TOOL_TEST(Tcplife, OlderThanTheTracer) {
  for (auto* closer : {"client", "server", "reset"}) {
    SCOPED_TRACE(closer);
    expect_all_of({"--older", "--sessions", "1", "--closer", closer},
                  {.client_begin = false, .server_begin = false});
  }
}

TOOL_TEST(Tcplife, AttemptsThatFail) {
  require_tool("tcplife");
  Connections pair({"--refused", "--sessions", "2"});
  Tracer tracer("tcplife", {"--json", "--strict"});
  pair.release();
  pair.truth();
  auto events = pair.own(tracer.stop());
  ASSERT_EQ(events.size(), 2u);
  for (auto& e : events) {
    EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(pair.pid()));
    EXPECT_FALSE(e["established"].boolean());
    EXPECT_EQ(e["tx_bytes"].u64() + e["rx_bytes"].u64(), 0u);
  }
}

TOOL_TEST(Tcplife, Filters) {
  require_tool("tcplife");
  Connections pair({"--sessions", "2"}), other({"--sessions", "2", "--family", "6"});
  auto trace = [](Strings options) {
    options.insert(options.begin(), "--json");
    return std::make_unique<Tracer>("tcplife", options);
  };
  auto port = std::to_string(pair.server_port);
  auto client = trace({"-p", pair.id()}), local = trace({"-L", port + ",1"});
  auto remote = trace({"-D", "2," + port}), six = trace({"-6"}), four = trace({"-4"});
  auto port_range = std::to_string(pair.server_port - 1) + "-" + port;
  auto range = trace({"-L", port_range, "--netns", pair.id()});
  auto in_net = trace({"--netns", "/proc/" + pair.id() + "/ns/net"});
  auto in_prefix = trace({"--laddr", "10.0.0.0/8,127.0.0.0/8", "--raddr", "127.0.0.1"});
  auto six_prefix = trace({"--raddr", "127.0.0.0/9,::/127"});
  auto elsewhere = trace({"--laddr", "127.0.0.2", "--raddr", "192.0.2.0/24"});
  for (auto* p : {&pair, &other}) {
    p->release();
    p->truth();
  }
  auto own = client->stop(), at_port = local->stop(), to_port = remote->stop();
  EXPECT_EQ(own.body.size(), 2u);
  EXPECT_GE(own.lost("filtered"), 6u);
  for (auto& e : own.body) EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(pair.pid()));
  EXPECT_EQ(pair.own(at_port).size(), 2u);
  for (auto& e : at_port.body) EXPECT_EQ(e["local_port"].u64(), pair.server_port);
  EXPECT_EQ(pair.own(to_port).size(), 2u);
  for (auto& e : to_port.body) EXPECT_EQ(e["remote_port"].u64(), pair.server_port);
  auto sixes = six->stop(), fours = four->stop();
  EXPECT_EQ(other.own(sixes).size(), 4u);
  EXPECT_EQ(pair.own(sixes).size(), 0u);
  EXPECT_EQ(pair.own(fours).size(), 4u);
  EXPECT_EQ(other.own(fours).size(), 0u);
  EXPECT_EQ(range->stop().body.size(), 2u);
  EXPECT_EQ(in_net->stop().body.size(), 4u);
  auto fours_too = in_prefix->stop(), both = six_prefix->stop();
  EXPECT_EQ(pair.own(fours_too).size(), 4u);
  EXPECT_EQ(other.own(fours_too).size(), 0u);
  EXPECT_EQ(pair.own(both).size(), 4u);
  EXPECT_EQ(other.own(both).size(), 4u);
  EXPECT_EQ(elsewhere->stop().body.size(), 0u);
  for (auto& wrong : std::vector<Strings>{
           {"-4", "-6"}, {"-L", "65536"}, {"-D", "0"}, {"--laddr", "1.2.3"}, {"--netns", "x"}}) {
    auto words = wrong;
    words.insert(words.begin(), tool_path("tcplife"));
    EXPECT_EQ(run(words).status, 2);
  }
}

TOOL_TEST(Tcplife, FollowsACommand) {
  require_tool("tcplife");
  Tracer tracer("tcplife", {"--json", "--strict", "--", workload_path("tcp"), "--sessions", "2"},
                {.attached = false});
  ASSERT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  auto report = parse_report(tracer.process().out(), tracer.process().err());
  EXPECT_EQ(report.body.size(), 4u);
}

TOOL_TEST(Tcplife, TextAndCsv) {
  require_tool("tcplife");
  Connections pair({"--sessions", "1"});
  Tracer text("tcplife", {"-T", "-t", "-p", pair.id()}), wide("tcplife", {"-w", "-p", pair.id()});
  Tracer csv("tcplife", {"--csv", "-p", pair.id()});
  pair.release();
  auto truth = pair.truth();
  auto shown = text.stop_text(), table = csv.stop_text(), widely = wide.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  std::istringstream lines(shown), rows(table), wides(widely);
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME", "TIME(s)", "PID", "COMM", "LADDR", "LPORT", "RADDR",
                                  "RPORT", "TX_KB", "RX_KB", "MS"}));
  ASSERT_TRUE(std::getline(lines, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 11u) << line;
  auto port = std::to_string(truth["client_ports"].items()[0].u64());
  EXPECT_EQ(Strings(cells.begin() + 2, cells.begin() + 10),
            (Strings{pair.id(), "tcp", "127.0.0.1", port, "127.0.0.1",
                     std::to_string(pair.server_port), "4", "68"}));
  ASSERT_TRUE(std::getline(wides, line));
  EXPECT_EQ(words(line), (Strings{"PID", "COMM", "IP", "LADDR", "LPORT", "RADDR", "RPORT", "TX_KB",
                                  "RX_KB", "MS"}));
  ASSERT_TRUE(std::getline(rows, line));
  EXPECT_TRUE(line.starts_with("time,monotonic_ns,pid,comm,ip,local_address,")) << line;
  ASSERT_TRUE(std::getline(rows, line));
  EXPECT_TRUE(contains(line, "," + pair.id() + ",tcp,4,127.0.0.1," + port + ",127.0.0.1,")) << line;
}

const DeclareTests kTcplife{{
    .name = "tcplife",
    .events = {"-w", "tcp"},
    .stress = {.workload = "tcp --sessions {n} --client-bytes 10 --server-bytes 10",
               .events = 200,
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return 2 * load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096",
               .pids = "pid server_pid"},
}};

}  // namespace
}  // namespace coretap::tooltest
