// udpconnect against a program that connects UDP sockets in a network namespace of its own.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Udpconnect, EachCall) {
  require_tool("udpconnect");
  Workload workload("sockets", {});
  Tracer own("udpconnect", {"--json", "--strict", "-p", workload.id()}),
      failed("udpconnect", {"-x", "--netns", workload.id()}),
      dns("udpconnect", {"--json", "-P", "53", "--raddr", "127.0.0.0/8", "-p", workload.id()});
  workload.release();
  auto connects = workload.truth()["connects"].items();
  auto report = own.stop();
  ASSERT_EQ(report.body.size(), connects.size()) << "no disconnects, no TCP";
  for (std::size_t i = 0; i < connects.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = report.body[i], &call = connects[i];
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "sockets");
    EXPECT_EQ(event["protocol"].str(), "UDP");
    EXPECT_EQ(event["ip"].u64(), call["ip"].u64());
    EXPECT_EQ(event["remote_address"].str(), call["address"].str());
    EXPECT_EQ(event["remote_port"].u64(), call["port"].u64());
    auto error = static_cast<int>(call["errno"].i64());
    ASSERT_EQ(event["error"].is_null(), !error);
    if (error) {
      EXPECT_EQ(event["error"].str(), ::strerrorname_np(error));
      continue;
    }
    EXPECT_EQ(event["local_address"].str(), call["address"].str());
    EXPECT_EQ(event["local_port"].u64(), call["local_port"].u64());
  }
  auto text = failed.stop_text();
  EXPECT_TRUE(contains(text, " sockets          4  192.0.2.1       53    ENETUNREACH")) << text;
  EXPECT_FALSE(contains(text, "127.0.0.1")) << text;
  EXPECT_EQ(dns.stop().body.size(), 1u);
}

TOOL_TEST(Udpconnect, Columns) {
  require_tool("udpconnect");
  EXPECT_EQ(header_of("udpconnect", {}), (Strings{"PID", "COMM", "IP", "RADDR", "RPORT", "RET"}));
  EXPECT_EQ(
      header_of("udpconnect", {"-t", "-U", "-w"}),
      (Strings{"TIME(s)", "UID", "PID", "COMM", "IP", "RADDR", "RPORT", "LADDR", "LPORT", "RET"}));
}

const DeclareTests kUdpconnect{{
    .name = "udpconnect",
    .events = {"-w", "sockets"},
    .stress = {.workload = "sockets --rounds {n/4}",
               .events = 800,
               .truth = "connect_calls",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
