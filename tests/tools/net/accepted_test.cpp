// Owners of accepted connections, in all tools that name owners, against the process that is known
// to accept them.
#include <algorithm>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Lines of the sockets that the server accepted, but for those of its listener.
std::vector<Json> accepted(const Connections& workload, const Report& report) {
  auto lines = workload.own(report);
  std::erase_if(lines, [&](auto& line) {
    return line["local_port"].u64() != workload.server_port || line["remote_port"].u64() == 0;
  });
  return lines;
}

void expect_accepter(const Connections& workload, const std::vector<Json>& lines) {
  for (auto& line : lines) {
    EXPECT_EQ(line["pid"].u64(), workload.server_pid);
    EXPECT_EQ(line["comm"].str(), "tcp");
  }
}

std::size_t with(const std::vector<Json>& lines, const char* key, const char* value) {
  return static_cast<std::size_t>(std::count_if(
      lines.begin(), lines.end(), [&](auto& line) { return line[key].str() == value; }));
}

const Strings kFamilies[] = {{"--family", "4"}, {"--family", "6"}, {"--family", "mapped"}};

// Another process serves and closes what the server accepts. The first two changes come before that
// is accepted; the client closes first, so that a packet makes the change to CLOSE_WAIT.
TOOL_TEST(AcceptedOwners, Tcpstates) {
  require_tool("tcpstates");
  for (auto options : kFamilies) {
    SCOPED_TRACE(options[1]);
    options.insert(options.end(), {"--sessions", "4", "--handed"});
    Connections workload(options);
    Tracer tracer("tcpstates", {"--json", "--strict"});
    Tracer own("tcpstates", {"--json", "-p", std::to_string(workload.server_pid)});
    workload.release();
    workload.truth();
    auto lines = accepted(workload, tracer.stop()), of_server = accepted(workload, own.stop());
    EXPECT_EQ(with(lines, "old_state", "SYN_RECV"), 4u);
    std::erase_if(lines, [](auto& line) {
      return line["old_state"].str() == "LISTEN" || line["old_state"].str() == "SYN_RECV";
    });
    EXPECT_EQ(with(lines, "new_state", "CLOSE_WAIT"), 4u);
    EXPECT_EQ(lines.size(), 12u);
    expect_accepter(workload, lines);
    EXPECT_EQ(of_server.size(), 12u);
  }
}

TOOL_TEST(AcceptedOwners, Tcplife) {
  require_tool("tcplife");
  for (auto* closer : {"client", "server", "reset"}) {
    SCOPED_TRACE(closer);
    Connections workload({"--sessions", "5", "--handed", "--closer", closer});
    Tracer tracer("tcplife", {"--json", "--strict"});
    Tracer own("tcplife", {"--json", "-p", std::to_string(workload.server_pid)});
    workload.release();
    workload.truth();
    auto lines = accepted(workload, tracer.stop());
    EXPECT_EQ(lines.size(), 5u);
    expect_accepter(workload, lines);
    EXPECT_EQ(accepted(workload, own.stop()).size(), 5u);
  }
}

TOOL_TEST(AcceptedOwners, Tcpretrans) {
  require_tool("tcpretrans");
  Connections workload({"--sessions", "2", "--server-lost", "3", "--server-bytes", "100"});
  Tracer tracer("tcpretrans", {"--json", "--strict", "-l"});
  Tracer own("tcpretrans", {"--json", "-l", "-p", std::to_string(workload.server_pid)});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto lines = accepted(workload, report);
  EXPECT_EQ(workload.own(report).size(), truth["retransmits"].u64());
  EXPECT_GE(lines.size(), 2u);
  expect_accepter(workload, lines);
  EXPECT_EQ(workload.own(own.stop()).size(), lines.size());
}

// The server's socket does not take what the client sends.
TOOL_TEST(AcceptedOwners, Tcpdrop) {
  require_tool("tcpdrop");
  for (auto options : kFamilies) {
    SCOPED_TRACE(options[1]);
    options.insert(options.end(), {"--sessions", "2", "--lost", "2", "--handed"});
    Connections workload(options);
    Tracer tracer("tcpdrop", {"--json", "--strict", "--no-stack"});
    Tracer own("tcpdrop", {"--json", "--no-stack", "-p", std::to_string(workload.server_pid)});
    workload.release();
    workload.truth();
    auto lines = accepted(workload, tracer.stop());
    if (lines.empty()) throw Skip("this kernel does not tell what a socket's filter drops");
    EXPECT_GE(lines.size(), 4u);
    expect_accepter(workload, lines);
    EXPECT_EQ(accepted(workload, own.stop()).size(), lines.size());
  }
}

// A session's first segment may come before it is accepted; those that acknowledge come after.
TOOL_TEST(AcceptedOwners, Tcprtt) {
  require_tool("tcprtt");
  Connections workload({"--sessions", "5", "--handed"});
  Strings flow{"--json",      "--strict", "--netns",
               workload.id(), "-L",       std::to_string(workload.server_port)};
  auto server = flow, client = flow;
  server.insert(server.end(), {"-p", std::to_string(workload.server_pid)});
  client.insert(client.end(), {"-p", workload.id()});
  Tracer all("tcprtt", flow), own("tcprtt", server), others("tcprtt", client);
  workload.release();
  workload.truth();
  auto each = all.stop().body.at(0)["count"].u64(),
       of_server = own.stop().body.at(0)["count"].u64();
  EXPECT_GE(of_server, 10u) << "an acknowledgement and an end of each";
  EXPECT_LE(of_server, each);
  EXPECT_GE(of_server + 5, each);
  EXPECT_EQ(others.stop().body.at(0)["count"].u64(), 0u);
}

TOOL_TEST(AcceptedOwners, Tcpcong) {
  require_tool("tcpcong");
  Connections workload({"--sessions", "1", "--server-lost", "3", "--server-bytes", "100"});
  Tracer all("tcpcong", {"--json", "--strict", "--netns", workload.id()});
  Tracer own("tcpcong", {"--json", "--strict", "-p", std::to_string(workload.server_pid)});
  workload.release();
  workload.truth();
  auto each = accepted(workload, all.stop()), of_server = workload.own(own.stop());
  ASSERT_EQ(each.size(), 1u);
  ASSERT_EQ(of_server.size(), 1u);
  EXPECT_EQ(of_server[0]["local_port"].u64(), workload.server_port);
  EXPECT_EQ(of_server[0]["changes"].u64(), each[0]["changes"].u64());
  EXPECT_GT(of_server[0]["loss_ns"].u64(), 0u);
}

// What is received and sent is counted for the task that does it, from the first byte on.
TOOL_TEST(AcceptedOwners, Tcptop) {
  require_tool("tcptop");
  Connections workload({"--sessions", "3"});
  Tracer tracer("tcptop", {"--json", "--strict", "-p", std::to_string(workload.server_pid), "60"});
  workload.release();
  auto truth = workload.truth();
  auto lines = accepted(workload, tracer.stop());
  EXPECT_EQ(lines.size(), 3u);
  expect_accepter(workload, lines);
  for (auto& line : lines) {
    EXPECT_EQ(line["rx_bytes"].u64(), truth["client_bytes"].u64());
    EXPECT_EQ(line["tx_bytes"].u64(), truth["server_bytes"].u64());
  }
}

}  // namespace
}  // namespace coretap::tooltest
