// statsnoop against a program that knows of each of its calls what came of it.
#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Statsnoop, EveryCallWithItsResult) {
  require_tool("statsnoop");
  Workload workload("filecalls", {"--stats", "20", "--scene"});
  Tracer all("statsnoop", {"--json", "-p", workload.id()});
  Tracer failed("statsnoop", {"--json", "-x", "-p", workload.id()});
  Tracer text("statsnoop", {"-t", "-s", "-n", "filecalls"});
  workload.release();
  auto truth = workload.truth();
  auto calls = truth["scene"].items();
  auto bulk = truth["stats"].u64();
  auto report = all.stop();
  EXPECT_EQ(report.lost("lost"), 0u);
  EXPECT_EQ(report.lost("truncated"), 1u) << "the path that is too long for the kernel too";
  // At its start and end a program of the C library may look at its output.
  std::vector<Json> events;
  for (auto& event : report.body)
    if (event["dirfd"].is_null() || event["dirfd"].i64() > 2) events.push_back(event);
  ASSERT_EQ(events.size(), bulk + calls.size());
  for (std::size_t i = 0; i < bulk; i++) EXPECT_EQ(events[i]["path"].str(), "/proc/self/comm");
  for (std::size_t i = 0; i < calls.size(); i++) {
    SCOPED_TRACE(i);
    auto &event = events[bulk + i], &call = calls[i];
    EXPECT_EQ(event["call"].str(), call["call"].str());
    EXPECT_GT(event["latency_ns"].u64(), 0u);
    if (call["ret"].i64() < 0)
      EXPECT_EQ(event["error"].str(), ::strerrorname_np(static_cast<int>(-call["ret"].i64())));
    else
      EXPECT_TRUE(event["error"].is_null());
    ASSERT_EQ(event["path"].is_null(), !call["known"].boolean());
    if (!call["known"].boolean()) continue;
    auto path = unhex(call["path_hex"].str());
    EXPECT_EQ(event["incomplete"].boolean(), path.size() > 4095);
    EXPECT_EQ(event["path"].str(),
              path.size() > 4095 ? path.substr(0, 4095) + "..." : in_json(path));
  }
  EXPECT_EQ(failed.stop().body.size(), truth["failures"].u64());
  auto shown = text.stop_text();
  EXPECT_TRUE(safe_for_terminals(shown));
  EXPECT_TRUE(contains(shown, " -1    2 newfstatat   /no/where\n")) << shown;
}

// A long row without a pause: all of it arrives.
TOOL_TEST(Statsnoop, LosesNothingInAStorm) {
  require_tool("statsnoop");
  const std::uint64_t count = slowness() > 3 ? 20000 : 300000;
  Workload workload("filecalls", {"--stats", std::to_string(count)});
  Tracer tracer("statsnoop", {"--strict", "-p", workload.id()}, {.stdout_path = "/dev/null"});
  workload.release();
  workload.truth();
  tracer.process().signal(2);
  EXPECT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  EXPECT_FALSE(contains(tracer.process().err(), "lost")) << tracer.process().err();
}

TOOL_TEST(Statsnoop, Columns) {
  require_tool("statsnoop");
  EXPECT_EQ(header_of("statsnoop", {}), (Strings{"PID", "COMM", "RET", "ERR", "PATH"}));
  EXPECT_EQ(header_of("statsnoop", {"-t", "-s"}),
            (Strings{"TIME(s)", "PID", "COMM", "RET", "ERR", "SYSCALL", "PATH"}));
}

const DeclareTests kStatsnoop{{
    .name = "statsnoop",
    .events = {"-s", "filecalls --stats 3"},
    .stress = {.workload = "filecalls --stats {n}",
               .events = 20000,
               .truth = "stats",
               .tiny = "--ring-size 4096",
               .copies = 8,
               .slack = 10},
}};

}  // namespace
}  // namespace coretap::tooltest
