// runqslower against the kernel's own sums of run delay, and tasks that take the CPU from others.
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

/// By thread: the waits of a report.
std::map<std::uint64_t, std::vector<Json>> by_tid(const Report& report) {
  std::map<std::uint64_t, std::vector<Json>> all;
  for (auto& event : report.body) all[event["tid"].u64()].push_back(event);
  return all;
}

TOOL_TEST(Runqslower, AllWaitsAreTheKernelsRunDelay) {
  require_tool("runqslower");
  Workload workload("runqueue", {"--threads", "3", "--ms", "400"}, kLinger);
  Tracer all("runqslower", {"--json", "--strict", "0", "-p", workload.id()});
  Tracer slow("runqslower", {"--json", "--strict", "2000", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = all.stop(), longer = slow.stop();
  // The other way takes times of its own: see runqlat's test.
  bool accounting = report.header["hooks"].items().at(0)["attached"].items().size() == 1;
  auto threads = by_tid(report);
  for (auto& thread : truth["threads"].items()) {
    std::uint64_t waited = 0;
    auto& events = threads[thread["tid"].u64()];
    for (auto& event : events) waited += event["latency_ns"].u64();
    auto delay = static_cast<double>(thread["run_delay_ns"].u64());
    EXPECT_GE(static_cast<double>(waited), delay * (accounting ? 1 : 0.97));
    EXPECT_LE(static_cast<double>(waited), delay * (accounting ? 1 : 1.03));
    EXPECT_EQ(events.size(), thread["timeslices"].u64());
  }
  std::size_t expected = 0;
  for (auto& event : report.body) {
    EXPECT_EQ(event["comm"].str(), "runqueue");
    EXPECT_EQ(std::to_string(event["pid"].u64()), workload.id());
    expected += event["latency_ns"].u64() >= 2'000'000;
  }
  for (auto& event : longer.body) EXPECT_GE(event["latency_ns"].u64(), 2'000'000u);
  if (accounting) {
    EXPECT_EQ(longer.body.size(), expected);
  }
  EXPECT_GT(report.lost("filtered"), 0u) << "other tasks wait, too";
}

// Two want one CPU: whatever else runs there for a moment, in most of the time that one waits the
// other runs.
TOOL_TEST(Runqslower, NamesTheTaskThatHadTheCpu) {
  require_tool("runqslower");
  Workload wanted("runqueue", {"--threads", "1", "--ms", "500", "--comm", "rq-wanted"}, kLinger);
  Workload rival("runqueue", {"--threads", "1", "--ms", "500"}, kLinger);
  ASSERT_EQ(wanted.ready()["cpu"].u64(), rival.ready()["cpu"].u64());
  auto wanted_tid = wanted.ready()["tids"].items().at(0).u64();
  auto rival_tid = rival.ready()["tids"].items().at(0).u64();
  Tracer tracer("runqslower", {"--json", "--strict", "500", "-t", std::to_string(wanted_tid)});
  rival.release();
  wanted.release();
  wanted.truth();
  rival.truth();
  auto report = tracer.stop();
  ASSERT_GT(report.body.size(), 0u);
  std::uint64_t latency = 0, by_rival = 0;
  for (auto& event : report.body) {
    EXPECT_EQ(event["tid"].u64(), wanted_tid);
    EXPECT_EQ(event["cpu"].u64(), wanted.ready()["cpu"].u64());
    latency += event["latency_ns"].u64();
    if (event["longest_tid"].is_null()) continue;
    EXPECT_LE(event["longest_ns"].u64(), event["latency_ns"].u64());
    if (event["longest_tid"].u64() != rival_tid) continue;
    EXPECT_EQ(event["longest_comm"].str(), "runqueue");
    by_rival += event["longest_ns"].u64();
  }
  // Elsewhere on this machine others may want the CPU as well.
  EXPECT_GE(by_rival, latency / 4);
  EXPECT_GT(by_rival, 0u);
}

TOOL_TEST(Runqslower, FollowsACommand) {
  require_tool("runqslower");
  Tracer tracer("runqslower",
                {"--json", "0", "--", workload_path("runqueue"), "--threads", "3", "--ms", "200"},
                {.attached = false});
  ASSERT_EQ(tracer.process().wait(), 0) << tracer.process().err();
  auto report = parse_report(tracer.process().out(), tracer.process().err());
  ASSERT_TRUE(report.truth);
  auto threads = by_tid(report);
  for (auto& thread : (*report.truth)["threads"].items())
    EXPECT_GE(threads[thread["tid"].u64()].size(), thread["timeslices"].u64());
}

TOOL_TEST(Runqslower, ColumnsOfThePeers) {
  require_tool("runqslower");
  EXPECT_EQ(header_of("runqslower", {}), (Strings{"TIME", "COMM", "TID", "LAT(us)"}));
  EXPECT_EQ(header_of("runqslower", {"-P"}),
            (Strings{"TIME", "COMM", "TID", "LAT(us)", "PREV", "COMM", "PREV", "TID", "RAN(us)"}));
  Workload workload("runqueue", {"--threads", "3", "--ms", "300"}, kLinger);
  Tracer tracer("runqslower", {"500", "-P", "-p", workload.id()});
  workload.release();
  workload.truth();
  std::istringstream lines(tracer.stop_text());
  std::string line;
  std::getline(lines, line);
  static const std::regex row(
      R"(\d\d:\d\d:\d\d\.\d{3} +runqueue +\d+ +\d+ +\S.* +(\d+|-) +(\d+|-) *)");
  int rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_GT(rows, 0);
  EXPECT_EQ(run({tool_path("runqslower"), "x"}).status, 2);
}

const DeclareTests kRunqslower{{
    .name = "runqslower",
    .events = {"0 -P", "runqueue --threads 2 --ms 60"},
    .stress = {.workload = "runqueue --threads 3 --ms {n}",
               .events = 600,
               .options = "0",
               .truth =
                   [](stress::Load& load) {
                     return load.grown([](const stress::Rest::Thread& t) { return t.slices; });
                   },
               .tiny = "--ring-size 4096",
               // As runqlat's.
               .slack = 1},
    .long_run = {{.arguments = "1000"}},
}};

}  // namespace
}  // namespace coretap::tooltest
