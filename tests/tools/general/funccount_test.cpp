// funccount against programs that do a known number of things.
#include <sys/stat.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <sstream>

#include "../harness.hpp"
#include "instructions.hpp"

namespace coretap::tooltest {
namespace {

using Counts = std::map<std::string, std::uint64_t>;

Counts counts(const Report& report) {
  Counts all;
  for (auto& row : report.body) all[row["target"].str()] += row["count"].u64();
  return all;
}

struct Observed {
  Counts counts;
  Json truth;
  Report report;
};

/// What one workload does until it says its truth.
Observed observe(const Strings& patterns, const Strings& arguments = {"--calls", "1001"},
                 const std::string& workload_name = "probes", const Strings& more = {}) {
  require_tool("funccount");
  Workload workload(workload_name, arguments, kLinger);
  Strings options{"--json", "--strict", "-p", workload.id()};
  options.insert(options.end(), more.begin(), more.end());
  options.insert(options.end(), patterns.begin(), patterns.end());
  Tracer tracer("funccount", options);
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  return {counts(report), truth, report};
}

std::string probes() { return workload_path("probes"); }

/// Exit status and words of a command line that is refused.
Result refused(Strings options) {
  options.insert(options.begin(), tool_path("funccount"));
  options.insert(options.end(), {"--duration", "0.1"});
  return run(options);
}

bool has_kprobes() {
  struct stat st {};
  return ::stat("/sys/bus/event_source/devices/kprobe/type", &st) == 0;
}

TOOL_TEST(Funccount, UserFunctions) {
  auto seen = observe({probes() + ":counted_*"});
  EXPECT_EQ(seen.counts, (Counts{{"counted_each", seen.truth["calls"].u64()},
                                 {"counted_even", seen.truth["even"].u64()}}))
      << "what is never called has no row";
  EXPECT_EQ(seen.report.ledger["shown"].u64(),
            seen.truth["calls"].u64() + seen.truth["even"].u64());
}

TOOL_TEST(Funccount, Returns) {
  auto seen = observe({"r:" + probes() + ":counted_each"});
  EXPECT_EQ(seen.counts, (Counts{{"counted_each", seen.truth["calls"].u64()}}));
}

TOOL_TEST(Funccount, PlacesWithinUserFunctions) {
  auto place = last_place_of(probes(), "counted_even");
  auto seen = observe({place, probes() + ":counted_each"});
  EXPECT_EQ(seen.counts, (Counts{{place.substr(place.rfind(':') + 1), seen.truth["even"].u64()},
                                 {"counted_each", seen.truth["calls"].u64()}}));
}

TOOL_TEST(Funccount, PlacesWithinKernelFunctions) {
  if (!has_kprobes()) GTEST_SKIP() << "no kprobes on this kernel: guests have them";
#if defined(__x86_64__)
  const std::string function = "__x64_sys_getppid";
  // Behind the call that tracing patches, without or with a landing pad before it.
  const Strings offsets{"+0x5", "+0x9"};
#else
  const std::string function = "__arm64_sys_getppid";
  const Strings offsets{"+0xc", "+0x10"};
#endif
  std::size_t accepted = 0;
  for (auto& offset : offsets) {
    auto result = refused({function + offset});
    if (result.status != 0) {
      EXPECT_TRUE(contains(result.err, "no instruction begins there")) << result.err;
      continue;
    }
    accepted++;
    auto seen = observe({function + offset, function});
    EXPECT_EQ(seen.counts, (Counts{{function + offset, seen.truth["calls"].u64()},
                                   {function, seen.truth["calls"].u64()}}));
  }
  EXPECT_GE(accepted, 1U);
  auto inside = refused({function + "+0x1"});
  EXPECT_EQ(inside.status, 2);
  EXPECT_TRUE(contains(inside.err, "no instruction begins there")) << inside.err;
  auto beyond = refused({function + "+0x10000"});
  EXPECT_EQ(beyond.status, 2);
  EXPECT_TRUE(contains(beyond.err, function + " has 0x")) << beyond.err;
}

TOOL_TEST(Funccount, RegularExpressions) {
  auto seen = observe({probes() + ":counted_(even|never)$"}, {"--calls", "500"}, "probes", {"-r"});
  EXPECT_EQ(seen.counts, (Counts{{"counted_even", seen.truth["even"].u64()}}));
}

// A probe with a semaphore is passed only while somebody traces it.
TOOL_TEST(Funccount, UsdtProbes) {
  auto seen = observe({"u:" + probes() + ":*"});
  EXPECT_EQ(seen.truth["gated"].u64(), seen.truth["calls"].u64());
  EXPECT_EQ(seen.counts, (Counts{{"coretap_test:plain", seen.truth["calls"].u64()},
                                 {"coretap_test:gated", seen.truth["gated"].u64()}}));
  auto plain = observe({"u:" + probes() + ":coretap_test:plain"});
  EXPECT_EQ(plain.truth["gated"].u64(), 0u) << "somebody else's semaphore was raised";
  EXPECT_EQ(plain.counts, (Counts{{"coretap_test:plain", plain.truth["calls"].u64()}}));
}

TOOL_TEST(Funccount, UsdtProbesOfAProcess) {
  auto seen = observe({"u::plain"});
  EXPECT_EQ(seen.counts, (Counts{{"coretap_test:plain", seen.truth["calls"].u64()}}));
}

TOOL_TEST(Funccount, SystemCalls) {
  auto seen = observe({"t:syscalls:sys_*_getppid", "t:syscalls:sys_enter_close_range"});
  EXPECT_EQ(seen.counts, (Counts{{"syscalls:sys_enter_getppid", seen.truth["calls"].u64()},
                                 {"syscalls:sys_exit_getppid", seen.truth["calls"].u64()}}));
  auto unnamed = observe({});
  EXPECT_EQ(unnamed.counts["syscalls:sys_enter_getppid"], unnamed.truth["calls"].u64());
  EXPECT_GE(unnamed.counts.size(), 2u) << "all system calls";
}

TOOL_TEST(Funccount, Tracepoints) {
  auto seen = observe({"t:sched:sched_process_fork", "t:raw_syscalls:sys_enter"},
                      {"--signals", "0", "--restarts", "0"}, "syscalls");
  EXPECT_EQ(seen.counts["sched:sched_process_fork"],
            seen.truth["forks"].u64() + seen.truth["stops"].u64());
  EXPECT_GE(seen.counts["raw_syscalls:sys_enter"], seen.truth["calls"].u64());
}

// The kernel's own trace counts the same events of the same task.
TOOL_TEST(Funccount, AgreesWithTheKernelsTrace) {
  require_tool("funccount");
  Workload workload("syscalls", {"--signals", "0", "--restarts", "0"}, kLinger);
  Trace trace("sched/sched_process_fork");
  Tracer tracer("funccount", {"--json", "-p", workload.id(), "t:sched:sched_process_fork"});
  workload.release();
  workload.truth();
  auto seen = counts(tracer.stop());
  trace.stop();
  EXPECT_EQ(seen["sched:sched_process_fork"], trace.lines(workload.pid()).size());
  EXPECT_GT(seen["sched:sched_process_fork"], 0u);
}

TOOL_TEST(Funccount, KernelFunctions) {
  require_tool("funccount");
  if (!has_kprobes()) {
    auto result = refused({"vfs_write"});
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_TRUE(contains(result.err, "CONFIG_KPROBES")) << result.err;
    EXPECT_TRUE(contains(result.err, "t:syscalls:sys_enter_write")) << result.err;
    auto call = observe({"sys_getppid", "r::sys_getppid"});
    EXPECT_EQ(call.counts, (Counts{{"sys_getppid", 2 * call.truth["calls"].u64()}}));
    return;
  }
#ifdef __aarch64__
  const std::string function = "__arm64_sys_getppid";
#else
  const std::string function = "__x64_sys_getppid";
#endif
  auto seen = observe({function, "r::" + function});
  EXPECT_EQ(seen.counts, (Counts{{function, 2 * seen.truth["calls"].u64()}}));
  auto call = observe({"sys_getppid"});
  EXPECT_EQ(call.counts, (Counts{{"sys_getppid", call.truth["calls"].u64()}}));
  auto many = observe({"vfs_*"});
  EXPECT_GE(many.counts["vfs_write"], 1u);
  EXPECT_EQ(many.counts.count("vfs_mkdir"), 0u);
}

TOOL_TEST(Funccount, OfOneCpu) {
  require_tool("funccount");
  EXPECT_EQ(refused({"-c", "9999", probes() + ":counted_each"}).status, 2);
  Workload workload("probes", {"--calls", "100"}, kLinger);
  std::vector<std::unique_ptr<Tracer>> of_cpus;
  for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
    of_cpus.push_back(std::make_unique<Tracer>(
        "funccount", Strings{"--json", "--strict", "-p", workload.id(), "-c", std::to_string(cpu),
                             probes() + ":counted_each"}));
  workload.release();
  auto calls = workload.truth()["calls"].u64();
  std::uint64_t shown = 0, filtered = 0;
  for (auto& tracer : of_cpus) {
    auto report = tracer->stop();
    shown += counts(report)["counted_each"];
    filtered += report.lost("filtered");
  }
  EXPECT_EQ(shown, calls);
  EXPECT_EQ(filtered, (of_cpus.size() - 1) * calls);
}

TOOL_TEST(Funccount, TextIsAsBccHasIt) {
  require_tool("funccount");
  Workload workload("probes", {"--calls", "1000"}, kLinger);
  Tracer tracer("funccount", {"-T", "-p", workload.id(), probes() + ":counted_*"});
  workload.release();
  workload.truth();
  auto out = lines(tracer.stop_text());
  ASSERT_EQ(out.size(), 5u);
  EXPECT_EQ(out[0].front(), '[');
  EXPECT_EQ(words(out[1]), (Strings{"FUNC", "COUNT"}));
  EXPECT_EQ(words(out[2]), (Strings{"counted_even", "500"})) << "the largest come last";
  EXPECT_EQ(words(out[3]), (Strings{"counted_each", "1000"}));
  EXPECT_TRUE(contains(tracer.process().err(), "tracing user functions: 3"));
}

TOOL_TEST(Funccount, SaysWhatIsWrong) {
  require_tool("funccount");
  struct Case {
    Strings words;
    int status;
    std::string says;
  };
  for (auto& c : std::vector<Case>{
           {{""}, 2, "empty"},
           {{"t:sched"}, 2, "category and a name"},
           {{"p:vfs_read"}, 2, "p::vfs_read"},
           {{"c:"}, 2, "last colon"},
           {{"u::plain"}, 2, "--pid"},
           {{"t:sched:sched_swich"}, 2, "t:sched:sched_switch"},
           {{"sys_getpid_"}, 2, "sys_getpid"},
           {{probes() + ":counted_eve"}, 2, "did you mean 'counted_even'"},
           {{"u:" + probes() + ":gatet"}, 2, "gated"},
           {{"/no/such/file:main"}, 2, "No such file"},
           {{"no-such-library:main"}, 2, "no kernel module, library or program"},
           {{"-r", "t:sched:("}, 2, "regular expression"},
           {{"--max-probes", "3", "t:sched:*"}, 2, "--max-probes"},
       }) {
    auto result = refused(c.words);
    SCOPED_TRACE(c.words.back() + ": " + result.err);
    EXPECT_EQ(result.status, c.status);
    EXPECT_TRUE(contains(result.err, c.says)) << "not: " << c.says;
    EXPECT_TRUE(result.out.empty());
  }
}

const DeclareTests kFunccount{{
    .name = "funccount",
    .reports = {{ReportKind::aggregate}},
    .events = {{}, "probes --calls 20"},
    .stress = {.workload = "probes --calls {n}",
               .events = 500000,
               .options = "t:syscalls:sys_enter_getppid",
               .shown = "count",
               .truth = "calls"},
    .long_run = {{.arguments = "-i 10 t:sched:* t:syscalls:*"}},
}};

}  // namespace
}  // namespace coretap::tooltest
