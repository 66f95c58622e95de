// tcpretrans against the namespace's count of retransmitted segments (RetransSegs). A socket filter
// drops incoming segments, so that the other end retransmits.
#include "connections.hpp"

namespace coretap::tooltest {
namespace {

std::size_t of_kind(const std::vector<Json>& events, const char* kind) {
  return lines_with(events, {{"kind", kind}}).size();
}

void expect_retransmits(const std::string& lost, const Family& family) {
  auto seen = watch(
      {"tcpretrans --json --strict -l", "tcpretrans --json", "tcpretrans --json --strict -l -c"},
      "--sessions 1 --lost " + lost, family);
  auto events = own(seen);

  for (auto& e : events) {
    expect_fields(e,
                  seen.filled(family.ends() + "type event local_port {client_ports} remote_port "
                                              "{server_port} pid {pid} comm tcp state ESTABLISHED "
                                              "length_bytes {client_bytes}"));
    expect_same(e, events[0], {"sequence"});  // the same segment
    const bool retransmit = e["kind"].str() == "retransmit";
    if (retransmit) expect_fields(e, {{"congestion_state", "loss"}});
    expect_fields(e, {{"cause", retransmit ? "timeout" : "loss_probe"}});
  }
  expect_sums(events, seen.truth, {{"segments", "retransmits"}});
  EXPECT_EQ(of_kind(events, "loss_probe"), 1u) << "the first comes before the timeout";
  EXPECT_EQ(of_kind(events, "retransmit"), events.size() - 1);
  EXPECT_EQ(own(seen, 1).size(), events.size() - 1);
  EXPECT_GE(seen.report(1).lost("filtered"), 1u);
  auto row = only(own(seen, 2));
  expect_fields(row, seen.filled(family.ends() + "type row remote_port {server_port}"));
  expect_fields(row, {{"retransmits", events.size()},
                      {"sent_again_bytes", events.size() * seen.number("client_bytes")},
                      {"timeouts", events.size() - 1},
                      {"loss_probes", 1},
                      {"fast", 0},
                      {"rack", 0},
                      {"syn_acks", 0},
                      {"others", 0}});
}

TOOL_TEST(Tcpretrans, Ipv4) { expect_retransmits("3", kFour); }
TOOL_TEST(Tcpretrans, Ipv6) { expect_retransmits("2", kSix); }
TOOL_TEST(Tcpretrans, MappedAddresses) { expect_retransmits("2", kMapped); }

// A lost segment that acknowledgements of later ones show, as the kernel counts such retransmits.
void expect_fast(const std::string& options, const std::string& cause) {
  SCOPED_TRACE(options);
  auto seen = watch({"tcpretrans --json --strict -l", "tcpretrans --json --strict -l -c"},
                    "tcp --sessions 1 --hole " + options);
  auto events = own(seen);
  auto fast = lines_with(events, {{"cause", cause}});
  EXPECT_EQ(events.size(), seen.number("retransmits"));
  EXPECT_EQ(fast.size(), seen.number("fast_retransmits"));
  if (slowness() <= 3) {
    EXPECT_GE(fast.size(), 1u) << "before a timeout, which is as good";
  }
  for (auto& e : fast)
    expect_fields(e, {{"congestion_state", "recovery"},
                      {"kind", "retransmit"},
                      {"length_bytes", seen.number("client_bytes")}});
  auto rows = own(seen, 1);  // on a slow machine, the server sends a probe, too
  EXPECT_EQ(sum(rows, "retransmits"), events.size());
  EXPECT_EQ(sum(rows, cause.c_str()), fast.size());
  EXPECT_EQ(sum(rows, "fast") + sum(rows, "rack"), fast.size());
}

TOOL_TEST(Tcpretrans, FastRetransmit) { expect_fast("", "rack"); }
TOOL_TEST(Tcpretrans, WithoutSack) { expect_fast("--off tcp_sack", "fast"); }

// Kernels that have another way count their losses in this member.
TOOL_TEST(Tcpretrans, WithoutRack) {
  auto types = slurp("/sys/kernel/btf/vmlinux");
  expect_fast("--off tcp_recovery", contains(types, "lost_cnt_hint") ? "fast" : "rack");
}

// An answer to a SYN has no owner yet; it is shown as unknown.
TOOL_TEST(Tcpretrans, Handshakes) {
  auto seen =
      watch({"tcpretrans --json --strict", "tcpretrans --json -p {pid}", "tcpretrans --json -6"},
            "tcp --handshake");
  auto events = own(seen);
  EXPECT_EQ(events.size(), seen.number("retransmits"));
  EXPECT_GE(of_kind(events, "syn_ack"), 1u);
  EXPECT_GE(of_kind(events, "retransmit"), 1u);
  for (auto& e : events) {
    bool answer = e["kind"].str() == "syn_ack";
    expect_fields(e, {{answer ? "local_port" : "remote_port", seen.number("server_port")},
                      {answer ? "remote_port" : "local_port", client_port(seen)},
                      {"state", answer ? "SYN_RECV" : "SYN_SENT"}});
    EXPECT_EQ(e["pid"].is_null(), answer);
    expect_fields(e, {{"cause", answer ? "syn_ack" : "timeout"}});
  }
  EXPECT_EQ(own(seen, 1).size(), of_kind(events, "retransmit"));
  EXPECT_EQ(own(seen, 2).size(), 0u);
}

TOOL_TEST(Tcpretrans, Text) {
  auto seen = watch({"tcpretrans -l -s -p {pid}", "tcpretrans -l -c -p {pid}"},
                    "tcp --sessions 1 --lost 1 --family 6");
  auto shown = lines(seen.text()), counted = lines(seen.text(1));
  expect_row(shown.at(0), "TIME PID IP LADDR:LPORT T> RADDR:RPORT STATE SEQ CAUSE CONGESTION");
  expect_row(
      shown.at(1),
      seen.filled(
          "* {pid} 6 [::1]:{client_ports} L> [::1]:{server_port} ESTABLISHED * loss_probe *"));
  expect_row(
      counted.at(1),
      "LADDR:LPORT RADDR:RPORT RETRANSMITS TIMEOUT FAST RACK PROBE SYN-ACK OTHER");  // after the
                                                                                     // time
  expect_row(counted.at(2),
             seen.filled("[::1]:{client_ports} <-> [::1]:{server_port} * * 0 0 1 0 0"));
}

TESTS_OF(tcpretrans, .reports = {{ReportKind::events}, {ReportKind::aggregate, {"-c"}}},
         .events = {"-w -l", "tcp --sessions 1 --lost 1"},
         // Small, so that each is one segment: the kernel counts segments.
         .stress = {.workload = "tcp --sessions {n} --lost 1 --client-bytes 10 --server-bytes 10",
                    .events = 4,
                    .options = "-l",
                    .shown = [](const Json& line) -> std::uint64_t {
                      return line["type"].str() == "row" ? line["retransmits"].u64() : 1;
                    },
                    .truth = "retransmits",
                    .tiny = "-c --max-keys 1",
                    .pids = "pid server_pid"},
         .long_run = {{.arguments = "-l"}});

}  // namespace
}  // namespace coretap::tooltest
