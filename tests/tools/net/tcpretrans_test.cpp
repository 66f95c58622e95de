// tcpretrans against the namespace's own count of segments sent again (RetransSegs). A filter on a
// socket drops what it should receive, so that the other end has to send again.
#include <algorithm>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::size_t of_kind(const std::vector<Json>& events, const char* kind) {
  return static_cast<std::size_t>(std::count_if(events.begin(), events.end(),
                                                [&](auto& e) { return e["kind"].str() == kind; }));
}

void expect_retransmits(const Strings& options, const std::string& address, std::uint64_t ip) {
  require_tool("tcpretrans");
  Connections workload(options);
  Tracer all("tcpretrans", {"--json", "--strict", "-l"}), usual("tcpretrans", {"--json"});
  Tracer counted("tcpretrans", {"--json", "--strict", "-l", "-c"});
  workload.release();
  auto truth = workload.truth();
  auto events = workload.own(all.stop()), rows = workload.own(counted.stop());
  auto without_probes = usual.stop();
  std::uint64_t segments = 0;
  for (auto& e : events) {
    segments += e["segments"].u64();
    EXPECT_EQ(e["type"].str(), "event");
    EXPECT_EQ(e["ip"].u64(), ip);
    EXPECT_EQ(e["local_address"].str(), address);
    EXPECT_EQ(e["remote_address"].str(), address);
    EXPECT_EQ(e["remote_port"].u64(), workload.server_port);
    EXPECT_EQ(e["local_port"].u64(), truth["client_ports"].items()[0].u64());
    EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(e["comm"].str(), "tcp");
    EXPECT_EQ(e["state"].str(), "ESTABLISHED");
    EXPECT_EQ(e["length_bytes"].u64(), truth["client_bytes"].u64());
    EXPECT_EQ(e["sequence"].u64(), events[0]["sequence"].u64()) << "the same segment";
    if (e["kind"].str() == "retransmit") {
      EXPECT_EQ(e["congestion_state"].str(), "loss");
    }
  }
  EXPECT_EQ(segments, truth["retransmits"].u64());
  EXPECT_EQ(of_kind(events, "loss_probe"), 1u) << "the first comes before the timeout";
  EXPECT_EQ(of_kind(events, "retransmit"), events.size() - 1);
  EXPECT_EQ(workload.own(without_probes).size(), events.size() - 1);
  EXPECT_GE(without_probes.lost("filtered"), 1u);
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["type"].str(), "row");
  EXPECT_EQ(rows[0]["retransmits"].u64(), events.size());
  EXPECT_EQ(rows[0]["sent_again_bytes"].u64(), events.size() * truth["client_bytes"].u64());
  EXPECT_EQ(rows[0]["remote_port"].u64(), workload.server_port);
  EXPECT_EQ(rows[0]["local_address"].str(), address);
}

TOOL_TEST(Tcpretrans, Ipv4) {
  expect_retransmits({"--sessions", "1", "--lost", "3"}, "127.0.0.1", 4);
}
TOOL_TEST(Tcpretrans, Ipv6) {
  expect_retransmits({"--sessions", "1", "--lost", "2", "--family", "6"}, "::1", 6);
}
TOOL_TEST(Tcpretrans, MappedAddresses) {
  expect_retransmits({"--sessions", "1", "--lost", "2", "--family", "mapped"}, "127.0.0.1", 4);
}

// An answer to a SYN has no owner yet; that is said rather than guessed.
TOOL_TEST(Tcpretrans, Handshakes) {
  require_tool("tcpretrans");
  Connections workload({"--handshake"});
  Tracer tracer("tcpretrans", {"--json", "--strict"});
  Tracer own("tcpretrans", {"--json", "-p", workload.id()}), six("tcpretrans", {"--json", "-6"});
  workload.release();
  auto truth = workload.truth();
  auto events = workload.own(tracer.stop());
  EXPECT_EQ(events.size(), truth["retransmits"].u64());
  EXPECT_GE(of_kind(events, "syn_ack"), 1u);
  EXPECT_GE(of_kind(events, "retransmit"), 1u);
  for (auto& e : events) {
    bool answer = e["kind"].str() == "syn_ack";
    EXPECT_EQ(e[answer ? "local_port" : "remote_port"].u64(), workload.server_port);
    EXPECT_EQ(e[answer ? "remote_port" : "local_port"].u64(),
              truth["client_ports"].items()[0].u64());
    EXPECT_EQ(e["state"].str(), answer ? "SYN_RECV" : "SYN_SENT");
    EXPECT_EQ(e["pid"].is_null(), answer);
  }
  EXPECT_EQ(workload.own(own.stop()).size(), of_kind(events, "retransmit"));
  EXPECT_EQ(workload.own(six.stop()).size(), 0u);
}

TOOL_TEST(Tcpretrans, Text) {
  require_tool("tcpretrans");
  Connections workload({"--sessions", "1", "--lost", "1", "--family", "6"});
  Tracer lines("tcpretrans", {"-l", "-s", "-p", workload.id()});
  Tracer table("tcpretrans", {"-l", "-c", "-p", workload.id()});
  Tracer csv("tcpretrans", {"-l", "-c", "--csv", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto port = std::to_string(truth["client_ports"].items()[0].u64());
  auto from = "[::1]:" + port, to = "[::1]:" + std::to_string(workload.server_port);
  std::istringstream shown(lines.stop_text()), counted(table.stop_text()), rows(csv.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(shown, line));
  EXPECT_EQ(words(line),
            (Strings{"TIME", "PID", "IP", "LADDR:LPORT", "T>", "RADDR:RPORT", "STATE", "SEQ"}));
  ASSERT_TRUE(std::getline(shown, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 8u) << line;
  EXPECT_EQ(Strings(cells.begin() + 1, cells.begin() + 7),
            (Strings{workload.id(), "6", from, "L>", to, "ESTABLISHED"}));
  ASSERT_TRUE(std::getline(counted, line)) << "the time";
  ASSERT_TRUE(std::getline(counted, line));
  EXPECT_EQ(words(line), (Strings{"LADDR:LPORT", "RADDR:RPORT", "RETRANSMITS"}));
  ASSERT_TRUE(std::getline(counted, line));
  cells = words(line);
  ASSERT_EQ(cells.size(), 4u) << line;
  EXPECT_EQ(Strings(cells.begin(), cells.begin() + 3), (Strings{from, "<->", to}));
  ASSERT_TRUE(std::getline(rows, line));
  EXPECT_TRUE(line.starts_with("time,retransmits,sent_again_bytes,ip,netns,local_address,"))
      << line;
  ASSERT_TRUE(std::getline(rows, line));
  EXPECT_TRUE(contains(line, ",::1," + port + ",::1,")) << line;
}

const DeclareTests kTcpretrans{{
    .name = "tcpretrans",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
    .events = {"-w -l", "tcp --sessions 1 --lost 1"},
    .stress =
        {// Small, so that each is one segment: those are what the kernel counts.
         .workload = "tcp --sessions {n} --lost 1 --client-bytes 10 --server-bytes 10",
         .events = 4,
         .options = "-l",
         .shown = [](const Json& line) -> std::uint64_t {
           return line["type"].str() == "row" ? line["retransmits"].u64() : 1;
         },
         .truth = "retransmits",
         .tiny = "-c --max-keys 1",
         .pids = "pid server_pid"},
    .long_run = {{.arguments = "-l"}},
}};

}  // namespace
}  // namespace coretap::tooltest
