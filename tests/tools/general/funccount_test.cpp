// funccount against programs that make a known number of calls.
#include <gnu/libc-version.h>

#include "probes.hpp"

namespace coretap::tooltest {
namespace {

#ifdef __aarch64__
const std::string kGetppid = "__arm64_sys_getppid";
const Strings kBehindTheEntry("+0xc +0x10");
#else
const std::string kGetppid = "__x64_sys_getppid";
const Strings kBehindTheEntry("+0x5 +0x9");
#endif

using Functions = std::map<std::string, std::uint64_t>;

Functions function_counts(const Report& report) {
  Functions all;
  for (auto& row : report.body) all[row["target"].str()] += row["count"].u64();
  return all;
}

/// The calls of one workload until it prints its truth.
struct Counted : Observed {
  Functions counts = function_counts(report());
  std::uint64_t of(const char* key) const { return truth[key].u64(); }
};

Counted count(const Strings& words, const std::string& workload = "probes --calls 1001") {
  return {observe("funccount --json --strict -p {pid}" + words, workload)};
}

// Functions that are never called have no row.
TOOL_TEST(Funccount, EachKindOfTarget) {
  struct {
    Strings words;
    std::map<std::string, const char*> rows;  ///< by function: the workload's name of the count
  } cases[] = {
      {probes() + ":counted_*", {{"counted_each", "calls"}, {"counted_even", "even"}}},
      {"r:" + probes() + ":counted_each", {{"counted_each", "calls"}}},
      // The same functions by other targets.
      {probes() + ":counted_* " + workload_path("./probes") + ":counted_each",
       {{"counted_each", "calls"}, {"counted_even", "even"}}},
      {"t:syscalls:sys_enter_getppi* t:syscalls:sys_enter_getppid",
       {{"syscalls:sys_enter_getppid", "calls"}}},
      {"-r " + probes() + ":counted_(even|never)$", {{"counted_even", "even"}}},
      {"u::plain", {{"coretap_test:plain", "calls"}}},
      {"u:" + probes() + ":*", {{"coretap_test:plain", "calls"}, {"coretap_test:gated", "calls"}}},
      {"t:syscalls:sys_*_getppid t:syscalls:sys_enter_close_range",
       {{"syscalls:sys_enter_getppid", "calls"}, {"syscalls:sys_exit_getppid", "calls"}}}};
  for (auto& [words, rows] : cases) {
    SCOPED_TRACE(join(words));
    auto seen = count(words);
    Functions wanted;
    for (auto& [name, key] : rows) wanted[name] = seen.of(key);
    EXPECT_EQ(seen.counts, wanted);
    EXPECT_EQ(seen.report().ledger["shown"].u64(), seen.report().sum("count"));
  }
}

TOOL_TEST(Funccount, PlacesWithinKernelFunctions) {
  need_kprobes();
  // After the call that tracing patches, with or without a landing pad before it.
  std::size_t accepted = 0;
  for (auto& offset : kBehindTheEntry) {
    auto result = run({tool_path("funccount"), kGetppid + offset, "--duration", "0.1"});
    if (result.status != 0) {
      expect_contains(result.err, {"no instruction begins there"});
      continue;
    }
    accepted++;
    auto seen = count({kGetppid + offset, kGetppid});
    EXPECT_EQ(seen.counts,
              (Functions{{kGetppid + offset, seen.of("calls")}, {kGetppid, seen.of("calls")}}));
  }
  EXPECT_GE(accepted, 1U);
  expect_refusals("funccount", {{kGetppid + "+0x1", "no instruction begins there"},
                                {kGetppid + "+0x10000", kGetppid + " has 0x"}});
}

// A USDT probe with a semaphore fires only while it is traced.
TOOL_TEST(Funccount, OneOfTwoUsdtProbes) {
  auto plain = count("u:" + probes() + ":coretap_test:plain");
  EXPECT_EQ(plain.of("gated"), 0u) << "somebody else's semaphore was raised";
  EXPECT_EQ(plain.counts, (Functions{{"coretap_test:plain", plain.of("calls")}}));
}

// Books name libpthread, which is empty where glibc has it in libc.
TOOL_TEST(Funccount, LibrariesThatAreInLibc) {
  int major = 0, minor = 0;
  if (sscanf(gnu_get_libc_version(), "%d.%d", &major, &minor) != 2 || minor < 34)
    throw Skip("libpthread is a library of its own here");
  auto seen = count("pthread:pthread_create", "threads --count 20 --raw 5");
  EXPECT_EQ(seen.counts, (Functions{{"pthread_create", seen.of("by_library")}}));
  EXPECT_GE(seen.of("by_library"), 20u);
  auto limits = seen.report().header["limits"].strings();
  ASSERT_FALSE(limits.empty());
  expect_contains(limits[0], {"found in libc", "2.34"});
  expect_refusals("funccount", {{"pthread:no_such_function", "libpthread in libc", 2}});
}

TOOL_TEST(Funccount, AllSystemCalls) {
  auto unnamed = count({});
  EXPECT_EQ(unnamed.counts["syscalls:sys_enter_getppid"], unnamed.of("calls"));
  EXPECT_GE(unnamed.counts.size(), 2u) << "all system calls";
}

// The kernel's own trace counts the same events of the same task.
TOOL_TEST(Funccount, Tracepoints) {
  Scene scene("syscalls --signals 0 --restarts 0");
  Trace trace("sched/sched_process_fork");
  scene.trace(
      "funccount --json --strict -p {pid} t:sched:sched_process_fork t:raw_syscalls:sys_enter");
  Counted seen{scene.finish()};
  trace.stop();
  auto forks = seen.counts["sched:sched_process_fork"];
  EXPECT_EQ(forks, seen.of("forks") + seen.of("stops"));
  EXPECT_EQ(forks, trace.lines(static_cast<pid_t>(seen.pid)).size());
  EXPECT_GT(forks, 0u);
  EXPECT_GE(seen.counts["raw_syscalls:sys_enter"], seen.of("calls"));
}

TOOL_TEST(Funccount, KernelFunctions) {
  require_tool("funccount");
  if (!has_kprobes()) {
    expect_refusals("funccount",
                    {{"vfs_write", "CONFIG_KPROBES", 3}, {"vfs_write", "sys_write", 3}});
    auto call = count("sys_getppid r::sys_getppid");
    EXPECT_EQ(call.counts, (Functions{{"sys_getppid", 2 * call.of("calls")}}));
    return;
  }
  auto seen = count({kGetppid, "r::" + kGetppid});
  EXPECT_EQ(seen.counts, (Functions{{kGetppid, 2 * seen.of("calls")}}));
  auto call = count("sys_getppid");
  EXPECT_EQ(call.counts, (Functions{{"sys_getppid", call.of("calls")}}));
  auto many = count("vfs_*");
  EXPECT_GE(many.counts["vfs_write"], 1u);
  EXPECT_EQ(many.counts.count("vfs_mkdir"), 0u);
}

TOOL_TEST(Funccount, OfOneCpu) {
  require_tool("funccount");
  expect_refusals("funccount", {{"-c 9999 " + probes() + ":counted_each"}});
  std::vector<Strings> of_cpus;
  for (long cpu = 0; cpu < sysconf(_SC_NPROCESSORS_ONLN); cpu++)
    of_cpus.push_back("funccount --json --strict -p {pid} -c " + std::to_string(cpu) + " " +
                      probes() + ":counted_each");
  auto seen = observe_all(of_cpus, "probes --calls 100");
  std::uint64_t shown = 0, filtered = 0;
  for (std::size_t i = 0; i < of_cpus.size(); i++) {
    shown += seen.report(i).sum("count");
    filtered += seen.report(i).lost("filtered");
  }
  EXPECT_EQ(shown, 100u);
  EXPECT_EQ(filtered, (of_cpus.size() - 1) * 100);
}

TOOL_TEST(Funccount, TextIsAsBccHasIt) {
  auto seen = observe("funccount -T -p {pid} " + probes() + ":counted_*", "probes --calls 1000");
  auto out = lines(seen.text());
  ASSERT_EQ(out.size(), 5u);
  EXPECT_TRUE(isdigit(out[0].front())) << out[0];
  expect_row(out[2], "counted_even 500");  // the largest come last
  expect_row(out[3], "counted_each 1000");
  expect_contains(seen.err[0], {"tracing user functions: 3"});
}

TOOL_TEST(Funccount, SaysWhatIsWrong) {
  require_tool("funccount");
  expect_refusals("funccount", {{{""}, "empty"},
                                {"t:sched", "category and a name"},
                                {"p:vfs_read", "p::vfs_read"},
                                {"c:", "last colon"},
                                {"u::plain", "--pid"},
                                {"t:sched:sched_swich", "t:sched:sched_switch"},
                                {"sys_getpid_", "sys_getpid"},
                                {probes() + ":counted_eve", "did you mean 'counted_even'"},
                                {"u:" + probes() + ":gatet", "gated"},
                                {"/no/such/file:main", "No such file"},
                                {"no-such-library:main", "no kernel module, library or program"},
                                {"-r t:sched:(", "regular expression"},
                                {"--max-probes 3 t:sched:*", "--max-probes"}});
}

TOOL_TEST(Funccount, ThirtyTwoBitsAreRefused) {
  auto narrow = workload_path("unwind_narrow");
  if (access(narrow.c_str(), X_OK)) throw Skip("no 32-bit program is built here");
  expect_refusals("funccount", {{{narrow + ":narrow_spin"}, "32-bit"},
                                {narrow + ":0x8049000", "32-bit"},
                                {"u:" + narrow + ":any", "32-bit"}});
}

TESTS_OF(funccount, .events = {{}, "probes --calls 20"},
         .stress = total_row("probes --calls {n}", 500000, "count", "calls",
                             "t:syscalls:sys_enter_getppid"),
         .long_run = {{.arguments = "-i 10 t:sched:* t:syscalls:*"}});

}  // namespace
}  // namespace coretap::tooltest
