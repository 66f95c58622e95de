// bindsnoop against a program that binds sockets in a network namespace of its own.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Bindsnoop, EachCall) {
  require_tool("bindsnoop");
  Workload workload("sockets", {});
  Tracer all("bindsnoop", {"--json", "--strict", "-E", "-p", workload.id()}),
      good("bindsnoop", {"--json", "--netns", workload.id()}),
      port("bindsnoop", {"--json", "-x", "-P", "80,4999-5000", "--netns", workload.id()}),
      count("bindsnoop", {"--json", "--count", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto binds = truth["binds"].items();
  auto report = all.stop();
  ASSERT_EQ(report.body.size(), binds.size());
  std::size_t failed = 0;
  for (std::size_t i = 0; i < binds.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = report.body[i], &bind = binds[i];
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "sockets");
    EXPECT_EQ(event["protocol"].str(), bind["protocol"].str());
    EXPECT_EQ(event["ip"].u64(), bind["ip"].u64());
    EXPECT_EQ(event["local_address"].str(), bind["address"].str());
    EXPECT_EQ(event["local_port"].u64(), bind["port"].u64());
    EXPECT_EQ(event["socket_options"].str(), bind["options"].str());
    EXPECT_EQ(event["interface"].u64(), bind["interface"].u64());
    auto error = static_cast<int>(bind["errno"].i64());
    failed += error != 0;
    ASSERT_EQ(event["error"].is_null(), !error);
    if (error) {
      EXPECT_EQ(event["error"].str(), ::strerrorname_np(error));
    }
  }
  auto succeeded = good.stop();
  EXPECT_EQ(succeeded.body.size(), truth["bound"].u64());
  EXPECT_EQ(succeeded.lost("filtered"), failed);
  EXPECT_EQ(port.stop().body.size(), 3u) << "80, 5000 and 5000 that failed";
  auto table = count.stop();
  EXPECT_EQ(table.sum("binds"), truth["bound"].u64());
}

TOOL_TEST(Bindsnoop, Columns) {
  require_tool("bindsnoop");
  EXPECT_EQ(header_of("bindsnoop", {}),
            (Strings{"PID", "COMM", "PROT", "ADDR", "PORT", "OPTS", "IF"}));
  EXPECT_EQ(header_of("bindsnoop", {"-t", "-U", "-E"}),
            (Strings{"TIME(s)", "UID", "RC", "PID", "COMM", "PROT", "ADDR", "PORT", "OPTS", "IF"}));
}

const DeclareTests kBindsnoop{{
    .name = "bindsnoop",
    .reports = {{ReportKind::events}, {ReportKind::aggregate, {"--count"}}},
    .events = {"-E", "sockets"},
    .stress = {.workload = "sockets --rounds {n/9}",
               .events = 1800,
               .options = "-E",
               .truth = "bind_calls",
               .tiny = "--ring-size 4096"},
}};

}  // namespace
}  // namespace coretap::tooltest
