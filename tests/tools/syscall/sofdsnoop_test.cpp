// sofdsnoop against a program that passes descriptors of known files to its child.
#include <sstream>

#include <fmt/format.h>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Sofdsnoop, EachDescriptor) {
  require_tool("sofdsnoop");
  Workload workload("passing", {});
  auto child = workload.ready()["child"].i64();
  Tracer tracer("sofdsnoop",
                {"--json", "--strict", "-p", fmt::format("{},{}", workload.pid(), child)}),
      text("sofdsnoop", {"-t", workload.id()});
  workload.release();
  auto files = workload.truth()["files"].items();
  auto report = tracer.stop();
  std::size_t sent = 0, received = 0;
  for (auto& event : report.body) {
    bool sends = event["action"].str() == "SEND";
    auto& next = sends ? sent : received;
    ASSERT_LT(next, files.size());
    auto& file = files[next++];
    SCOPED_TRACE(event["action"].str() + " " + file["name"].str());
    EXPECT_EQ(event["pid"].i64(), sends ? workload.pid() : child);
    EXPECT_EQ(event["peer_pid"].i64(), sends ? child : workload.pid());
    EXPECT_EQ(event["comm"].str(), "passing");
    EXPECT_EQ(event["fd"].i64(), file[sends ? "sent" : "received"].i64());
    EXPECT_EQ(event["file"].str(), file["name"].str());
    if (!sends) continue;
    EXPECT_EQ(event["socket_fd"].i64(), workload.ready()["socket"].i64());
    EXPECT_EQ(event["socket_inode"].u64(), workload.ready()["socket_inode"].u64());
  }
  EXPECT_EQ(sent, files.size());
  EXPECT_EQ(received, files.size());
  std::istringstream lines(text.stop_text());
  std::string line;
  std::getline(lines, line);
  EXPECT_EQ(words(line), (Strings{"ACTION", "TID", "COMM", "SOCKET", "FD", "NAME"}));
  std::getline(lines, line);
  EXPECT_EQ(words(line), (Strings{"SEND", workload.id(), "passing",
                                  fmt::format("{}:socket:[{}]", workload.ready()["socket"].i64(),
                                              workload.ready()["socket_inode"].u64()),
                                  std::to_string(files[0]["sent"].i64()), files[0]["name"].str()}));
}

TOOL_TEST(Sofdsnoop, Columns) {
  require_tool("sofdsnoop");
  EXPECT_EQ(header_of("sofdsnoop", {"-T", "-n", "passing"}),
            (Strings{"TIME(s)", "ACTION", "TID", "COMM", "SOCKET", "FD", "NAME"}));
}

const DeclareTests kSofdsnoop{{
    .name = "sofdsnoop",
    .events = {"-T", "passing"},
    .stress = {.workload = "passing --rounds {n/4}",
               .events = 2000,
               .truth = "sent",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
