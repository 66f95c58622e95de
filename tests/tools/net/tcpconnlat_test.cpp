// tcpconnlat against connects whose time is known: a second, after which a lost SYN is sent again,
// and what the process itself measures around them.
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Tcpconnlat, AnAnswerThatIsLost) {
  require_tool("tcpconnlat");
  Connections late({"--late"}), quick({"--sessions", "5", "--nonblocking"});
  Tracer tracer("tcpconnlat", {"--json", "--strict"}), slow("tcpconnlat", {"--json", "900.5"});
  Tracer text("tcpconnlat", {"900", "-t", "-L", "-p", late.id()});
  for (auto* w : {&quick, &late}) w->release();
  auto truth = late.truth(), often = quick.truth();
  auto report = tracer.stop();
  auto events = late.own(report), others = quick.own(report);
  ASSERT_EQ(events.size(), 1u);
  auto& e = events[0];
  EXPECT_GE(e["latency_ns"].u64(), 950'000'000u) << "a second, by a clock of ticks";
  EXPECT_LE(e["latency_ns"].u64(), truth["connect_ns"].u64());
  EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(late.pid()));
  EXPECT_EQ(e["comm"].str(), "tcp");
  EXPECT_EQ(e["ip"].u64(), 4u);
  EXPECT_EQ(e["local_port"].u64(), truth["client_ports"].items()[0].u64());
  EXPECT_EQ(e["remote_port"].u64(), late.server_port);
  EXPECT_EQ(e["remote_address"].str(), "127.0.0.1");
  EXPECT_TRUE(e["error"].is_null());
  EXPECT_EQ(others.size(), often["client_ports"].items().size());
  auto seldom = slow.stop();
  EXPECT_EQ(late.own(seldom).size(), 1u);
  EXPECT_EQ(quick.own(seldom).size(), 0u);
  EXPECT_GE(seldom.lost("filtered"), others.size());
  std::istringstream lines(text.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME(s)", "PID", "COMM", "IP", "SADDR", "LPORT", "DADDR",
                                  "DPORT", "LAT(ms)"}));
  ASSERT_TRUE(std::getline(lines, line));
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 9u) << line;
  EXPECT_GE(std::stod(cells[8]), 950);
}

TOOL_TEST(Tcpconnlat, AttemptsThatFail) {
  require_tool("tcpconnlat");
  Connections refused({"--refused", "--sessions", "2", "--family", "mapped"});
  Connections polled({"--refused", "--nonblocking", "--family", "6"}), late({"--give-up", "200"});
  Tracer tracer("tcpconnlat", {"--json", "--strict", "-x"});
  Tracer usual("tcpconnlat", {"--json"}), own("tcpconnlat", {"--json", "-x", "-p", late.id()});
  for (auto* w : {&refused, &polled, &late}) w->release();
  refused.truth();
  polled.truth();
  auto truth = late.truth();
  auto report = tracer.stop();
  EXPECT_EQ(refused.own(report).size(), 2u);
  EXPECT_EQ(polled.own(report).size(), 3u);
  for (auto* w : {&refused, &polled})
    for (auto& e : w->own(report)) {
      EXPECT_EQ(e["error"].str(), "ECONNREFUSED");
      EXPECT_EQ(e["ip"].u64(), w == &refused ? 4u : 6u);
      EXPECT_EQ(e["pid"].u64(), static_cast<std::uint64_t>(w->pid()));
    }
  auto given_up = own.stop();
  ASSERT_EQ(given_up.body.size(), 1u) << "those of other processes are not wanted";
  EXPECT_TRUE(given_up.body[0]["error"].is_null());
  EXPECT_GE(given_up.body[0]["latency_ns"].u64(), 200'000'000u);
  EXPECT_LE(given_up.body[0]["latency_ns"].u64(), truth["connect_ns"].u64() + 1'000'000'000u);
  auto connected = usual.stop();
  for (auto* w : {&refused, &polled, &late}) EXPECT_EQ(w->own(connected).size(), 0u);
}

TOOL_TEST(Tcpconnlat, NumbersOfMilliseconds) {
  for (auto* wrong : {"1s", "x", "nan", "1e3", "1.1.1"}) {
    SCOPED_TRACE(wrong);
    EXPECT_EQ(run({tool_path("tcpconnlat"), wrong}).status, 2);
  }
}

const DeclareTests kTcpconnlat{{
    .name = "tcpconnlat",
    .events = {"-w", "tcp"},
    .stress = {.workload = "tcp --sessions {n} --unbound --client-bytes 10 --server-bytes 10",
               .events = 400,
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
