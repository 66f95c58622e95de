// tcpaccept against a server that accepts known connections in a network namespace of its own.
#include <algorithm>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

struct Server : Workload {
  explicit Server(Strings options) : Workload("tcp", std::move(options)) {
    pid = std::to_string(ready()["server_pid"].u64());
    port = std::to_string(ready()["server_port"].u64());
  }
  std::string pid, port;
};

TOOL_TEST(Tcpaccept, EachConnection) {
  require_tool("tcpaccept");
  Server four({"--sessions", "5"}), six({"--sessions", "3", "--family", "6"}),
      mapped({"--sessions", "2", "--family", "mapped"});
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto* server : {&four, &six, &mapped})
    tracers.push_back(
        std::make_unique<Tracer>("tcpaccept", Strings{"--json", "--strict", "-p", server->pid}));
  Tracer port("tcpaccept", {"--json", "-P", four.port, "--netns", four.id()}),
      only_six("tcpaccept", {"--json", "-6", "--raddr", "::1", "--netns", six.id()}),
      text("tcpaccept", {"-p", mapped.pid});
  for (auto* server : {&four, &six, &mapped}) server->release();
  std::size_t next = 0;
  for (auto* server : {&four, &six, &mapped}) {
    auto ports = server->truth()["client_ports"].items();
    auto report = tracers[next]->stop();
    auto address = server == &six ? "::1" : "127.0.0.1";
    ASSERT_EQ(report.body.size(), ports.size());
    for (std::size_t i = 0; i < ports.size(); i++) {
      auto& event = report.body[i];
      EXPECT_EQ(std::to_string(event["pid"].u64()), server->pid);
      EXPECT_EQ(event["comm"].str(), "tcp");
      EXPECT_EQ(event["ip"].u64(), server == &six ? 6u : 4u);
      EXPECT_EQ(event["remote_address"].str(), address);
      EXPECT_EQ(event["local_address"].str(), address);
      EXPECT_EQ(std::to_string(event["local_port"].u64()), server->port);
      EXPECT_TRUE(std::any_of(ports.begin(), ports.end(), [&](auto& port) {
        return port.u64() == event["remote_port"].u64();
      }));
    }
    next++;
  }
  EXPECT_EQ(port.stop().body.size(), 5u);
  EXPECT_EQ(only_six.stop().body.size(), 3u);
  auto shown = text.stop_text();
  EXPECT_TRUE(contains(shown, "tcp              4  127.0.0.1       ")) << shown;
}

TOOL_TEST(Tcpaccept, Columns) {
  require_tool("tcpaccept");
  EXPECT_EQ(header_of("tcpaccept", {}),
            (Strings{"PID", "COMM", "IP", "RADDR", "RPORT", "LADDR", "LPORT"}));
  EXPECT_EQ(header_of("tcpaccept", {"-T", "-t"}),
            (Strings{"TIME", "TIME(s)", "PID", "COMM", "IP", "RADDR", "RPORT", "LADDR", "LPORT"}));
}

const DeclareTests kTcpaccept{{
    .name = "tcpaccept",
    .events = {"-w", "tcp"},
    .stress = {.workload = "tcp --sessions {n} --client-bytes 10 --server-bytes 10",
               .events = 300,
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096",
               .pids = "server_pid"},
}};

}  // namespace
}  // namespace coretap::tooltest
