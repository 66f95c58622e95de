// tcpstates against connections whose states follow from the first close (RFC 9293, figure 5).
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Each socket's states, in the order of its lines; the next socket may have the address of a
/// closed one.
Strings paths_of(const std::vector<Json>& events, const std::string& rfc = "") {
  std::map<std::uint64_t, Strings> open;
  Strings all;
  for (auto& e : events) {
    auto& path = open[e["socket"].u64()];
    auto before = e[("old_state" + rfc).c_str()].str(), now = e[("new_state" + rfc).c_str()].str();
    if (path.empty()) path.push_back(before);
    EXPECT_EQ(path.back(), before) << "a change was missed";
    path.push_back(now);
    if (!now.starts_with("CLOSE") || now == "CLOSE_WAIT" || now == "CLOSE-WAIT") continue;
    all.push_back(join(path));
    open.erase(e["socket"].u64());
  }
  return all;
}

TOOL_TEST(Tcpstates, ByWhoClosesFirst) {
  auto [client, server, refused] =
      watch_each({{"tcp --sessions 3 --unbound",
                   {"tcpstates --json --strict", "tcpstates --json -L {server_port} --netns {pid}",
                    "tcpstates --json -D {server_port} --netns {pid}"}},
                  {"tcp --sessions 2 --closer server --family 6"},
                  {"tcp --refused --sessions 2"}},
                 {});
  auto report = client.report();
  const std::string closes = "CLOSED SYN-SENT ESTABLISHED FIN-WAIT-1 FIN-WAIT-2 CLOSED",
                    is_closed = "LISTEN SYN-RECEIVED ESTABLISHED CLOSE-WAIT LAST-ACK CLOSED";
  auto of_client = paths_of(own(client, report), "_rfc");
  EXPECT_EQ(std::ranges::count(of_client, closes), 3);
  EXPECT_EQ(std::ranges::count(of_client, is_closed), 3);
  auto of_server = paths_of(own(server, report));
  for (auto* path : {"CLOSE SYN_SENT ESTABLISHED CLOSE_WAIT LAST_ACK CLOSE",
                     "LISTEN SYN_RECV ESTABLISHED FIN_WAIT1 FIN_WAIT2 CLOSE"})
    EXPECT_EQ(std::ranges::count(of_server, path), 2) << path;
  EXPECT_EQ(std::ranges::count(paths_of(own(refused, report)), "CLOSE SYN_SENT CLOSE"), 2);
  for (auto& e : lines_with(own(client, report), {{"remote_port", client.number("server_port")}}))
    EXPECT_EQ(e["pid"].u64(), client.pid);
  for (auto& e : own(server, report)) EXPECT_EQ(e["ip"].u64(), 6u);
  // At its first line a socket has no port yet.
  EXPECT_EQ(std::ranges::count(paths_of(client.body(1), "_rfc"), is_closed), 3);
  EXPECT_EQ(std::ranges::count(paths_of(client.body(2), "_rfc"), closes), 3);
  for (auto& e : client.body(2)) EXPECT_NE(e["local_port"].u64(), 0u);
}

TOOL_TEST(Tcpstates, TimeInStates) {
  auto seen = watch({"tcpstates --json --strict -p {pid}", "tcpstates -T --rfc -w -p {pid}"},
                    "tcp --give-up 150");
  auto events = seen.body();
  ASSERT_GE(events.size(), 2u);
  expect_fields(events[0], {{"new_state", "SYN_SENT"}, {"in_state_ns", nullptr}});
  expect_fields(events[1], {{"new_state", "CLOSE"}});
  EXPECT_GE(events[1]["in_state_ns"].u64(), 150'000'000u);
  EXPECT_LE(events[1]["in_state_ns"].u64(), seen.number("connect_ns") + 1'000'000'000u);
  auto rows = lines(seen.text(1));
  expect_row(rows.at(0), "TIME SKADDR PID COMM IP LADDR LPORT RADDR RPORT OLDSTATE -> NEWSTATE MS");
  expect_row(rows.at(2), "* * * * * * * * * SYN-SENT -> CLOSED *");
  EXPECT_GE(std::stod(words(rows[2]).back()), 150);
}

TESTS_OF(tcpstates, .events = {"-w", "tcp"},
         .stress = event_row("tcp --refused --sessions {n}", 400, for_each_client(2)));

}  // namespace
}  // namespace coretap::tooltest
