// traceloop against processes that make known calls, end badly, or fill its buffers.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

std::vector<Json> of_type(const std::vector<Json>& body, const char* type) {
  std::vector<Json> all;
  for (auto& line : body)
    if (line["type"].str() == type) all.push_back(line);
  return all;
}
std::vector<Json> of_type(const Report& report, const char* type) {
  return of_type(report.body, type);
}

std::vector<Json> calls(const Report& report, const std::string& name,
                        const std::string& abi_not = "i386") {
  std::vector<Json> all;
  for (auto& line : of_type(report, "call"))
    if (line["syscall"].str() == name && line["abi"].str() != abi_not) all.push_back(line);
  return all;
}

/// Those whose argument `filename` is one of these.
std::vector<Json> calls_on(const Report& report, const Strings& names) {
  std::vector<Json> all;
  for (auto& line : of_type(report, "call")) {
    auto arguments = line["arguments"];
    if (!arguments.has("filename") || !arguments["filename"].is_string()) continue;
    if (std::find(names.begin(), names.end(), arguments["filename"].str()) != names.end())
      all.push_back(line);
  }
  return all;
}

Strings shell(const std::string& script) { return {"sh", "-c", script}; }

/// A command below a cgroup; its exit is awaited.
void run_in(const Cgroup& cgroup, const std::string& script, const std::string& below = "") {
  auto procs = cgroup.path() + below + "/cgroup.procs";
  run(shell("echo $$ >" + procs + " && " + script));
}

TOOL_TEST(Traceloop, CallsOfAProcess) {
  require_tool("traceloop");
  Workload workload("syscalls", {"--compat"}, kLinger);
  Tracer tracer("traceloop", {"--json", "--dump-on-exit", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  EXPECT_TRUE(await_sleep(workload.pid())) << "in the read that it lingers in";
  auto report = tracer.stop();
  EXPECT_EQ(report.lost("overwritten"), 0u);
  EXPECT_EQ(calls(report, "getppid").size(), truth["calls"].u64());
  EXPECT_EQ(calls(report, "getppid", "x86_64").size(), truth["calls"].u64());
  auto failed = calls(report, "unlinkat");
  ASSERT_EQ(failed.size(), truth["failed"].u64());
  for (auto& call : failed) {
    EXPECT_EQ(call["error"].str(), "ENOENT");
    EXPECT_EQ(call["result"].i64(), -2);
    EXPECT_EQ(call["arguments"]["pathname"].str(), "/no/such/directory");
    EXPECT_EQ(call["arguments"]["flag"].u64(), static_cast<std::uint64_t>(AT_REMOVEDIR));
    EXPECT_EQ(std::to_string(call["pid"].u64()), workload.id());
  }
  std::uint64_t slept = 0;
  for (auto& call : calls(report, "clock_nanosleep"))
    if (!call["latency_ns"].is_null()) slept += call["latency_ns"].u64();
  EXPECT_LE(slept, truth["slept_ns"].u64());
  auto stops = truth["stops"].u64() * 40'000'000;
  EXPECT_GE(slept, truth["asked_ns"].u64() - stops);
  // The read that it was held by began before, the one that it lingers in has not ended.
  auto reads = calls(report, "read");
  ASSERT_EQ(reads.size(), truth["interrupted"].u64() + 2);
  EXPECT_TRUE(reads.front()["latency_ns"].is_null());
  EXPECT_FALSE(reads.front()["result"].is_null());
  EXPECT_TRUE(reads.back()["result"].is_null());
  EXPECT_EQ(reads.back()["arguments"]["count"].u64(), 1u);
  auto all = of_type(report, "call");
  for (std::size_t i = 1; i < all.size(); i++)
    EXPECT_LE(all[i - 1]["monotonic_ns"].u64(), all[i]["monotonic_ns"].u64());
  auto dumps = of_type(report, "dump");
  ASSERT_EQ(dumps.size(), 1u);
  EXPECT_EQ(dumps[0]["calls"].u64(), all.size());
  EXPECT_TRUE(dumps[0]["cgroup"].is_null());
  workload.end_lingering();
}

// What does not fit is counted: calls shown and calls overwritten are all that happened.
TOOL_TEST(Traceloop, OldCallsAreOverwritten) {
  require_tool("traceloop");
  Workload workload("syscalls", {"--calls", "20000", "--restarts", "0"}, kLinger);
  Tracer tracer("traceloop",
                {"--json", "--dump-on-exit", "-s", "64", "-e", "getppid", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  auto shown = of_type(report, "call").size();
  EXPECT_GE(shown, 60u);
  EXPECT_LE(shown, 64u * static_cast<unsigned>(sysconf(_SC_NPROCESSORS_CONF)));
  EXPECT_EQ(shown + report.lost("overwritten"), truth["calls"].u64());
  EXPECT_EQ(of_type(report, "dump").at(0)["overwritten"].u64(), report.lost("overwritten"));
  EXPECT_FALSE(report.ledger["data_lost"].boolean()) << "it is a recorder's nature";
  workload.end_lingering();
}

TOOL_TEST(Traceloop, ACommandsCallsAsText) {
  require_tool("traceloop");
  auto result = run({tool_path("traceloop"), "--dump-on-exit", "--", "sh", "-c",
                     "exec 5</no/such/file; echo not reached"});
  EXPECT_EQ(result.status, 0) << result.err;
  std::istringstream lines(result.out);
  std::string line;
  bool opened = false, ended = false, execve = false;
  while (std::getline(lines, line)) {
    opened |= contains(line, "] openat(dfd=AT_FDCWD, filename=\"/no/such/file\", flags=O_RDONLY") &&
              contains(line, " = -1 ENOENT (No such file or directory) <0.");
    ended |= line.ends_with("] exit_group(error_code=2) ...");
    execve |= contains(line, "] execve(filename=\"/") && contains(line, " = 0 <");
  }
  EXPECT_TRUE(opened && ended && execve) << result.out;
  EXPECT_TRUE(contains(result.out, "==> ")) << result.out;
}

TOOL_TEST(Traceloop, AskedForByASignal) {
  require_tool("traceloop");
  Workload workload("syscalls", {"--restarts", "0"}, kLinger);
  Tracer tracer("traceloop", {"--json", "--dump-signal", "USR2", "-p", workload.id()});
  auto dumps = [&](std::size_t n) {
    return tracer.process().await([&](const std::string& out, const std::string&) {
      std::size_t found = 0;
      for (auto at = out.find("\"type\":\"dump\""); at != out.npos;
           at = out.find("\"type\":\"dump\"", at + 1))
        found++;
      return found >= n;
    });
  };
  tracer.process().signal(SIGUSR2);
  ASSERT_TRUE(dumps(1));
  workload.release();
  auto truth = workload.truth();
  tracer.process().signal(SIGUSR2);
  ASSERT_TRUE(dumps(2));
  tracer.process().signal(SIGUSR2);
  ASSERT_TRUE(dumps(3));
  auto report = tracer.stop();
  auto all = of_type(report, "dump");
  ASSERT_EQ(all.size(), 3u) << "none at the end, which was not asked for";
  EXPECT_EQ(all[0]["calls"].u64(), 0u) << "the read that holds it began before";
  EXPECT_GE(all[1]["calls"].u64(), truth["calls"].u64());
  EXPECT_EQ(all[2]["calls"].u64(), 1u) << "the read in which it lingers, nothing that was shown";
  workload.end_lingering();
}

TOOL_TEST(Traceloop, BadEndsOfProcesses) {
  require_tool("traceloop");
  Cgroup cgroup;
  Tracer tracer("traceloop", {"--json", "--trigger", "SIGSEGV,exit=3", cgroup.path()});
  run_in(cgroup, "exit 0");
  run_in(cgroup, "exit 4");
  run_in(cgroup, "kill -TERM $$");
  run_in(cgroup, "cat /no/such/file; exit 3");
  run_in(cgroup, "kill -SEGV $$");
  auto report = tracer.stop();
  auto dumps = of_type(report, "dump");
  ASSERT_EQ(dumps.size(), 2u);
  EXPECT_EQ(dumps[0]["reason"].str(), "exit status 3");
  EXPECT_EQ(dumps[0]["comm"].str(), "sh");
  EXPECT_EQ(dumps[0]["cgroup"].str(), cgroup.path());
  EXPECT_TRUE(contains(dumps[1]["reason"].str(), "killed by SIGSEGV"));
  auto kills = calls(report, "kill");
  ASSERT_EQ(kills.size(), 2u);
  EXPECT_EQ(kills[1]["arguments"]["sig"].u64(), static_cast<std::uint64_t>(SIGSEGV));
  auto missing = calls_on(report, {"/no/such/file"});
  ASSERT_EQ(missing.size(), 1u);
  EXPECT_EQ(missing[0]["error"].str(), "ENOENT");
}

TOOL_TEST(Traceloop, LackOfMemory) {
  require_tool("traceloop");
  Cgroup cgroup;
  auto parent = std::filesystem::path(cgroup.path()).parent_path().string();
  std::ofstream(parent + "/cgroup.subtree_control") << "+memory" << std::flush;
  std::ofstream limit(cgroup.path() + "/memory.max");
  limit << "30M" << std::flush;
  if (!limit) throw Skip("no memory controller for cgroups (version 2) here; guests have it");
  std::ofstream(cgroup.path() + "/memory.swap.max") << "0" << std::flush;
  Tracer tracer("traceloop", {"--json", "--trigger", "oom", cgroup.path()});
  run_in(cgroup, "tail /dev/zero");
  auto dumps = of_type(tracer.stop(), "dump");
  ASSERT_GE(dumps.size(), 1u);
  EXPECT_EQ(dumps[0]["reason"].str(), "killed for lack of memory (OOM)");
  EXPECT_EQ(dumps[0]["comm"].str(), "tail");
}

// A busy cgroup does not overwrite what a quiet one did.
TOOL_TEST(Traceloop, EachCgroupHasItsRecorder) {
  require_tool("traceloop");
  Cgroup quiet, busy;
  std::filesystem::create_directory(busy.path() + "/below");
  {
    Tracer tracer("traceloop",
                  {"--json", "--dump-on-exit", "-s", "256", "-c", quiet.path(), busy.path()});
    run_in(quiet, "test -e /quiet");
    run_in(busy, "i=0; while [ $i -lt 3000 ]; do test -e /busy; i=$((i+1)); done", "/below");
    auto report = tracer.stop();
    auto dumps = of_type(report, "dump");
    ASSERT_EQ(dumps.size(), 2u);
    for (auto& dump : dumps)
      EXPECT_EQ(dump["overwritten"].u64() > 0, dump["cgroup"].str() == busy.path());
    std::size_t seen = 0;
    for (auto& call : calls_on(report, {"/quiet", "/busy"})) {
      bool of_quiet = call["arguments"]["filename"].str() == "/quiet";
      seen += of_quiet;
      EXPECT_EQ(call["cgroup"].str() == quiet.path(), of_quiet);
    }
    EXPECT_EQ(seen, 1u);
  }
  Tracer tracer("traceloop", {"--json", "--dump-on-exit", "-r", busy.path()});
  run_in(busy, "test -e /above");
  run_in(busy, "test -e /under", "/below");
  auto report = tracer.stop();
  auto under = calls_on(report, {"/under"});
  ASSERT_EQ(under.size(), 1u);
  EXPECT_EQ(under[0]["cgroup"].str(), busy.path() + "/below");
  EXPECT_EQ(of_type(report, "dump").size(), 2u);
  std::filesystem::remove(busy.path() + "/below");
}

// Without a word on when, calls are shown as they come.
TOOL_TEST(Traceloop, AsTheyCome) {
  require_tool("traceloop");
  Workload workload("syscalls", {"--restarts", "0"}, kLinger);
  Tracer tracer("traceloop", {"-e", "getppid,unlinkat", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  EXPECT_TRUE(tracer.process().await([&](const std::string& out, const std::string&) {
    return contains(
        out,
        "unlinkat(dfd=AT_FDCWD, pathname=\"/no/such/directory\", flag=AT_REMOVEDIR) = -1 "
        "ENOENT (No such file or directory) <");
  }));
  auto out = tracer.stop_text();
  EXPECT_EQ(std::count(out.begin(), out.end(), '\n'),
            static_cast<std::ptrdiff_t>(truth["calls"].u64() + truth["failed"].u64()))
      << out;
  workload.end_lingering();
}

/// Names of constants in the arguments of each call to one of these, in one order.
Strings constants(const std::string& output, const std::set<std::string>& names) {
  static const std::regex call(R"((?:^|\s)([a-z_0-9]+)\((.*))");
  static const std::regex word(R"([A-Z][A-Z0-9]*_[A-Z0-9_]+|SIG[A-Z]+)");
  static const std::regex text(R"("(\\.|[^"\\])*")");
  Strings all;
  std::istringstream lines(output);
  for (std::string line; std::getline(lines, line);) {
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
  std::sort(all.begin(), all.end());
  return all;
}

// Flags and constants of the same programs.
TOOL_TEST(Traceloop, ConstantsAsStraceNamesThem) {
  require_tool("traceloop");
  const std::set<std::string> names{"open",  "openat",     "mmap",    "mprotect", "socket",
                                    "clone", "setsockopt", "fcntl",   "unlinkat", "pipe2",
                                    "lseek", "access",     "shutdown"};
  std::set<std::string> seen;
  for (auto& command :
       std::vector<Strings>{{workload_path("syscalls"), "--signals", "0", "--restarts", "0"},
                            {workload_path("tcp"), "--sessions", "2"},
                            {"sh", "-c", "echo > /dev/null; exec 7<&0 2>&7"}}) {
    Strings other{"strace", "-f", "--"};
    other.insert(other.end(), command.begin(), command.end());
    Result theirs;
    try {
      theirs = run(other);
    } catch (const std::exception& e) {
      throw Skip(std::string("strace: ") + e.what());
    }
    Strings own{tool_path("traceloop"), "--dump-on-exit", "--"};
    own.insert(own.end(), command.begin(), command.end());
    auto ours = run(own);
    ASSERT_EQ(ours.status, 0) << ours.err;
    auto expected = constants(theirs.err, names);
    EXPECT_EQ(constants(ours.out, names), expected);
    for (auto& line : expected)
      if (contains(line, " ")) seen.insert(line.substr(0, line.find(' ')));
  }
  EXPECT_GE(seen.size(), 5u) << ::testing::PrintToString(seen);
}

TOOL_TEST(Traceloop, IntoAFile) {
  require_tool("traceloop");
  auto path = std::filesystem::temp_directory_path() / ("traceloop." + std::to_string(getpid()));
  auto result =
      run({tool_path("traceloop"), "--dump-on-exit", "--csv", "-o", path.string(), "--", "true"});
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.out, "");
  auto text = slurp(path.string());
  EXPECT_TRUE(text.starts_with("time,monotonic_ns,cgroup,cpu,pid,tid,comm,syscall,abi,arguments,"))
      << text;
  EXPECT_TRUE(contains(text, ",execve,")) << text;
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  EXPECT_EQ(st.st_mode & 0777, 0600u) << "what was recorded is its owner's";
  std::filesystem::remove(path);
  auto refused = run({tool_path("traceloop"), "-o", "/no/such/directory/file", "--", "true"});
  EXPECT_EQ(refused.status, 1);
  EXPECT_TRUE(contains(refused.err, "No such file or directory")) << refused.err;
}

TOOL_TEST(Traceloop, WrongWords) {
  require_tool("traceloop");
  for (auto& words : std::vector<Strings>{{"--trigger", "sometimes"},
                                          {"--trigger", "exit=256"},
                                          {"--trigger", ""},
                                          {"--dump-signal", "KILL"},
                                          {"--size", "5"},
                                          {"--size", "99999999"},
                                          {"-e", "no_such_call"},
                                          {"/no/such/cgroup"},
                                          {"-o", ""}}) {
    Strings command{tool_path("traceloop")};
    command.insert(command.end(), words.begin(), words.end());
    auto result = run(command);
    EXPECT_EQ(result.status, 2) << words[0] << ' ' << result.err;
    EXPECT_TRUE(contains(result.err, "traceloop: ")) << result.err;
  }
}

const DeclareTests kTraceloop{{
    .name = "traceloop",
    .reports = {{ReportKind::recorder, {"--dump-on-exit"}}},
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
    .long_run = {{.arguments = "--dump-on-exit"}},
}};

}  // namespace
}  // namespace coretap::tooltest
