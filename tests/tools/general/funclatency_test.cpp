// funclatency against a program whose calls take a known time.
#include <sys/stat.h>

#include <map>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::string calls(const std::string& function) { return workload_path("calls") + ":" + function; }

struct Observed {
  std::map<std::string, Json> histograms;  ///< by function
  Json truth;
  Report report;
};

Observed observe(const Strings& patterns, const Strings& more = {"-F"}) {
  require_tool("funclatency");
  Workload workload("calls", {"--calls", "20", "--sleep-us", "2000"}, kLinger);
  Strings options{"--json", "-p", workload.id()};
  options.insert(options.end(), more.begin(), more.end());
  options.insert(options.end(), patterns.begin(), patterns.end());
  Tracer tracer("funclatency", options);
  workload.release();
  Observed seen{{}, workload.truth(), tracer.stop()};
  for (auto& histogram : seen.report.body) {
    check_histogram(histogram, 1);
    seen.histograms.emplace(histogram.has("target") ? histogram["target"].str() : "", histogram);
  }
  return seen;
}

TOOL_TEST(Funclatency, CallsTakeAsLongAsTheyMeasureThemselves) {
  auto seen = observe({calls("timed_call"), calls("inner_call")});
  auto &timed = seen.histograms["timed_call"], &inner = seen.histograms["inner_call"];
  ASSERT_EQ(seen.histograms.size(), 2u);
  EXPECT_EQ(timed["count"].u64(), seen.truth["calls"].u64());
  EXPECT_GE(timed["total_ns"].u64(), seen.truth["slept_ns"].u64());
  EXPECT_EQ(inner["count"].u64(), seen.truth["calls"].u64());
  EXPECT_EQ(seen.report.lost("unmatched"), 0u);
}

// Each level of a recursion lasts as long as the sleep at its end; a call left by longjmp never
// ends and is noticed with the next one.
TOOL_TEST(Funclatency, RecursionAndLongjmp) {
  auto seen = observe({calls("*_call")});
  const auto n = seen.truth["calls"].u64(), sleep_ns = seen.truth["sleep_us"].u64() * 1000;
  ASSERT_EQ(seen.histograms.size(), 4u) << "left_call never returns";
  auto& recursive = seen.histograms["recursive_call"];
  EXPECT_EQ(recursive["count"].u64(), seen.truth["recursive"].u64());
  for (auto& slot : recursive["histogram"].items())
    EXPECT_GT(slot["below_ns"].u64(), sleep_ns) << "a call took less than the sleep in it";
  EXPECT_EQ(seen.histograms["outer_call"]["count"].u64(), n);
  EXPECT_EQ(seen.histograms["inner_call"]["count"].u64(), n);
  EXPECT_EQ(seen.histograms["timed_call"]["count"].u64(), n);
  EXPECT_EQ(seen.report.lost("unmatched"), n - 1) << "the last one is under way at the end";
}

TOOL_TEST(Funclatency, CallsBeyondTheLevel) {
  auto seen = observe({calls("recursive_call")}, {"-l", "2"});
  const auto n = seen.truth["calls"].u64();
  ASSERT_EQ(seen.report.body.size(), 1u);
  EXPECT_EQ(seen.report.body[0]["count"].u64(), 2 * n);
  EXPECT_EQ(seen.report.lost("untracked"), seen.truth["recursive"].u64() - 2 * n);
}

TOOL_TEST(Funclatency, SystemCallsAndKernelFunctions) {
  auto seen = observe({"sys_clock_nanosleep", "sys_getppid"});
  const auto n = seen.truth["calls"].u64();
  struct stat st {};
  const bool kprobes = ::stat("/sys/bus/event_source/devices/kprobe/type", &st) == 0;
  auto named = [&](const std::string& call) {
    for (auto& [name, histogram] : seen.histograms)
      if (name.ends_with("sys_" + call)) return histogram;
    ADD_FAILURE() << "no " << call;
    return Json{};
  };
  EXPECT_EQ(named("clock_nanosleep")["count"].u64(), 3 * n);
  EXPECT_GE(named("clock_nanosleep")["total_ns"].u64(),
            3 * n * seen.truth["sleep_us"].u64() * 1000);
  EXPECT_EQ(named("getppid")["count"].u64(), n);
  EXPECT_EQ(seen.report.lost("unmatched"), 0u);
  if (!kprobes) {
    auto result = run({tool_path("funclatency"), "vfs_read"});
    EXPECT_EQ(result.status, 3);
    EXPECT_TRUE(contains(result.err, "CONFIG_KPROBES")) << result.err;
    return;
  }
  auto sleeps = observe({"hrtimer_nanosleep", "do_nanosleep"});
  ASSERT_EQ(sleeps.histograms.size(), 2u);
  for (auto& [name, histogram] : sleeps.histograms) {
    EXPECT_EQ(histogram["count"].u64(), 3 * n) << name;
    EXPECT_GE(histogram["total_ns"].u64(), 3 * n * seen.truth["sleep_us"].u64() * 1000);
  }
}

TOOL_TEST(Funclatency, TextIsAsBccHasIt) {
  require_tool("funclatency");
  Workload workload("calls", {"--calls", "3"}, kLinger);
  Tracer tracer("funclatency", {"-u", "-F", "-P", "-p", workload.id(), calls("timed_call")});
  workload.release();
  workload.truth();
  auto text = tracer.stop_text();
  EXPECT_TRUE(contains(text, "Function = timed_call")) << text;
  EXPECT_TRUE(contains(text, "pid = " + workload.id())) << text;
  EXPECT_TRUE(contains(text, "     usecs               : count    distribution\n")) << text;
  EXPECT_TRUE(contains(text, ", count: 3\n")) << text;
}

TOOL_TEST(Funclatency, SaysWhatIsNoCall) {
  require_tool("funclatency");
  struct Case {
    std::string pattern, says;
  };
  for (auto& c : std::vector<Case>{{"t:sched:sched_switch", "without a return"},
                                   {"t:syscalls:sys_enter_read", "sys_NAME"},
                                   {"u:c:setjmp", "without a return"},
                                   {"r:" + calls("timed_call"), "leave out the r"}}) {
    auto result = run({tool_path("funclatency"), "-d", "0.1", c.pattern});
    EXPECT_EQ(result.status, 2) << c.pattern;
    EXPECT_TRUE(contains(result.err, c.says)) << result.err;
  }
}

const DeclareTests kFunclatency{{
    .name = "funclatency",
    .reports = {{ReportKind::aggregate}},
    .events = {"sys_getppid", "calls --calls 5 --sleep-us 100"},
    .stress = {.workload = "probes --calls {n}",
               .events = 300000,
               .options = "sys_getppid",
               .shown = "count",
               .truth = "calls"},
    .long_run = {{.arguments = "-i 10 sys_*"}},
}};

}  // namespace
}  // namespace coretap::tooltest
