// tcpconnlat against connects of known duration: one second, after which a lost SYN is
// retransmitted, and the process's own measurements.
#include "connections.hpp"

namespace coretap::tooltest {
TOOL_TEST(Tcpconnlat, AnAnswerThatIsLost) {
  auto [late, quick] = watch_each(
      {{"tcp --late",
        {"tcpconnlat --json --strict", "tcpconnlat --json 900.5", "tcpconnlat 900 -t -L -p {pid}"}},
       {"tcp --sessions 5 --nonblocking"}},
      {});
  auto report = late.report(), seldom = late.report(1);
  auto event = only(own(late, report));
  auto others = own(quick, report);
  auto latency = event["latency_ns"].u64();
  EXPECT_GE(latency, 950'000'000u) << "a second, by a clock of ticks";
  EXPECT_LE(latency, late.number("connect_ns"));
  expect_fields(event, late.filled(kFour.ends() + "pid {pid} comm tcp local_port {client_ports} "
                                                  "remote_port {server_port} error null"));
  EXPECT_EQ(others.size(), client_ports(quick.truth).size());
  EXPECT_EQ(own(late, seldom).size(), 1u);
  EXPECT_EQ(own(quick, seldom).size(), 0u);
  EXPECT_GE(seldom.lost("filtered"), others.size());
  auto rows = lines(late.text(2));
  expect_row(rows.at(0), "TIME(s) PID COMM IP SADDR LPORT DADDR DPORT LAT(ms)");
  expect_row(rows.at(1), "* * * * * * * * *");
  EXPECT_GE(std::stod(words(rows[1]).back()), 950);
}

TOOL_TEST(Tcpconnlat, AttemptsThatFail) {
  auto [late, refused, polled] = watch_each(
      {{"tcp --give-up 200",
        {"tcpconnlat --json --strict -x", "tcpconnlat --json", "tcpconnlat --json -x -p {pid}"}},
       {"tcp --refused --sessions 2 --family mapped"},
       {"tcp --refused --nonblocking --family 6"}},
      {});
  for (auto& [seen, count, ip] : {std::tuple{refused, 2u, 4}, {polled, 3u, 6}}) {
    auto events = own(seen, late.report());
    EXPECT_EQ(events.size(), count);
    for (auto& e : events)
      expect_fields(e, {{"error", "ECONNREFUSED"}, {"ip", ip}, {"pid", seen.pid}});
  }
  auto given_up = only(late.body(2));  // other processes are excluded
  EXPECT_TRUE(given_up["error"].is_null());
  EXPECT_GE(given_up["latency_ns"].u64(), 200'000'000u);
  EXPECT_LE(given_up["latency_ns"].u64(), late.number("connect_ns") + 1'000'000'000u);
  for (auto& seen : {refused, polled, late}) EXPECT_EQ(own(seen, late.report(1)).size(), 0u);
}

TOOL_TEST(Tcpconnlat, OlderAttemptsOfOtherPorts) {
  const Listener listener(0);  // has room for one connection: later attempts get no answer
  std::vector<Fd> attempts;
  for (int i = 0; i < 4; i++) attempts.push_back(listener.connect());
  Tracer other("tcpconnlat", Strings{"--json", "--strict", "-x", "-P", "1"});
  Tracer same("tcpconnlat", Strings{"--json", "-x", "-P", std::to_string(listener.port())});
  attempts.clear();
  EXPECT_GE(other.stop().lost("filtered"), 2u);
  EXPECT_GE(same.stop().lost("unmatched"), 2u);
}

TESTS_OF(tcpconnlat, .events = {"-w", "tcp"}, .stress = sessions(400, 1, {}, "--unbound"));

}  // namespace coretap::tooltest
