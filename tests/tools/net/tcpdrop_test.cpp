// tcpdrop against segments that are known to be dropped: those for ports without a listener, and
// those that a filter on a socket refuses, which the other end has to send again (RetransSegs).
#include <algorithm>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::string format() {
  Mounted tracefs("tracefs");
  return slurp(tracefs.path() + "/events/skb/kfree_skb/format");
}
bool gives_reasons() { return contains(format(), "reason"); }
bool names_receivers() { return contains(format(), "rx_sk"); }

/// Of drops at this place: elsewhere a kernel may drop segments of the same connections, too.
std::vector<Json> in_tcp_rcv(const std::vector<Json>& all, std::uint64_t ip) {
  std::vector<Json> some;
  std::copy_if(all.begin(), all.end(), std::back_inserter(some), [&](auto& e) {
    return contains(e["location"].str(), ip == 4 ? "tcp_v4_rcv" : "tcp_v6_rcv");
  });
  return some;
}

bool names(const Json& frames, const std::string& function) {
  auto all = frames.items();
  return std::any_of(all.begin(), all.end(), [&](auto& f) { return contains(f.str(), function); });
}

void expect_no_socket(const Strings& options, const std::string& address, std::uint64_t ip,
                      bool by_socket = true) {
  require_tool("tcpdrop");
  Connections workload(options);
  Tracer tracer("tcpdrop", {"--json", "--strict"});
  Tracer other("tcpdrop", {"--json", "--no-stack", ip == 4 ? "-6" : "-4"});
  workload.release();
  auto truth = workload.truth();
  auto events = in_tcp_rcv(workload.own(tracer.stop()), ip);
  // No socket takes the answers to a SYN that none has sent.
  if (!by_socket) std::erase_if(events, [](auto& e) { return e["tcp_flags"].str() == "RST|ACK"; });
  ASSERT_EQ(events.size(), truth["client_ports"].items().size());
  for (std::size_t i = 0; i < events.size(); i++) {
    auto& e = events[i];
    EXPECT_EQ(e["ip"].u64(), ip);
    EXPECT_EQ(e["direction"].str(), "received");
    EXPECT_EQ(e["local_address"].str(), address);
    EXPECT_EQ(e["remote_address"].str(), address);
    EXPECT_EQ(e["local_port"].u64(), workload.server_port);
    EXPECT_EQ(e["remote_port"].u64(), truth["client_ports"].items()[i].u64());
    EXPECT_EQ(e["tcp_flags"].str(), "SYN");
    EXPECT_TRUE(e["state"].is_null());
    ASSERT_EQ(e["pid"].is_null(), !by_socket);
    if (by_socket) {
      EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(workload.pid())) << "the sender";
    }
    EXPECT_TRUE(names(e["kernel_stack"], ip == 4 ? "tcp_v4_rcv" : "tcp_v6_rcv"));
    ASSERT_EQ(e["reason"].is_null(), !gives_reasons());
    if (gives_reasons()) {
      EXPECT_EQ(e["reason"].str(), "no_socket");
      EXPECT_GT(e["reason_code"].u64(), 0u);
    }
  }
  EXPECT_EQ(workload.own(other.stop()).size(), 0u);
}

TOOL_TEST(Tcpdrop, NoListener) {
  expect_no_socket({"--refused", "--sessions", "3"}, "127.0.0.1", 4);
}
TOOL_TEST(Tcpdrop, NoListenerIpv6) { expect_no_socket({"--refused", "--family", "6"}, "::1", 6); }
TOOL_TEST(Tcpdrop, BehindExtensionHeaders) {
  expect_no_socket({"--refused", "--family", "6", "--extended"}, "::1", 6);
}
TOOL_TEST(Tcpdrop, BehindAFragmentHeader) {
  expect_no_socket({"--refused", "--family", "6", "--fragmented"}, "::1", 6, false);
}

// The first segment and all repetitions but the last are dropped.
TOOL_TEST(Tcpdrop, FilterOnASocket) {
  require_tool("tcpdrop");
  Connections workload({"--sessions", "1", "--lost", "2"});
  auto port = std::to_string(workload.server_port);
  Tracer tracer("tcpdrop", {"--json", "--strict", "--no-stack", "-L", port});
  Tracer sums("tcpdrop", {"--json", "--strict", "-c", "-L", port, "--netns", workload.id()});
  Tracer bare("tcpdrop", {"--json", "-c", "--no-stack", "-L", port, "--netns", workload.id()});
  Tracer remote("tcpdrop", {"--json", "--no-stack", "-D", port});
  workload.release();
  auto truth = workload.truth();
  auto events = in_tcp_rcv(workload.own(tracer.stop()), 4);
  EXPECT_EQ(events.size(), truth["retransmits"].u64());
  for (auto& e : events) {
    EXPECT_EQ(e["remote_port"].u64(), truth["client_ports"].items()[0].u64());
    EXPECT_EQ(e["tcp_flags"].str(), "PSH|ACK");
    EXPECT_FALSE(e.has("kernel_stack"));
    if (gives_reasons()) {
      EXPECT_EQ(e["reason"].str(), "socket_filter");
    }
    if (names_receivers()) {
      EXPECT_EQ(e["state"].str(), "ESTABLISHED");
    }
  }
  std::uint64_t with = 0, without = 0;
  for (auto& row : in_tcp_rcv(sums.stop().body, 4)) {
    with += row["drops"].u64();
    EXPECT_TRUE(names(row["kernel_stack"], "tcp_v4_rcv"));
  }
  auto rows = in_tcp_rcv(bare.stop().body, 4);
  EXPECT_EQ(rows.size(), 1u);
  for (auto& row : rows) without += row["drops"].u64();
  EXPECT_EQ(with, events.size());
  EXPECT_EQ(without, events.size());
  EXPECT_EQ(in_tcp_rcv(workload.own(remote.stop()), 4).size(), 0u);
}

// The answers to a SYN, which are sent again.
TOOL_TEST(Tcpdrop, Owner) {
  require_tool("tcpdrop");
  Connections workload({"--handshake"});
  Tracer tracer("tcpdrop", {"--json", "--strict", "--no-stack", "-p", workload.id()});
  Tracer none("tcpdrop", {"--json", "-p", "1"});
  workload.release();
  workload.truth();
  auto events = workload.own(tracer.stop());
  std::size_t answers = 0;
  for (auto& e : events) {
    EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(workload.pid()));
    EXPECT_EQ(e["comm"].str(), "tcp");
    if (e["tcp_flags"].str() != "SYN|ACK") continue;
    answers++;
    EXPECT_EQ(e["remote_port"].u64(), workload.server_port);
    if (names_receivers()) {
      EXPECT_EQ(e["state"].str(), "SYN_SENT");
    }
  }
  EXPECT_GE(answers, 1u);
  auto others = none.stop();
  EXPECT_EQ(others.body.size(), 0u);
  EXPECT_GE(others.lost("filtered"), events.size());
}

TOOL_TEST(Tcpdrop, Reasons) {
  require_tool("tcpdrop");
  auto wrong = run({tool_path("tcpdrop"), "--reason", "no_sockett"});
  EXPECT_EQ(run({tool_path("tcpdrop"), "--reason", ","}).status, 2);
  if (!gives_reasons()) {
    EXPECT_EQ(wrong.status, 3);
    return;
  }
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "did you mean 'no_socket'?")) << wrong.err;
  Connections refused({"--refused", "--sessions", "2"}), lossy({"--sessions", "1", "--lost", "1"});
  Tracer first("tcpdrop", {"--json", "--no-stack", "--reason", "SKB_DROP_REASON_NO_SOCKET"});
  Tracer both("tcpdrop", {"--json", "--no-stack", "--reason", "no_socket,Socket_Filter"});
  Tracer unspecified("tcpdrop", {"--json", "--reason", "not_specified"});
  for (auto* w : {&refused, &lossy}) w->release();
  refused.truth();
  auto truth = lossy.truth();
  auto report = first.stop();
  EXPECT_EQ(refused.own(report).size(), 2u);
  EXPECT_EQ(lossy.own(report).size(), 0u);
  EXPECT_GE(report.lost("filtered"), truth["retransmits"].u64());
  auto all = both.stop();
  EXPECT_EQ(refused.own(all).size(), 2u);
  EXPECT_EQ(lossy.own(all).size(), truth["retransmits"].u64());
  for (auto& e : unspecified.stop().body) EXPECT_EQ(e["reason"].str(), "not_specified");
}

TOOL_TEST(Tcpdrop, Text) {
  require_tool("tcpdrop");
  Connections workload({"--refused", "--sessions", "1", "--family", "6"});
  Tracer with("tcpdrop", {"--netns", workload.id()});
  Tracer tracer("tcpdrop", {"--no-stack", "--netns", workload.id()});
  workload.release();
  auto client = workload.truth()["client_ports"].items()[0].u64();
  std::istringstream text(tracer.stop_text());
  std::string line, stacked = with.stop_text();
  ASSERT_TRUE(std::getline(text, line));
  EXPECT_EQ(words(line), (Strings{"TIME", "PID", "IP", "SADDR:SPORT", ">", "DADDR:DPORT", "STATE",
                                  "FLAGS", "REASON", "LOCATION"}));
  ASSERT_TRUE(std::getline(text, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 10u) << line;
  EXPECT_EQ(Strings(cells.begin() + 1, cells.begin() + 8),
            (Strings{workload.id(), "6", "[::1]:" + std::to_string(client), ">",
                     "[::1]:" + std::to_string(workload.server_port), "-", "SYN"}));
  EXPECT_TRUE(contains(cells[9], "tcp_v6_rcv")) << line;
  EXPECT_TRUE(contains(stacked, "\n        tcp_v6_rcv+0x")) << stacked;
}

const DeclareTests kTcpdrop{{
    .name = "tcpdrop",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
    .events = {"-w", "tcp --refused"},
    .stress = {.workload = "tcp --refused --sessions {n}",
               .events = 400,
               .options = "--no-stack",
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "--no-stack"}},
}};

}  // namespace
}  // namespace coretap::tooltest
