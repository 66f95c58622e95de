// wakeuptime, offwaketime and chaintrace: a thread that reads a pipe, another one that sleeps, then
// writes, and the timer that wakes that one.
#include <algorithm>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kSleeps = 15, kMs = 10;

struct Run {
  Report report;
  std::int64_t target, waker;
  std::uint64_t slept_ns;
};

Run run_with(const char* tool, Strings options) {
  require_tool(tool);
  Victim victim("sleeper", {"--sleeps", std::to_string(kSleeps), "--ms", std::to_string(kMs),
                            "--block-on", "pipe"},
                {.linger = true});
  options.insert(options.end(), {"--json", "--strict", "-p", victim.id()});
  Tracer tracer(tool, options);
  victim.release();
  auto truth = victim.truth();
  auto report = tracer.stop();
  victim.end_lingering();
  auto thread = truth["threads"].items().at(0);
  return {std::move(report), thread["tid"].i64(), thread["waker_tid"].i64(),
          thread["slept_ns"].u64()};
}

bool has_frame(const Json& party, const char* stack, std::string_view part) {
  auto frames = party[stack].strings();
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

struct Sum {
  std::uint64_t ns = 0, count = 0;
};
template <class Condition>
Sum sum_of(const Run& run, Condition condition) {
  Sum sum;
  for (auto& line : run.report.body)
    if (condition(line)) {
      sum.ns += line["total_ns"].u64();
      sum.count += line["count"].u64();
    }
  return sum;
}

/// All reads of the pipe, for nearly as long as the victim says.
void expect_reads(const Run& run, const Sum& sum) {
  EXPECT_EQ(sum.count, kSleeps);
  EXPECT_LE(sum.ns, run.slept_ns);
  EXPECT_GE(sum.ns, run.slept_ns / 10 * 8);
}

SWITCH_TEST(Wakeuptime, WhoEndsTheWait) {
  auto run = run_with("wakeuptime", {});
  expect_reads(run, sum_of(run, [](auto& line) {
                 auto wakers = line["wakers"].items();
                 return wakers.size() == 1 && wakers[0]["context"].str() == "task" &&
                        wakers[0]["comm"].str() == "sleeper" &&
                        has_frame(wakers[0], "kernel_stack", "pipe_write");
               }));
  // The writer's own sleeps end by the timer.
  auto timer = sum_of(run, [](auto& line) {
    auto wakers = line["wakers"].items();
    return wakers.size() == 1 && wakers[0]["context"].str() != "task" &&
           has_frame(wakers[0], "kernel_stack", "hrtimer_wakeup");
  });
  EXPECT_EQ(timer.count, kSleeps);
  for (auto& line : run.report.body) EXPECT_EQ(line["comm"].str(), "sleeper");
}

SWITCH_TEST(Offwaketime, BothStacks) {
  auto run = run_with("offwaketime", {});
  expect_reads(run, sum_of(run, [&](auto& line) {
                 auto wakers = line["wakers"].items();
                 return line["tid"].i64() == run.target &&
                        has_frame(line, "user_stack", "victim_middle") &&
                        has_frame(line, "kernel_stack", "pipe_read") && wakers.size() == 1 &&
                        wakers[0]["tid"].i64() == run.waker &&
                        has_frame(wakers[0], "user_stack", "victim_wake") &&
                        has_frame(wakers[0], "kernel_stack", "pipe_write");
               }));
  for (auto& line : run.report.body) {
    EXPECT_FALSE(line["runnable"].boolean());
    EXPECT_EQ(line["pid"].u64(), run.report.body[0]["pid"].u64());
  }
}

SWITCH_TEST(Offwaketime, PartsOfTheStacks) {
  auto kernel = run_with("offwaketime", {"-K"});
  for (auto& line : kernel.report.body) {
    EXPECT_TRUE(line["user_stack"].strings().empty());
    for (auto& waker : line["wakers"].items()) EXPECT_TRUE(waker["user_stack"].strings().empty());
  }
  auto user = run_with("offwaketime", {"-U", "-m", "1000"});
  expect_reads(user, sum_of(user, [&](auto& line) {
                 auto wakers = line["wakers"].items();
                 return line["kernel_stack"].strings().empty() && wakers.size() == 1 &&
                        wakers[0]["tid"].is_null() == false &&
                        has_frame(wakers[0], "user_stack", "victim_wake");
               }));
}

SWITCH_TEST(Chaintrace, EndsInTheTimer) {
  auto run = run_with("chaintrace", {});
  expect_reads(run, sum_of(run, [&](auto& line) {
                 auto wakers = line["wakers"].items();
                 return line["tid"].i64() == run.target && wakers.size() == 2 &&
                        wakers[0]["tid"].i64() == run.waker &&
                        has_frame(wakers[0], "user_stack", "victim_wake") &&
                        wakers[1]["context"].str() != "task" &&
                        has_frame(wakers[1], "kernel_stack", "hrtimer_wakeup");
               }));
}

SWITCH_TEST(Chaintrace, LengthAndAge) {
  for (Strings options : {Strings{"-n", "1"}, Strings{"--max-age", "0"}}) {
    auto run = run_with("chaintrace", options);
    ASSERT_FALSE(run.report.body.empty());
    for (auto& line : run.report.body) EXPECT_LE(line["wakers"].items().size(), 1u);
  }
  EXPECT_EQ(run({tool_path("chaintrace"), "-n", "9"}).status, 2);
}

TOOL_TEST(Chaintrace, FoldedAndText) {
  require_tool("chaintrace");
  std::string out[2];
  for (int i = 0; i < 2; i++) {
    Strings words{tool_path("chaintrace")};
    if (i == 0) words.push_back("-f");
    for (auto& word : Strings{"--", victim_path("sleeper"), "--sleeps", "5", "--block-on", "pipe"})
      words.push_back(word);
    auto done = run(words);
    EXPECT_EQ(done.status, 0) << done.err;
    out[i] = done.out;
  }
  EXPECT_TRUE(contains(out[0], "sleeper;")) << out[0];
  EXPECT_TRUE(contains(out[0], ";sleeper;--;try_to_wake_up")) << out[0];
  EXPECT_TRUE(contains(out[1], "    waker2:          [")) << out[1];
  EXPECT_TRUE(contains(out[1], "    waker1:          sleeper ")) << out[1];
  EXPECT_TRUE(contains(out[1], "    target:          sleeper ")) << out[1];
}

}  // namespace
}  // namespace coretap::tooltest
