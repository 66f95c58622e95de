// tcptracer against sessions whose two ends belong to known processes.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Each end of each session has two lines, with its process.
void expect_both_ends(const std::string& options, const Family& family) {
  auto seen = watch({"tcptracer --json --strict"}, options, family);
  const auto server = seen.number("server_port");
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> kinds;
  for (auto& e : own(seen)) {
    bool client = e["remote_port"].u64() == server;
    kinds[{e["local_port"].u64(), e["remote_port"].u64()}] += " " + e["kind"].str();
    expect_fields(e, seen.filled(family.ends() + "comm tcp pid " +
                                 (client ? "{client_pid}" : "{server_pid}")));
  }
  auto ports = client_ports(seen.truth);
  EXPECT_EQ(kinds.size(), 2 * ports.size());
  for (auto& port : ports) {
    EXPECT_EQ((kinds[{port, server}]), " connect close");
    EXPECT_EQ((kinds[{server, port}]), " accept close");
  }
}

TOOL_TEST(Tcptracer, ClientCloses) { expect_both_ends("--sessions 10 --unbound", kFour); }
TOOL_TEST(Tcptracer, ServerClosesWithoutBlockingByIpv6) {
  expect_both_ends("--closer server --nonblocking", kSix);
}
TOOL_TEST(Tcptracer, MptcpIsAccepted) {
  auto seen = watch({"tcptracer --json --strict"}, "--mptcp", kFour);
  auto accepted = lines_with(own(seen), {{"kind", "accept"}});
  EXPECT_EQ(accepted.size(), client_ports(seen.truth).size());
  for (auto& e : accepted) expect_fields(e, seen.filled("comm tcp pid {server_pid}"));
}
TOOL_TEST(Tcptracer, ResetByTheOtherEnd) { expect_both_ends("--closer reset", kMapped); }

TOOL_TEST(Tcptracer, FiltersAndText) {
  auto [seen, refused] =
      watch_each({{"tcp --sessions 1",
                   {"tcptracer --json -p {server_pid}", "tcptracer --json -6 -N {pid}",
                    "tcptracer -t -U -p {pid}"}},
                  {"tcp --refused --sessions 2", {"tcptracer --json -N {netns}"}}},
                 {});
  EXPECT_EQ(seen.shown(0), 2u);
  EXPECT_EQ(seen.shown(1), 0u);
  EXPECT_GE(seen.report(1).lost("filtered"), 4u);
  EXPECT_EQ(refused.shown(0), 0u) << "what fails was no connection";
  auto rows = lines(seen.text(2));
  expect_row(rows.at(0), "TIME(s) UID T PID COMM IP SADDR DADDR SPORT DPORT");
  const std::string ends = " {pid} tcp 4 127.0.0.1 127.0.0.1 {client_ports} {server_port}";
  expect_row(rows.at(1), seen.filled("* 0 C" + ends));
  expect_row(rows.at(2), seen.filled("* 0 X" + ends));
}

TESTS_OF(tcptracer, .events = {"-U", "tcp"}, .stress = sessions(200, 4, "pid server_pid"));

}  // namespace
}  // namespace coretap::tooltest
