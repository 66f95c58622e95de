// threadsnoop against a program that creates a known number of threads, in two ways.
#include "shared.hpp"

namespace coretap::tooltest {
TOOL_TEST(Threadsnoop, ByTheLibraryAndWithout) {
  Workload other("threads", "--count 3");
  Scene scene("threads --count 20 --raw 5");
  scene.trace("threadsnoop --json --strict");
  scene.trace("threadsnoop --json --strict -p {pid}");
  scene.trace("threadsnoop --json --strict -u 54321");
  other.release();
  other.truth();
  auto seen = scene.finish();
  auto report = seen.report(1);
  auto tids = seen.truth["tids"].items();
  ASSERT_EQ(report.body.size(), seen.truth["threads"].u64());
  for (std::size_t i = 0; i < report.body.size(); i++) {
    // Without the library no pthread_create() is in progress.
    Value function = nullptr;
    if (i < seen.truth["by_library"].u64()) function = "threads_main";
    expect_fields(report.body[i], {{"thread_tid", tids[i].u64()},
                                   {"pid", seen.pid},
                                   {"caller_tid", seen.pid},
                                   {"comm", "threads"},
                                   {"function", function}});
  }
  auto everybody = seen.report(0);
  EXPECT_EQ(everybody.of_process(seen.pid).size(), 25u);
  EXPECT_EQ(everybody.of_process(static_cast<std::uint64_t>(other.pid())).size(), 3u);
  EXPECT_TRUE(seen.report(2).body.empty());
}

// A fork is not a thread. After exec a process runs another program: symbols must be its.
TOOL_TEST(Threadsnoop, FollowsACommandThroughExec) {
  auto script =
      "(exit 0); \"$0\" --count 2 --ms 1000 >/dev/null; exec \"$0\" --count 4 --raw 1 --ms 1000";
  auto report = report_of("threadsnoop --json --strict --" +
                          Strings{"sh", "-c", script, workload_path("threads")});
  std::set<std::uint64_t> processes;
  for (auto& event : report.body) processes.insert(event["pid"].u64());
  EXPECT_EQ(report.body.size(), 7u);
  EXPECT_EQ(lines_with(report.body, {{"function", "threads_main"}}).size(), 6u);
  EXPECT_EQ(lines_with(report.body, {{"function", nullptr}}).size(), 1u);
  EXPECT_EQ(processes.size(), 2u);
}

TESTS_OF(threadsnoop, .events = {{}, "threads --count 3"},
         .stress = event_row("threads --count {n}", 600, "threads"),
         .long_run = {{.arguments = "-e"}});

}  // namespace coretap::tooltest
