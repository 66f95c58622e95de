// tcpconnect against a process that opens a known number of connections to a known port.
#include <set>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::set<std::uint64_t> ports_of(const Json& truth) {
  std::set<std::uint64_t> ports;
  for (auto& port : truth["client_ports"].items()) ports.insert(port.u64());
  return ports;
}

void expect_connects(const Strings& options, const std::string& address, std::uint64_t ip) {
  require_tool("tcpconnect");
  Connections workload(options);
  Tracer tracer("tcpconnect", {"--json", "--strict"});
  Tracer with_ports("tcpconnect", {"--json", "--strict", "-L", "-p", workload.id()});
  Tracer failed("tcpconnect", {"--json", "-x", "--netns", workload.id()});
  Tracer counted("tcpconnect", {"--json", "-c", "--netns", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto ports = ports_of(truth);
  auto events = workload.own(tracer.stop()), own = workload.own(with_ports.stop());
  EXPECT_EQ(events.size(), ports.size());
  EXPECT_EQ(own.size(), ports.size());
  for (auto* all : {&events, &own})
    for (auto& e : *all) {
      EXPECT_EQ(e["pid"].u64(), truth["client_pid"].u64());
      EXPECT_EQ(e["comm"].str(), "tcp");
      EXPECT_EQ(e["uid"].u64(), 0u);
      EXPECT_EQ(e["ip"].u64(), ip);
      EXPECT_EQ(e["local_address"].str(), address);
      EXPECT_EQ(e["remote_address"].str(), address);
      EXPECT_EQ(e["remote_port"].u64(), workload.server_port);
      EXPECT_TRUE(e["error"].is_null());
    }
  for (auto& e : events) EXPECT_FALSE(e.has("local_port")) << "it is not known yet";
  for (auto& e : own) EXPECT_EQ(ports.erase(e["local_port"].u64()), 1u) << "each once";
  EXPECT_EQ(failed.stop().body.size(), 0u);
  auto rows = counted.stop().body;
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["connects"].u64(), own.size());
  EXPECT_EQ(rows[0]["remote_port"].u64(), workload.server_port);
}

// The kernel chooses the ports after the attempts have started.
TOOL_TEST(Tcpconnect, PortsThatTheKernelChooses) {
  expect_connects({"--unbound", "--sessions", "5"}, "127.0.0.1", 4);
}
TOOL_TEST(Tcpconnect, WithoutBlockingByIpv6) {
  expect_connects({"--unbound", "--nonblocking", "--family", "6"}, "::1", 6);
}
TOOL_TEST(Tcpconnect, MappedAddresses) { expect_connects({"--family", "mapped"}, "127.0.0.1", 4); }

TOOL_TEST(Tcpconnect, AttemptsThatFail) {
  require_tool("tcpconnect");
  Connections refused({"--refused", "--sessions", "2"}), given_up({"--give-up", "20"});
  Connections polled({"--refused", "--nonblocking", "--sessions", "3", "--family", "6"});
  Tracer tracer("tcpconnect", {"--json", "--strict", "-x", "-L"});
  Tracer six("tcpconnect", {"--json", "-x", "-6", "--netns", polled.id()});
  Tracer other("tcpconnect", {"--json", "-x", "-P", "1", "--netns", polled.id()});
  Tracer text("tcpconnect", {"-x", "-p", polled.id()});
  for (auto* w : {&refused, &polled, &given_up}) {
    w->release();
    w->truth();
  }
  auto report = tracer.stop();
  EXPECT_EQ(refused.own(report).size(), 2u);
  EXPECT_EQ(polled.own(report).size(), 3u);
  for (auto* w : {&refused, &polled})
    for (auto& e : w->own(report)) {
      EXPECT_EQ(e["error"].str(), "ECONNREFUSED");
      EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(w->pid()));
      EXPECT_EQ(e["remote_port"].u64(), w->server_port);
      EXPECT_NE(e["local_port"].u64(), 0u);
    }
  ASSERT_EQ(given_up.own(report).size(), 1u);
  EXPECT_TRUE(given_up.own(report)[0]["error"].is_null());
  EXPECT_EQ(six.stop().body.size(), 3u);
  auto none = other.stop();
  EXPECT_EQ(none.body.size(), 0u);
  EXPECT_GE(none.lost("filtered"), 3u);
  std::istringstream lines(text.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"PID", "COMM", "IP", "SADDR", "DADDR", "DPORT", "ERR"}));
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{polled.id(), "tcp", "6", "::1", "::1",
                                  std::to_string(polled.server_port), "ECONNREFUSED"}));
}

TOOL_TEST(Tcpconnect, RefusedByTheKernel) {
  require_tool("tcpconnect");
  Connections no_route({"--unreachable", "--sessions", "2", "--nonblocking"});
  Connections no_port({"--exhausted", "--sessions", "3"});
  Tracer tracer("tcpconnect", {"--json", "--strict", "-x"});
  Tracer counted("tcpconnect", {"--json", "--strict", "-x", "-c", "-p", no_port.id()});
  for (auto* w : {&no_route, &no_port}) {
    w->release();
    w->truth();
  }
  auto report = tracer.stop();
  auto events = no_route.own(report), others = no_port.own(report);
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(others.size(), 3u);
  for (auto& e : events) {
    EXPECT_EQ(e["error"].str(), "ENETUNREACH");
    EXPECT_EQ(e["remote_address"].str(), "192.0.2.1");
    EXPECT_EQ(e["remote_port"].u64(), no_route.server_port);
    EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(no_route.pid()));
  }
  for (auto& e : others) {
    EXPECT_EQ(e["error"].str(), "EADDRNOTAVAIL");
    EXPECT_EQ(e["remote_address"].str(), "127.0.0.1");
    EXPECT_EQ(e["remote_port"].u64(), no_port.server_port);
    EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(no_port.pid()));
  }
  EXPECT_EQ(counted.stop().sum("connects"), 3u);
}

const DeclareTests kTcpconnect{{
    .name = "tcpconnect",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
    .events = {"-U -w", "tcp"},
    .stress = {.workload = "tcp --sessions {n} --unbound --client-bytes 10 --server-bytes 10",
               .events = 400,
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
