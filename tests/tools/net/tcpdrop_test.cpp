// tcpdrop against segments that are known to be dropped: those for ports without a listener, and
// those that a socket filter rejects, which the other end retransmits (RetransSegs).
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

bool format_has(const char* field) {
  Mounted tracefs("tracefs");
  return contains(slurp(tracefs.path() + "/events/skb/kfree_skb/format"), field);
}
bool gives_reasons() { return format_has("reason"); }
bool names_receivers() { return format_has("rx_sk"); }

/// Drops at this location: a kernel may drop segments of the same connections elsewhere, too.
std::vector<Json> in_tcp_rcv(std::vector<Json> lines, std::uint64_t ip) {
  auto* place = ip == 4 ? "tcp_v4_rcv" : "tcp_v6_rcv";
  std::erase_if(lines, [&](auto& e) { return !contains(e["location"].str(), place); });
  return lines;
}

void expect_no_socket(const std::string& options, const Family& family, bool by_socket = true) {
  const std::string other = family.ip == 4 ? "-6" : "-4";
  auto seen = watch({"tcpdrop --json --strict", "tcpdrop --json --no-stack " + other},
                    "--refused " + options, family);
  auto events = in_tcp_rcv(own(seen), family.ip);
  // No socket accepts the answers to a SYN that none has sent.
  if (!by_socket) std::erase_if(events, [](auto& e) { return e["tcp_flags"].str() == "RST|ACK"; });
  auto ports = client_ports(seen.truth);
  ASSERT_EQ(events.size(), ports.size()) << seen.text(0);
  for (std::size_t i = 0; i < events.size(); i++) {
    expect_fields(events[i],
                  seen.filled(family.ends() + "direction received local_port {server_port} "
                                              "tcp_flags SYN state null"));
    expect_fields(events[i], {{"remote_port", ports[i]},
                              {"pid", or_null(by_socket, seen.pid)},  // the sender
                              {"reason", or_null(gives_reasons(), "no_socket")}});
    EXPECT_TRUE(has_frame(events[i], "kernel_stack", family.ip == 4 ? "tcp_v4_rcv" : "tcp_v6_rcv"));
    if (gives_reasons()) {
      EXPECT_GT(events[i]["reason_code"].u64(), 0u);
    }
  }
  EXPECT_EQ(own(seen, 1).size(), 0u) << seen.text(1);
}

TOOL_TEST(Tcpdrop, NoListener) { expect_no_socket("--sessions 3", kFour); }
TOOL_TEST(Tcpdrop, NoListenerIpv6) { expect_no_socket("", kSix); }
TOOL_TEST(Tcpdrop, BehindExtensionHeaders) { expect_no_socket("--extended", kSix); }
TOOL_TEST(Tcpdrop, BehindAFragmentHeader) { expect_no_socket("--fragmented", kSix, false); }

// The first segment and all retransmissions but the last are dropped.
TOOL_TEST(Tcpdrop, FilterOnASocket) {
  auto seen = watch({"tcpdrop --json --strict --no-stack -L {server_port}",
                     "tcpdrop --json --strict -c -L {server_port} --netns {pid}",
                     "tcpdrop --json -c --no-stack -L {server_port} --netns {pid}",
                     "tcpdrop --json --no-stack -D {server_port}"},
                    "tcp --sessions 1 --lost 2");
  auto events = in_tcp_rcv(own(seen), 4);
  EXPECT_EQ(events.size(), seen.number("retransmits"));
  for (auto& e : events) {
    expect_fields(e, {{"remote_port", client_port(seen)}, {"tcp_flags", "PSH|ACK"}});
    EXPECT_FALSE(e.has("kernel_stack"));
    if (gives_reasons()) expect_fields(e, {{"reason", "socket_filter"}});
    if (names_receivers()) expect_fields(e, {{"state", "ESTABLISHED"}});
  }
  auto stacks = in_tcp_rcv(seen.body(1), 4), bare = in_tcp_rcv(seen.body(2), 4);
  for (auto& row : stacks) EXPECT_TRUE(has_frame(row, "kernel_stack", "tcp_v4_rcv"));
  EXPECT_EQ(bare.size(), 1u);
  EXPECT_EQ(sum(stacks, "drops"), events.size());
  EXPECT_EQ(sum(bare, "drops"), events.size());
  EXPECT_EQ(in_tcp_rcv(own(seen, 3), 4).size(), 0u);
}

// The answers to a SYN, which are retransmitted.
TOOL_TEST(Tcpdrop, Owner) {
  auto seen = watch({"tcpdrop --json --strict --no-stack -p {pid}", "tcpdrop --json -p 1"},
                    "tcp --handshake");
  auto events = own(seen), answers = lines_with(events, {{"tcp_flags", "SYN|ACK"}});
  for (auto& e : events) expect_fields(e, {{"pid", seen.pid}, {"comm", "tcp"}});
  for (auto& e : answers) {
    expect_fields(e, {{"remote_port", seen.number("server_port")}});
    if (names_receivers()) expect_fields(e, {{"state", "SYN_SENT"}});
  }
  EXPECT_GE(answers.size(), 1u);
  EXPECT_EQ(seen.shown(1), 0u);
  EXPECT_GE(seen.report(1).lost("filtered"), events.size());
}

TOOL_TEST(Tcpdrop, Reasons) {
  require_tool("tcpdrop");
  expect_refusals("tcpdrop", {{"--reason ,"}});
  if (!gives_reasons()) return expect_refusals("tcpdrop", {{"--reason no_sockett", "", 3}});
  expect_refusals("tcpdrop", {{"--reason no_sockett", "did you mean 'no_socket'?"}});
  auto [refused, lossy] =
      watch_each({{"tcp --refused --sessions 2",
                   {"tcpdrop --json --no-stack --reason SKB_DROP_REASON_NO_SOCKET",
                    "tcpdrop --json --no-stack --reason no_socket,Socket_Filter",
                    "tcpdrop --json --reason not_specified"}},
                  {"tcp --sessions 1 --lost 1"}},
                 {});
  auto first = refused.report(0), both = refused.report(1);
  auto again = lossy.number("retransmits");
  EXPECT_EQ(own(refused, first).size(), 2u);
  EXPECT_EQ(own(lossy, first).size(), 0u);
  EXPECT_GE(first.lost("filtered"), again);
  EXPECT_EQ(own(refused, both).size(), 2u);
  EXPECT_EQ(own(lossy, both).size(), again);
  for (auto& e : refused.body(2)) EXPECT_EQ(e["reason"].str(), "not_specified");
}

TOOL_TEST(Tcpdrop, Text) {
  auto seen = watch({"tcpdrop --netns {pid}", "tcpdrop --no-stack --netns {pid}"},
                    "tcp --refused --sessions 1 --family 6");
  auto rows = lines(seen.text(1));
  expect_row(rows.at(0), "TIME PID IP SADDR:SPORT > DADDR:DPORT STATE FLAGS REASON LOCATION");
  expect_row(rows.at(1),
             seen.filled("* {pid} 6 [::1]:{client_ports} > [::1]:{server_port} - SYN * *"));
  EXPECT_TRUE(contains(words(rows[1]).back(), "tcp_v6_rcv")) << rows[1];
  expect_contains(seen.text(0), {"\n        tcp_v6_rcv+0x"});
}

TESTS_OF(tcpdrop, .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
         .events = {"-w", "tcp --refused"},
         .stress = event_row("tcp --refused --sessions {n}", 400, for_each_client(1), "--no-stack"),
         .long_run = {{.arguments = "--no-stack"}});

}  // namespace
}  // namespace coretap::tooltest
