// tcpaccept against a server that accepts known connections in a private network namespace.
#include "connections.hpp"

namespace coretap::tooltest {
TOOL_TEST(Tcpaccept, EachConnection) {
  const std::string all = "tcpaccept --json --strict -p {server_pid}";
  auto servers = watch_all(
      {{"tcp --sessions 5", {all, "tcpaccept --json -P {server_port} --netns {pid}"}},
       {"tcp --sessions 3 --family 6", {all, "tcpaccept --json -6 --raddr ::1 --netns {pid}"}},
       {"tcp --sessions 2 --family mapped", {all, "tcpaccept -p {server_pid}"}}},
      {});
  const Family families[] = {kFour, kSix, kMapped};
  for (std::size_t i = 0; i < servers.size(); i++) {
    auto& server = servers[i];
    auto ports = client_ports(server.truth);
    ASSERT_EQ(server.shown(0), ports.size());
    for (auto& event : server.body()) {
      expect_fields(event, server.filled(families[i].ends() +
                                         "pid {server_pid} comm tcp local_port {server_port}"));
      EXPECT_EQ(std::ranges::count(ports, event["remote_port"].u64()), 1);
    }
  }
  EXPECT_EQ(servers[0].shown(1), 5u);
  EXPECT_EQ(servers[1].shown(1), 3u);
  expect_contains(servers[2].text(1), {"tcp              4  127.0.0.1       "});
}

TESTS_OF(tcpaccept, .events = {"-w", "tcp"}, .stress = sessions(300, 1, "server_pid"));

}  // namespace coretap::tooltest
