// tcpstates against connections whose states follow from who closes first (RFC 9293, figure 5).
#include <algorithm>
#include <map>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

using Path = std::vector<std::string>;

/// Each socket's states, in the order of its lines; the next socket may have the address of one
/// that was closed.
std::vector<Path> paths_of(const std::vector<Json>& events, const char* old_key,
                           const char* new_key) {
  std::map<std::uint64_t, Path> open;
  std::vector<Path> all;
  for (auto& e : events) {
    auto& path = open[e["socket"].u64()];
    if (path.empty()) path.push_back(e[old_key].str());
    EXPECT_EQ(path.back(), e[old_key].str()) << "a change was missed";
    path.push_back(e[new_key].str());
    if (!path.back().starts_with("CLOSE") || path.back() == "CLOSE_WAIT" ||
        path.back() == "CLOSE-WAIT")
      continue;
    all.push_back(path);
    open.erase(e["socket"].u64());
  }
  return all;
}

std::size_t count_of(const std::vector<Path>& paths, const Path& path) {
  return static_cast<std::size_t>(std::count(paths.begin(), paths.end(), path));
}

TOOL_TEST(Tcpstates, ByWhoClosesFirst) {
  require_tool("tcpstates");
  Connections client({"--sessions", "3", "--unbound"});
  Connections server({"--sessions", "2", "--closer", "server", "--family", "6"});
  Connections refused({"--refused", "--sessions", "2"});
  Tracer tracer("tcpstates", {"--json", "--strict"});
  Tracer at_port("tcpstates",
                 {"--json", "-L", std::to_string(client.server_port), "--netns", client.id()});
  Tracer to_port("tcpstates",
                 {"--json", "-D", std::to_string(client.server_port), "--netns", client.id()});
  for (auto* w : {&client, &server, &refused}) {
    w->release();
    w->truth();
  }
  auto report = tracer.stop();
  const Path closes{"CLOSED", "SYN-SENT", "ESTABLISHED", "FIN-WAIT-1", "FIN-WAIT-2", "CLOSED"};
  const Path is_closed{"LISTEN", "SYN-RECEIVED", "ESTABLISHED", "CLOSE-WAIT", "LAST-ACK", "CLOSED"};
  auto paths = paths_of(client.own(report), "old_state_rfc", "new_state_rfc");
  EXPECT_EQ(count_of(paths, closes), 3u);
  EXPECT_EQ(count_of(paths, is_closed), 3u);
  paths = paths_of(server.own(report), "old_state", "new_state");
  EXPECT_EQ(
      count_of(paths, {"CLOSE", "SYN_SENT", "ESTABLISHED", "CLOSE_WAIT", "LAST_ACK", "CLOSE"}), 2u);
  EXPECT_EQ(
      count_of(paths, {"LISTEN", "SYN_RECV", "ESTABLISHED", "FIN_WAIT1", "FIN_WAIT2", "CLOSE"}),
      2u);
  paths = paths_of(refused.own(report), "old_state", "new_state");
  EXPECT_EQ(count_of(paths, {"CLOSE", "SYN_SENT", "CLOSE"}), 2u);
  for (auto& e : client.own(report))
    if (e["remote_port"].u64() == client.server_port) {
      EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(client.pid()));
    }
  for (auto& e : server.own(report)) {
    EXPECT_EQ(e["ip"].u64(), 6u);
  }
  // The first line of each socket lacks a port when it happens.
  auto local = at_port.stop().body, remote = to_port.stop().body;
  EXPECT_EQ(count_of(paths_of(local, "old_state_rfc", "new_state_rfc"), is_closed), 3u);
  EXPECT_EQ(count_of(paths_of(remote, "old_state_rfc", "new_state_rfc"), closes), 3u);
  for (auto& e : remote) {
    EXPECT_NE(e["local_port"].u64(), 0u);
  }
}

TOOL_TEST(Tcpstates, TimeInStates) {
  require_tool("tcpstates");
  Connections late({"--give-up", "150"});
  Tracer tracer("tcpstates", {"--json", "--strict", "-p", late.id()});
  Tracer text("tcpstates", {"-T", "--rfc", "-w", "-p", late.id()});
  late.release();
  auto truth = late.truth();
  auto events = tracer.stop().body;
  ASSERT_GE(events.size(), 2u);
  EXPECT_EQ(events[0]["new_state"].str(), "SYN_SENT");
  EXPECT_TRUE(events[0]["in_state_ns"].is_null());
  EXPECT_EQ(events[1]["new_state"].str(), "CLOSE");
  EXPECT_GE(events[1]["in_state_ns"].u64(), 150'000'000u);
  EXPECT_LE(events[1]["in_state_ns"].u64(), truth["connect_ns"].u64() + 1'000'000'000u);
  std::istringstream lines(text.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME", "SKADDR", "PID", "COMM", "IP", "LADDR", "LPORT", "RADDR",
                                  "RPORT", "OLDSTATE", "->", "NEWSTATE", "MS"}));
  ASSERT_TRUE(std::getline(lines, line));
  ASSERT_TRUE(std::getline(lines, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 13u) << line;
  EXPECT_EQ(Strings(cells.begin() + 9, cells.begin() + 12), (Strings{"SYN-SENT", "->", "CLOSED"}));
  EXPECT_GE(std::stod(cells[12]), 150);
}

const DeclareTests kTcpstates{{
    .name = "tcpstates",
    .events = {"-w", "tcp"},
    .stress = {.workload = "tcp --refused --sessions {n}",
               .events = 400,
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return 2 * load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
