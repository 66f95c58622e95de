// Owners of accepted connections, in all tools that name owners, against the process known to
// accept them.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Lines of the sockets that the server accepted, without those of its listener.
std::vector<Json> accepted(const Observed& seen, std::size_t tool) {
  auto lines = lines_with(own(seen, tool), {{"local_port", seen.number("server_port")}});
  std::erase_if(lines, [](auto& line) { return line["remote_port"].u64() == 0; });
  return lines;
}

void expect_accepter(const Observed& seen, const std::vector<Json>& lines) {
  for (auto& line : lines)
    expect_fields(line, {{"pid", seen.number("server_pid")}, {"comm", "tcp"}});
}

/// With all processes, and with the server only.
Observed watch_server(const std::string& tool, const std::string& workload,
                      const Family& family = kFour) {
  return watch({tool + " --json --strict", tool + " --json -p {server_pid}"}, workload, family);
}

// Another process serves and closes the connections that the server accepts. The first two state
// changes precede the accept; the client closes first, so a packet makes the change to CLOSE_WAIT.
TOOL_TEST(AcceptedOwners, Tcpstates) {
  for (auto& family : {kFour, kSix, kMapped}) {
    SCOPED_TRACE(family.name);
    auto seen = watch_server("tcpstates", "--sessions 4 --handed", family);
    auto lines = accepted(seen, 0);
    EXPECT_EQ(lines_with(lines, {{"old_state", "SYN_RECV"}}).size(), 4u);
    std::erase_if(lines, [](auto& line) {
      return line["old_state"].str() == "LISTEN" || line["old_state"].str() == "SYN_RECV";
    });
    EXPECT_EQ(lines_with(lines, {{"new_state", "CLOSE_WAIT"}}).size(), 4u);
    EXPECT_EQ(lines.size(), 12u);
    expect_accepter(seen, lines);
    EXPECT_EQ(accepted(seen, 1).size(), 12u);
  }
}

/// This number of lines of the sockets, and the same number with -p of the server.
void expect_owned(const Observed& seen, std::size_t least, std::size_t most = 1000) {
  auto lines = accepted(seen, 0);
  EXPECT_TRUE(lines.size() >= least && lines.size() <= most) << lines.size();
  expect_accepter(seen, lines);
  EXPECT_EQ(accepted(seen, 1).size(), lines.size());
}

TOOL_TEST(AcceptedOwners, Tcplife) {
  for (std::string closer : {"client", "server", "reset"}) {
    SCOPED_TRACE(closer);
    auto seen = watch_server("tcplife", "--sessions 5 --handed --closer " + closer);
    expect_owned(seen, 5, 5);
  }
}

TOOL_TEST(AcceptedOwners, Tcpretrans) {
  auto seen = watch_server("tcpretrans -l", "--sessions 2 --server-lost 3 --server-bytes 100");
  expect_owned(seen, 2);
  EXPECT_EQ(own(seen).size(), seen.number("retransmits"));
  EXPECT_EQ(own(seen, 1).size(), accepted(seen, 1).size());
}

// The server's socket refuses the client's data.
TOOL_TEST(AcceptedOwners, Tcpdrop) {
  for (auto& family : {kFour, kSix, kMapped}) {
    SCOPED_TRACE(family.name);
    auto seen = watch_server("tcpdrop --no-stack", "--sessions 2 --lost 2 --handed", family);
    if (accepted(seen, 0).empty())
      throw Skip("this kernel does not tell what a socket's filter drops");
    expect_owned(seen, 4);
  }
}

// A session's first segment may come before the accept; those that acknowledge come after it.
TOOL_TEST(AcceptedOwners, Tcprtt) {
  const std::string flow = "tcprtt --json --strict --netns {pid} -L {server_port}";
  auto seen = watch({flow, flow + " --pid {server_pid}", flow + " --pid {pid}"},
                    "tcp --sessions 5 --handed");
  auto count = [&](std::size_t tool) { return seen.body(tool).at(0)["count"].u64(); };
  EXPECT_GE(count(1), 10u) << "an acknowledgement and an end of each";
  EXPECT_LE(count(1), count(0));
  EXPECT_GE(count(1) + 5, count(0));
  EXPECT_EQ(count(2), 0u);
}

TOOL_TEST(AcceptedOwners, Tcpcong) {
  auto seen =
      watch({"tcpcong --json --strict --netns {pid}", "tcpcong --json --strict -p {server_pid}"},
            "tcp --sessions 1 --server-lost 3 --server-bytes 100");
  auto of_server = only(own(seen, 1));
  expect_same(of_server, only(accepted(seen, 0)), {"changes", "local_port"});
  EXPECT_GT(of_server["loss_ns"].u64(), 0u);
}

// Bytes received and sent count for the task that makes the call, from the first byte on.
TOOL_TEST(AcceptedOwners, Tcptop) {
  auto seen = watch({"tcptop --json --strict -p {server_pid} 60"}, "tcp --sessions 3");
  auto lines = accepted(seen, 0);
  EXPECT_EQ(lines.size(), 3u);
  expect_accepter(seen, lines);
  for (auto& line : lines)
    expect_same(line, seen.truth, {{"rx_bytes", "client_bytes"}, {"tx_bytes", "server_bytes"}});
}

}  // namespace
}  // namespace coretap::tooltest
