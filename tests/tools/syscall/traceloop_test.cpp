// traceloop against processes that make known calls, crash, or fill its buffers.
#include "calls.hpp"

namespace coretap::tooltest {
namespace {

std::vector<Json> of_type(const Report& report, const char* type) {
  return lines_with(report.body, {{"type", type}});
}

std::vector<Json> calls(const Report& report, const std::string& name,
                        const std::string& abi_not = "i386") {
  auto all = lines_with(of_type(report, "call"), {{"syscall", name}});
  std::erase_if(all, [&](auto& line) { return line["abi"].str() == abi_not; });
  return all;
}

/// Calls whose argument `filename` is one of these.
std::vector<Json> calls_on(const Report& report, const std::set<std::string>& names) {
  auto all = of_type(report, "call");
  std::erase_if(all, [&](auto& line) {
    auto arguments = line["arguments"];
    return !arguments.has("filename") || !arguments["filename"].is_string() ||
           !names.contains(arguments["filename"].str());
  });
  return all;
}

/// Runs a command in a descendant of a cgroup; waits for its exit.
void run_in(const Cgroup& cgroup, const std::string& script, const std::string& below = "") {
  auto procs = cgroup.path() + below + "/cgroup.procs";
  run({"sh", "-c", "echo $$ >" + procs + " && " + script});
}

TOOL_TEST(Traceloop, CallsOfAProcess) {
  const bool of_32_bits = has_32_bit_calls();
  Scene scene(of_32_bits ? "syscalls --compat" : "syscalls");
  auto& tracer = scene.trace("traceloop --json --dump-on-exit -p {pid}");
  scene.workload().release();
  auto truth = scene.workload().truth();
  EXPECT_TRUE(await_sleep(scene.workload().pid())) << "in the read that it lingers in";
  auto report = tracer.stop();
  EXPECT_EQ(report.lost("overwritten"), 0u);
  EXPECT_EQ(calls(report, "getppid").size(), truth["calls"].u64());
  EXPECT_EQ(calls(report, "getppid", "x86_64").size(), of_32_bits ? truth["calls"].u64() : 0);
  auto failed = calls(report, "unlinkat");
  ASSERT_EQ(failed.size(), truth["failed"].u64());
  for (auto& call : failed) {
    expect_fields(call, {{"error", "ENOENT"}, {"result", -2}, {"pid", scene.workload().pid()}});
    expect_fields(call["arguments"], {{"pathname", "/no/such/directory"}, {"flag", AT_REMOVEDIR}});
  }
  auto sleeps = calls(report, "clock_nanosleep");
  std::erase_if(sleeps, [](auto& call) { return call["latency_ns"].is_null(); });
  auto slept = sum(sleeps, "latency_ns"), stops = truth["stops"].u64() * 40'000'000;
  EXPECT_LE(slept, truth["slept_ns"].u64());
  EXPECT_GE(slept, truth["asked_ns"].u64() - stops);
  // The read that held it started before; the one that it lingers in has not ended.
  auto reads = calls(report, "read");
  ASSERT_EQ(reads.size(), truth["interrupted"].u64() + 2);
  EXPECT_TRUE(reads.front()["latency_ns"].is_null());
  EXPECT_FALSE(reads.front()["result"].is_null());
  EXPECT_TRUE(reads.back()["result"].is_null());
  EXPECT_EQ(reads.back()["arguments"]["count"].u64(), 1u);
  auto all = of_type(report, "call");
  EXPECT_TRUE(
      std::ranges::is_sorted(all, {}, [](auto& call) { return call["monotonic_ns"].u64(); }));
  expect_fields(only(of_type(report, "dump")), {{"calls", all.size()}, {"cgroup", nullptr}});
}

TOOL_TEST(Traceloop, AskedForByASignal) {
  Scene scene("syscalls --restarts 0");
  auto& tracer = scene.trace("traceloop --json --dump-signal USR2 -p {pid}");
  auto dump = [&](std::size_t n) {
    tracer.process().signal(SIGUSR2);
    return tracer.process().await([&](const std::string& out, const std::string&) {
      auto is_dump = [](auto& line) { return contains(line, "\"type\":\"dump\""); };
      return std::ranges::count_if(complete_lines(out), is_dump) >= std::ptrdiff_t(n);
    });
  };
  ASSERT_TRUE(dump(1));
  scene.workload().release();
  auto truth = scene.workload().truth();
  ASSERT_TRUE(dump(2));
  ASSERT_TRUE(dump(3));
  auto all = of_type(tracer.stop(), "dump");
  ASSERT_EQ(all.size(), 3u) << "none at the end, which was not asked for";
  EXPECT_EQ(all[0]["calls"].u64(), 0u) << "the read that holds it began before";
  EXPECT_GE(all[1]["calls"].u64(), truth["calls"].u64());
  EXPECT_EQ(all[2]["calls"].u64(), 1u) << "the read in which it lingers, nothing that was shown";
}

TOOL_TEST(Traceloop, BadEndsOfProcesses) {
  Cgroup cgroup;
  Tracer tracer("traceloop", "--json --trigger SIGSEGV,exit=3 " + cgroup.path());
  for (auto* script :
       {"exit 0", "exit 4", "kill -TERM $$", "cat /no/such/file; exit 3", "kill -SEGV $$"})
    run_in(cgroup, script);
  auto report = tracer.stop();
  auto dumps = of_type(report, "dump"), kills = calls(report, "kill");
  ASSERT_EQ(dumps.size(), 2u);
  expect_fields(dumps[0], {{"reason", "exit status 3"}, {"comm", "sh"}, {"cgroup", cgroup.path()}});
  expect_contains(dumps[1]["reason"].str(), {"killed by SIGSEGV"});
  ASSERT_EQ(kills.size(), 2u);
  expect_fields(kills[1]["arguments"], {{"sig", SIGSEGV}});
  expect_fields(only(calls_on(report, {"/no/such/file"})), "error ENOENT");
}

TOOL_TEST(Traceloop, LackOfMemory) {
  Cgroup cgroup;
  auto parent = std::filesystem::path(cgroup.path()).parent_path().string();
  std::ofstream(parent + "/cgroup.subtree_control") << "+memory" << std::flush;
  std::ofstream limit(cgroup.path() + "/memory.max");
  limit << "30M" << std::flush;
  if (!limit) throw Skip("no memory controller for cgroups (version 2) here; guests have it");
  std::ofstream(cgroup.path() + "/memory.swap.max") << "0" << std::flush;
  Tracer tracer("traceloop", "--json --trigger oom " + cgroup.path());
  run_in(cgroup, "tail /dev/zero");
  auto dumps = of_type(tracer.stop(), "dump");
  ASSERT_GE(dumps.size(), 1u);
  expect_fields(dumps[0], {{"reason", "killed for lack of memory (OOM)"}, {"comm", "tail"}});
}

// A busy cgroup does not overwrite the record of a quiet one.
TOOL_TEST(Traceloop, EachCgroupHasItsRecorder) {
  Cgroup quiet, busy;
  std::filesystem::create_directory(busy.path() + "/below");
  {
    Tracer tracer("traceloop",
                  "--json --dump-on-exit -s 256 -c " + quiet.path() + " " + busy.path());
    run_in(quiet, "test -e /quiet");
    run_in(busy, "i=0; while [ $i -lt 3000 ]; do test -e /busy; i=$((i+1)); done", "/below");
    auto report = tracer.stop();
    auto dumps = of_type(report, "dump");
    ASSERT_EQ(dumps.size(), 2u);
    for (auto& dump : dumps)
      EXPECT_EQ(dump["overwritten"].u64() > 0, dump["cgroup"].str() == busy.path());
    for (auto& call : calls_on(report, {"/busy"})) EXPECT_NE(call["cgroup"].str(), quiet.path());
    expect_fields(only(calls_on(report, {"/quiet"})), {{"cgroup", quiet.path()}});
  }
  Tracer tracer("traceloop", "--json --dump-on-exit -r " + busy.path());
  run_in(busy, "test -e /above");
  run_in(busy, "test -e /under", "/below");
  auto report = tracer.stop();
  expect_fields(only(calls_on(report, {"/under"})), {{"cgroup", busy.path() + "/below"}});
  EXPECT_EQ(of_type(report, "dump").size(), 2u);
  std::filesystem::remove(busy.path() + "/below");
}

// Without a trigger, calls are shown as they occur.
TOOL_TEST(Traceloop, AsTheyCome) {
  Scene scene("syscalls --restarts 0");
  auto& tracer = scene.trace("traceloop -e getppid,unlinkat -p {pid}");
  scene.workload().release();
  auto truth = scene.workload().truth();
  EXPECT_TRUE(tracer.process().await([&](const std::string& out, const std::string&) {
    return contains(
        out,
        "unlinkat(dfd=AT_FDCWD, pathname=\"/no/such/directory\", flag=AT_REMOVEDIR) = -1 "
        "ENOENT (No such file or directory) <");
  }));
  auto out = tracer.stop_text();
  EXPECT_EQ(lines(out).size(), truth["calls"].u64() + truth["failed"].u64()) << out;
}

// Sleeps of 1 to 40 ms: those that take at least 20 ms by the workload's clock and by the kernel's.
TOOL_TEST(Traceloop, OnlySlowCalls) {
  const std::vector<Strings> tools = {
      Strings("traceloop --json --dump-on-exit --min 20 -e nanosleep,getppid -p {pid}"),
      Strings("traceloop --json --dump-on-exit -e nanosleep -p {pid}")};
  auto all = watch_all({{"syscalls --restarts 0 --signals 0 --sleeps 0 --steps 40", tools}}).at(0);
  auto slow = calls(all.report(0), "nanosleep"), each = calls(all.report(1), "nanosleep");
  std::erase_if(each, [](auto& call) { return call["latency_ns"].u64() < 20'000'000; });
  EXPECT_EQ(each.size(), slow.size());
  EXPECT_GE(slow.size(), 21u) << "those that asked for 20 ms or more";
  EXPECT_LE(slow.size(), 40 - 15u);
  for (auto& call : slow) EXPECT_GE(call["latency_ns"].u64(), 20'000'000u);
  EXPECT_TRUE(calls(all.report(0), "getppid").empty());
  EXPECT_GE(all.report(0).lost("filtered"), 40 - slow.size() + all.number("calls"));
}

// A read that began before tracing has no time: it lasts at least as long as tracing.
TOOL_TEST(Traceloop, ASlowCallThatBeganBefore) {
  for (auto* min : {"1", "600000"}) {
    Workload sleeper("sleeper", "--sleeps 1 --ms 1");
    ASSERT_TRUE(await_sleep(sleeper.pid()));
    Tracer tracer("traceloop",
                  Strings{"--json", "--dump-on-exit", "--min", min, "-p", sleeper.id()});
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    sleeper.release();
    sleeper.truth();
    auto reads = calls(tracer.stop(), "read");
    ASSERT_EQ(reads.size(), *min == '1' && !min[1] ? 1u : 0u);
  }
}

// The command as Inspektor Gadget's users write it.
TOOL_TEST(Traceloop, WordBeforeCgroups) {
  Cgroup cgroup;
  Tracer tracer("traceloop", "cgroups --json --dump-on-exit " + cgroup.path());
  run_in(cgroup, "test -e /here");
  expect_fields(only(calls_on(tracer.stop(), {"/here"})), {{"cgroup", cgroup.path()}});
  expect_refused("traceloop cgroups cgroups");
}

/// Names of constants in the arguments of each call to one of these, sorted.
Strings constants(const std::string& output, const std::set<std::string>& names) {
  static const std::regex call(R"((?:^|\s)([a-z_0-9]+)\((.*))");
  static const std::regex word(R"([A-Z][A-Z0-9]*_[A-Z0-9_]+|SIG[A-Z]+)");
  static const std::regex text(R"("(\\.|[^"\\])*")");
  Strings all;
  for (auto& line : complete_lines(output)) {
    std::smatch match;
    if (!std::regex_search(line, match, call) || !names.contains(match[1])) continue;
    auto arguments = match[2].str();
    arguments = std::regex_replace(arguments.substr(0, arguments.rfind(") = ")), text, "");
    std::multiset<std::string> found;
    for (std::sregex_iterator at(arguments.begin(), arguments.end(), word), end; at != end; ++at)
      found.insert(at->str());
    all.push_back(match[1].str());
    for (auto& constant : found) all.back() += " " + constant;
  }
  std::ranges::sort(all);
  return all;
}

// Flags and constants of the same programs.
TOOL_TEST(Traceloop, ConstantsAsStraceNamesThem) {
  require_tool("traceloop");
  const std::set<std::string> names{"open",  "openat",     "mmap",    "mprotect", "socket",
                                    "clone", "setsockopt", "fcntl",   "unlinkat", "pipe2",
                                    "lseek", "access",     "shutdown"};
  std::set<std::string> seen;
  for (auto& command : std::vector<Strings>{workload_path("syscalls") + " --signals 0 --restarts 0",
                                            workload_path("tcp") + " --sessions 2",
                                            {"sh", "-c", "echo > /dev/null; exec 7<&0 2>&7"}}) {
    auto expected = constants(strace({}, command).err, names);
    auto ours = run(Strings{tool_path("traceloop"), "--dump-on-exit", "--"} + command);
    ASSERT_EQ(ours.status, 0) << ours.err;
    EXPECT_EQ(constants(ours.out, names), expected);
    for (auto& line : expected)
      if (contains(line, " ")) seen.insert(words(line)[0]);
  }
  EXPECT_GE(seen.size(), 5u) << ::testing::PrintToString(seen);
}

TOOL_TEST(Traceloop, ACgroupThatThereIsNot) { expect_refused("traceloop /no/such/cgroup"); }

TESTS_OF(traceloop, .reports = {{ReportKind::recorder, {"--dump-on-exit"}}},
         .events = {{}, "sleeper --sleeps 3"},
         .stress = {.workload = "syscalls --calls {n} --restarts 0",
                    .events = 20000,
                    .options = "--dump-on-exit -e getppid",
                    .shown = [](const Json& line) -> std::uint64_t {
                      return line["type"].str() == "call";
                    },
                    .truth = "calls",
                    .tiny = "-s 64",
                    .copies = 12},
         .long_run = {{.arguments = "--dump-on-exit"}});

}  // namespace
}  // namespace coretap::tooltest
