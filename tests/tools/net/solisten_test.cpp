// solisten against a program that listens in a network namespace of its own.
#include <sys/stat.h>

#include <algorithm>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::uint64_t number_in(const std::string& path) {
  auto text = run({"cat", path});
  if (text.status) throw Skip(text.err);
  return std::stoull(text.out);
}

TOOL_TEST(Solisten, EachCall) {
  require_tool("solisten");
  Workload workload("sockets", {});
  struct stat space {};
  ASSERT_EQ(::stat(("/proc/" + workload.id() + "/ns/net").c_str(), &space), 0);
  Tracer own("solisten", {"--json", "--strict", "-n", workload.id()}),
      six("solisten", {"--json", "-6", "-p", workload.id()}),
      text("solisten", {"-t", "-w", "-p", workload.id()});
  // A namespace has its own limit, which newer kernels take from the first one's.
  auto most = run({"nsenter", "-t", workload.id(), "-n", "cat", "/proc/sys/net/core/somaxconn"});
  const std::uint64_t limit =
      most.status ? number_in("/proc/sys/net/core/somaxconn") : std::stoull(most.out);
  workload.release();
  auto listens = workload.truth()["listens"].items();
  auto report = own.stop();
  ASSERT_EQ(report.body.size(), listens.size());
  for (std::size_t i = 0; i < listens.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = report.body[i], &call = listens[i];
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "sockets");
    EXPECT_EQ(event["protocol"].str(), call["protocol"].str());
    EXPECT_EQ(event["local_address"].str(), call["address"].str());
    EXPECT_EQ(event["local_port"].u64(), call["port"].u64());
    EXPECT_EQ(event["backlog"].i64(), call["backlog"].i64());
    EXPECT_EQ(event["netns"].u64(), space.st_ino);
    auto error = static_cast<int>(call["errno"].i64());
    ASSERT_EQ(event["error"].is_null(), !error);
    if (error)
      EXPECT_EQ(event["error"].str(), ::strerrorname_np(error));
    else
      EXPECT_EQ(event["max_backlog"].u64(), std::min(call["backlog"].u64(), limit));
  }
  EXPECT_EQ(six.stop().body.size(), 1u);
  std::istringstream lines(text.stop_text());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(words(line),
            (Strings{"TIME", "PID", "COMM", "RET", "BACKLOG", "MAX", "PROTO", "PORT", "ADDR"}));
  std::getline(lines, line);
  auto cells = words(line);
  ASSERT_EQ(cells.size(), 9u) << line;
  EXPECT_EQ((Strings{cells[1], cells[3], cells[4], cells[5], cells[6], cells[8]}),
            (Strings{workload.id(), "0", "7", "7", "TCPv4", "0.0.0.0"}));
}

TOOL_TEST(Solisten, Columns) {
  require_tool("solisten");
  EXPECT_EQ(header_of("solisten", {}),
            (Strings{"PID", "COMM", "RET", "BACKLOG", "PROTO", "PORT", "ADDR"}));
  EXPECT_EQ(header_of("solisten", {"--show-netns"}),
            (Strings{"PID", "COMM", "NETNS", "RET", "BACKLOG", "PROTO", "PORT", "ADDR"}));
}

const DeclareTests kSolisten{{
    .name = "solisten",
    .events = {"-w", "sockets"},
    .stress = {.workload = "sockets --rounds {n/3}",
               .events = 600,
               .truth = "listen_calls",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
