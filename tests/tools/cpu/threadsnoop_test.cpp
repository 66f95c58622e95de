// threadsnoop against a program that makes a known number of threads, in two ways.
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

TOOL_TEST(Threadsnoop, ByTheLibraryAndWithout) {
  require_tool("threadsnoop");
  Workload workload("threads", {"--count", "20", "--raw", "5"}, kLinger);
  Workload other("threads", {"--count", "3"});
  Tracer all("threadsnoop", {"--json", "--strict"});
  Tracer own("threadsnoop", {"--json", "--strict", "-p", workload.id()});
  Tracer nobody("threadsnoop", {"--json", "--strict", "-u", "54321"});
  workload.release();
  auto truth = workload.truth();
  other.release();
  other.truth();
  auto report = own.stop();
  auto tids = truth["tids"].items();
  ASSERT_EQ(report.body.size(), truth["threads"].u64());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    auto& event = report.body[i];
    EXPECT_EQ(event["thread_tid"].u64(), tids[i].u64());
    EXPECT_EQ(event["pid"].i64(), workload.pid());
    EXPECT_EQ(event["caller_tid"].i64(), workload.pid());
    EXPECT_EQ(event["comm"].str(), "threads");
    if (i < truth["by_library"].u64())
      EXPECT_EQ(event["function"].str(), "threads_main");
    else
      EXPECT_TRUE(event["function"].is_null()) << "no pthread_create() is under way";
  }
  auto everybody = all.stop();
  EXPECT_EQ(everybody.of_process(static_cast<std::uint64_t>(workload.pid())).size(), 25u);
  EXPECT_EQ(everybody.of_process(static_cast<std::uint64_t>(other.pid())).size(), 3u);
  EXPECT_TRUE(nobody.stop().body.empty());
}

// A fork is no thread, and a process has another program after exec: names must be the new one's.
TOOL_TEST(Threadsnoop, FollowsACommandThroughExec) {
  require_tool("threadsnoop");
  auto script =
      "(exit 0); \"$0\" --count 2 --ms 1000 >/dev/null; exec \"$0\" --count 4 --raw 1 --ms 1000";
  Tracer tracer("threadsnoop",
                {"--json", "--strict", "--", "sh", "-c", script, workload_path("threads")},
                {.attached = false});
  auto report = tracer.finish();
  std::size_t named = 0;
  std::set<std::uint64_t> processes;
  for (auto& event : report.body) {
    processes.insert(event["pid"].u64());
    if (event["function"].is_null()) continue;
    EXPECT_EQ(event["function"].str(), "threads_main");
    named++;
  }
  EXPECT_EQ(report.body.size(), 7u);
  EXPECT_EQ(named, 6u);
  EXPECT_EQ(processes.size(), 2u);
}

TOOL_TEST(Threadsnoop, ColumnsOfThePeer) {
  require_tool("threadsnoop");
  EXPECT_EQ(header_of("threadsnoop", {}), (Strings{"TIME(ms)", "PID", "COMM", "FUNC"}));
  EXPECT_EQ(header_of("threadsnoop", {"-T", "-e"}),
            (Strings{"TIME", "PID", "COMM", "CALLER", "TID", "FUNC"}));
  Workload workload("threads", {"--count", "3"}, kLinger);
  Tracer tracer("threadsnoop", {"-p", workload.id()});
  workload.release();
  workload.truth();
  std::istringstream lines(tracer.stop_text());
  std::string line;
  std::getline(lines, line);
  const std::regex row(R"(\d+ +)" + workload.id() + R"( +threads +threads_main *)");
  int rows = 0;
  for (; std::getline(lines, line); rows++) EXPECT_TRUE(std::regex_match(line, row)) << line;
  EXPECT_EQ(rows, 3);
}

const DeclareTests kThreadsnoop{{
    .name = "threadsnoop",
    .events = {{}, "threads --count 3"},
    .stress = {.workload = "threads --count {n}",
               .events = 600,
               .truth = "threads",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "-e"}},
}};

}  // namespace
}  // namespace coretap::tooltest
