// tcptracer against sessions whose two ends belong to known processes.
#include <map>
#include <sstream>

#include "connections.hpp"

namespace coretap::tooltest {
namespace {

/// Each end of each session has its own two lines, with its process.
void expect_both_ends(const Strings& options, const std::string& address, std::uint64_t ip) {
  require_tool("tcptracer");
  Connections workload(options);
  Tracer tracer("tcptracer", {"--json", "--strict"});
  workload.release();
  auto truth = workload.truth();
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::string> kinds;
  for (auto& e : workload.own(tracer.stop())) {
    bool client = e["remote_port"].u64() == workload.server_port;
    kinds[{e["local_port"].u64(), e["remote_port"].u64()}] += " " + e["kind"].str();
    EXPECT_EQ(e["pid"].u64(), client ? truth["client_pid"].u64() : workload.server_pid);
    EXPECT_EQ(e["comm"].str(), "tcp");
    EXPECT_EQ(e["ip"].u64(), ip);
    EXPECT_EQ(e["local_address"].str(), address);
    EXPECT_EQ(e["remote_address"].str(), address);
  }
  auto ports = truth["client_ports"].items();
  EXPECT_EQ(kinds.size(), 2 * ports.size());
  for (auto& port : ports) {
    EXPECT_EQ((kinds[{port.u64(), workload.server_port}]), " connect close");
    EXPECT_EQ((kinds[{workload.server_port, port.u64()}]), " accept close");
  }
}

TOOL_TEST(Tcptracer, ClientCloses) {
  expect_both_ends({"--sessions", "10", "--unbound"}, "127.0.0.1", 4);
}
TOOL_TEST(Tcptracer, ServerClosesWithoutBlockingByIpv6) {
  expect_both_ends({"--closer", "server", "--nonblocking", "--family", "6"}, "::1", 6);
}
TOOL_TEST(Tcptracer, ResetByTheOtherEnd) {
  expect_both_ends({"--closer", "reset", "--family", "mapped"}, "127.0.0.1", 4);
}

TOOL_TEST(Tcptracer, FiltersAndText) {
  require_tool("tcptracer");
  Connections workload({"--sessions", "1"}), refused({"--refused", "--sessions", "2"});
  Tracer server("tcptracer", {"--json", "-p", std::to_string(workload.server_pid)});
  Tracer six("tcptracer", {"--json", "-6", "-N", workload.id()});
  Tracer failed("tcptracer", {"--json", "-N", std::to_string(refused.netns)});
  Tracer text("tcptracer", {"-t", "-U", "-p", workload.id()});
  for (auto* w : {&workload, &refused}) w->release();
  auto port = std::to_string(workload.truth()["client_ports"].items()[0].u64());
  refused.truth();
  EXPECT_EQ(server.stop().body.size(), 2u);
  auto other = six.stop();
  EXPECT_EQ(other.body.size(), 0u);
  EXPECT_GE(other.lost("filtered"), 4u);
  EXPECT_EQ(failed.stop().body.size(), 0u) << "what fails was no connection";
  std::istringstream lines(text.stop_text());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(words(line), (Strings{"TIME(s)", "UID", "T", "PID", "COMM", "IP", "SADDR", "DADDR",
                                  "SPORT", "DPORT"}));
  for (auto* sign : {"C", "X"}) {
    ASSERT_TRUE(std::getline(lines, line));
    auto cells = words(line);
    ASSERT_EQ(cells.size(), 10u) << line;
    EXPECT_EQ(Strings(cells.begin() + 1, cells.end()),
              (Strings{"0", sign, workload.id(), "tcp", "4", "127.0.0.1", "127.0.0.1", port,
                       std::to_string(workload.server_port)}));
  }
}

const DeclareTests kTcptracer{{
    .name = "tcptracer",
    .events = {"-U", "tcp"},
    .stress = {.workload = "tcp --sessions {n} --client-bytes 10 --server-bytes 10",
               .events = 200,
               .truth = [](stress::Load& load) -> std::uint64_t {
                 return 4 * load.workload().truth()["client_ports"].items().size();
               },
               .tiny = "--ring-size 4096",
               .pids = "pid server_pid"},
}};

}  // namespace
}  // namespace coretap::tooltest
