// syscount against a process that makes a known number of calls.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

bool of_32_bits(const Json& row) {
  auto abi = row["abi"].str();
  return abi == "i386" || abi == "arm";
}

std::uint64_t sum_of(const Report& report, const std::string& call, const char* key = "count") {
  std::uint64_t sum = 0;
  for (auto& row : report.body)
    if (row["syscall"].str() == call && !of_32_bits(row)) sum += row[key].u64();
  return sum;
}
std::uint64_t other_calls(const Report& report, const std::set<std::string>& known) {
  std::uint64_t sum = 0;
  for (auto& row : report.body)
    if (!known.contains(row["syscall"].str())) sum += row["count"].u64();
  return sum;
}

/// Many tools at a time, each with its options, on what one workload does until it says its truth.
struct Observed {
  std::vector<Report> reports;
  Json truth;
};
Observed observe(const std::vector<Strings>& all, const Strings& arguments = {}) {
  require_tool("syscount");
  Workload workload("syscalls", arguments, kLinger);
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto options : all) {
    options.insert(options.begin(), {"--json", "--strict"});
    if (std::find(options.begin(), options.end(), "--ppid") == options.end())
      options.insert(options.end(), {"-p", workload.id()});
    else
      options.push_back(workload.id());
    tracers.push_back(std::make_unique<Tracer>("syscount", options));
  }
  workload.release();
  auto truth = workload.truth();
  Observed seen{.reports = {}, .truth = truth};
  for (auto& tracer : tracers) seen.reports.push_back(tracer->stop());
  return seen;
}

TOOL_TEST(Syscount, CountsAreExact) {
  auto seen = observe({{}});
  auto& report = seen.reports[0];
  EXPECT_EQ(sum_of(report, "getppid"), seen.truth["calls"].u64());
  EXPECT_EQ(sum_of(report, "unlinkat"), seen.truth["failed"].u64());
  EXPECT_EQ(sum_of(report, "fchdir"), seen.truth["bad_descriptors"].u64());
#ifdef __aarch64__
  constexpr std::uint64_t kAlarms = 1;  // the workload's alarm(), a call of its own elsewhere
#else
  constexpr std::uint64_t kAlarms = 0;
#endif
  EXPECT_EQ(sum_of(report, "setitimer"), 2 + kAlarms);
  // Once each, although children leave the call as well and stops interrupt it.
  EXPECT_EQ(sum_of(report, "clone"), seen.truth["forks"].u64() + seen.truth["stops"].u64());
  EXPECT_EQ(sum_of(report, "clock_nanosleep"), seen.truth["sleeps"].u64());
  EXPECT_EQ(sum_of(report, "restart_syscall"), 0u);
  // And the one that it was held by.
  EXPECT_EQ(sum_of(report, "read"), seen.truth["interrupted"].u64() + 1);
  EXPECT_GE(sum_of(report, "rt_sigreturn"), seen.truth["interrupted"].u64());
  for (std::size_t i = 1; i < report.body.size(); i++)
    EXPECT_GE(report.body[i - 1]["count"].u64(), report.body[i]["count"].u64()) << "not sorted";
  EXPECT_FALSE(report.body[0].has("pid"));
  EXPECT_FALSE(report.body[0].has("total_ns"));
}

TOOL_TEST(Syscount, Errors) {
  auto seen = observe({{"-x"},
                       {"-e", "ENOENT"},
                       {"-e", "9"},
                       {"--errno", "eintr"},
                       {"-L", "-e", "EINTR"},
                       {"-x", "-P"}});
  auto failed = seen.truth["failed"].u64(), bad = seen.truth["bad_descriptors"].u64(),
       interrupted = seen.truth["interrupted"].u64();
  auto& all = seen.reports[0];
  EXPECT_EQ(sum_of(all, "unlinkat"), failed);
  EXPECT_EQ(sum_of(all, "fchdir"), bad);
  EXPECT_EQ(sum_of(all, "read"), interrupted);
  EXPECT_EQ(other_calls(all, {"unlinkat", "fchdir", "read"}), 0u);
  EXPECT_EQ(sum_of(seen.reports[1], "unlinkat"), failed);
  EXPECT_EQ(seen.reports[1].sum("count"), failed);
  EXPECT_EQ(sum_of(seen.reports[2], "fchdir"), bad);
  EXPECT_EQ(seen.reports[2].sum("count"), bad);
  EXPECT_EQ(sum_of(seen.reports[3], "read"), interrupted);
  EXPECT_EQ(seen.reports[3].sum("count"), interrupted);
  EXPECT_EQ(sum_of(seen.reports[4], "read"), interrupted);
  EXPECT_EQ(seen.reports[4].sum("count"), interrupted);
  EXPECT_EQ(seen.reports[5].sum("count"), failed + bad + interrupted);
}

TOOL_TEST(Syscount, Latency) {
  auto seen = observe({{"-L"}, {"-L", "-P"}});
  auto& report = seen.reports[0];
  auto slept = sum_of(report, "clock_nanosleep", "total_ns");
  EXPECT_EQ(sum_of(report, "clock_nanosleep"), seen.truth["sleeps"].u64());
  EXPECT_GE(slept, seen.truth["asked_ns"].u64());
  EXPECT_LE(slept, seen.truth["slept_ns"].u64());
  EXPECT_EQ(sum_of(report, "getppid"), seen.truth["calls"].u64());
  // The one that it was held by began before.
  EXPECT_EQ(sum_of(report, "read"), seen.truth["interrupted"].u64());
  EXPECT_EQ(sum_of(report, "clone"), seen.truth["forks"].u64() + seen.truth["stops"].u64());
  for (std::size_t i = 1; i < report.body.size(); i++)
    EXPECT_GE(report.body[i - 1]["total_ns"].u64(), report.body[i]["total_ns"].u64());
  auto& process = seen.reports[1];
  ASSERT_EQ(process.body.size(), 1u);
  EXPECT_EQ(process.sum("count"), report.sum("count"));
  EXPECT_GE(process.sum("total_ns"), seen.truth["asked_ns"].u64());
}

TOOL_TEST(Syscount, ByProcess) {
  auto seen = observe({{"-P"}, {}}, {"--comm", "sc-workload"});
  auto& report = seen.reports[0];
  ASSERT_EQ(report.body.size(), 1u);
  EXPECT_EQ(report.body[0]["pid"].u64(), seen.truth["pid"].u64());
  EXPECT_EQ(report.body[0]["comm"].str(), "sc-workload");
  EXPECT_FALSE(report.body[0].has("syscall"));
  EXPECT_EQ(report.sum("count"), seen.reports[1].sum("count"));
}

TOOL_TEST(Syscount, CallsByName) {
  auto seen = observe({{"--syscall", "getppid,fchdir"}, {"-L", "--syscall", "clock_nanosleep"}});
  auto& counts = seen.reports[0];
  EXPECT_EQ(sum_of(counts, "getppid"), seen.truth["calls"].u64());
  EXPECT_EQ(sum_of(counts, "fchdir"), seen.truth["bad_descriptors"].u64());
  EXPECT_EQ(counts.body.size(), 2u);
  auto& timed = seen.reports[1];
  EXPECT_EQ(timed.body.size(), 1u);
  EXPECT_EQ(sum_of(timed, "clock_nanosleep"), seen.truth["sleeps"].u64());
  EXPECT_GE(timed.sum("total_ns"), seen.truth["asked_ns"].u64());
}

TOOL_TEST(Syscount, TableOf32Bits) {
  auto seen = observe({{}, {"--syscall", "getppid"}}, {"--compat"});
  for (auto& report : seen.reports) {
    EXPECT_EQ(sum_of(report, "getppid"), seen.truth["calls"].u64());
    std::uint64_t other = 0;
    for (auto& row : report.body)
      if (of_32_bits(row)) {
        EXPECT_EQ(row["syscall"].str(), "getppid");
        other += row["count"].u64();
      }
    EXPECT_EQ(other, seen.truth["calls"].u64());
  }
}

TOOL_TEST(Syscount, Filters) {
  require_tool("syscount");
  Cgroup cgroup;
  Workload wanted("syscalls", {"--comm", "sc-wanted"}, kLinger);
  Workload other("syscalls", {}, kLinger);
  cgroup.add(wanted.pid());
  auto above = std::filesystem::path(cgroup.path()).parent_path().string();
  std::vector<Strings> filters{{"-p", wanted.id()},         {"-t", wanted.id()},
                               {"--comm", "sc-wanted"},     {"-c", cgroup.path()},
                               {"-L", "-c", cgroup.path()}, {"-c", above, "--comm", "sc-wanted"}};
  std::vector<std::unique_ptr<Tracer>> tracers;
  for (auto filter : filters) {
    filter.insert(filter.begin(), {"--json", "--strict"});
    tracers.push_back(std::make_unique<Tracer>("syscount", filter));
  }
  Tracer children("syscount", {"--json", "--ppid", wanted.id()});
  Tracer nobody("syscount", {"--json", "-u", "54321"});
  wanted.release();
  other.release();
  auto truth = wanted.truth();
  other.truth();
  for (std::size_t i = 0; i < filters.size(); i++) {
    SCOPED_TRACE(filters[i][0]);
    EXPECT_EQ(sum_of(tracers[i]->stop(), "unlinkat"), truth["failed"].u64());
  }
  // What its children do: they stop it and let it go on.
  auto of_children = children.stop();
  EXPECT_EQ(sum_of(of_children, "kill"), 2 * truth["stops"].u64());
  EXPECT_EQ(sum_of(of_children, "unlinkat"), 0u);
  EXPECT_EQ(nobody.stop().sum("count"), 0u);
}

TOOL_TEST(Syscount, IntervalsLoseAndDoubleNothing) {
  require_tool("syscount");
  Workload workload("syscalls", {"--rounds", "8", "--calls", "3000"}, kLinger);
  Tracer whole("syscount", {"--json", "--strict", "-p", workload.id(), "1000"});
  Tracer parts("syscount", {"--json", "--strict", "-p", workload.id(), "0.05"});
  Tracer timed("syscount", {"--json", "--strict", "-L", "-P", "-p", workload.id(), "0.05"});
  workload.release();
  auto truth = workload.truth();
  auto once = whole.stop(), often = parts.stop(), by_process = timed.stop();
  EXPECT_GT(often.body.size(), once.body.size());
  std::set<std::string> calls;
  for (auto& row : once.body) calls.insert(row["syscall"].str());
  for (auto& call : calls) EXPECT_EQ(sum_of(once, call), sum_of(often, call)) << call;
  EXPECT_EQ(sum_of(often, "getppid"), truth["calls"].u64());
  EXPECT_EQ(by_process.sum("count"), once.sum("count") - 1) << "but the one that it was held by";
}

TOOL_TEST(Syscount, TopAndText) {
  require_tool("syscount");
  Strings command{"--", workload_path("syscalls"), "--signals", "0", "--restarts", "0"};
  auto lines_with = [&](Strings options) {
    options.insert(options.begin(), tool_path("syscount"));
    options.insert(options.end(), command.begin(), command.end());
    auto result = run(options);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(safe_for_terminals(result.out));
    std::istringstream in(result.out);
    Strings lines;
    for (std::string line; std::getline(in, line);)
      if (!line.starts_with('{')) lines.push_back(line);
    return lines;
  };
  static const std::regex time(R"(\[\d\d:\d\d:\d\d\])"), counted(R"(\S+ +\d+)"),
      timed(R"(\S+ +\d+ +\d+\.\d{3})"), process(R"(\d+ +\S+ +\d+)");
  auto counts = lines_with({"-T", "2"});
  ASSERT_EQ(counts.size(), 5u);
  EXPECT_TRUE(std::regex_match(counts[0], time)) << counts[0];
  EXPECT_TRUE(std::regex_match(counts[1], std::regex("SYSCALL +COUNT"))) << counts[1];
  EXPECT_TRUE(counts[2].starts_with("getppid ")) << counts[2];
  EXPECT_TRUE(std::regex_match(counts[2], counted)) << counts[2];
  EXPECT_EQ(counts[4], "");
  EXPECT_EQ(lines_with({}).size(), 13u) << "ten rows";
  auto latency = lines_with({"-L", "-T", "1"});
  ASSERT_EQ(latency.size(), 4u);
  EXPECT_TRUE(std::regex_match(latency[1], std::regex(R"(SYSCALL +COUNT +TIME \(us\))")));
  EXPECT_TRUE(std::regex_match(latency[2], timed)) << latency[2];
  EXPECT_TRUE(latency[2].starts_with("clock_nanosleep ")) << latency[2];
  auto slow = lines_with({"-Lm", "-T", "1"});
  ASSERT_EQ(slow.size(), 4u);
  EXPECT_TRUE(std::regex_match(slow[1], std::regex(R"(SYSCALL +COUNT +TIME \(ms\))")));
  EXPECT_GE(std::stod(slow[2].substr(slow[2].rfind(' '))), 60);
  auto processes = lines_with({"-P"});
  EXPECT_TRUE(std::regex_match(processes[1], std::regex("PID +COMM +COUNT"))) << processes[1];
  EXPECT_TRUE(std::regex_match(processes[2], process)) << processes[2];
}

TOOL_TEST(Syscount, Csv) {
  require_tool("syscount");
  for (auto& [options, header] :
       std::map<Strings, std::string>{{{}, "time,syscall,abi,count\n"},
                                      {{"-L"}, "time,syscall,abi,count,total_ns\n"},
                                      {{"-P"}, "time,pid,comm,count\n"},
                                      {{"-P", "-L", "-m"}, "time,pid,comm,count,total_ns\n"}}) {
    Strings argv{tool_path("syscount"), "--csv", "--exit-status"};
    argv.insert(argv.end(), options.begin(), options.end());
    argv.insert(argv.end(), {"--", "true"});
    auto result = run(argv);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_TRUE(result.out.starts_with(header)) << result.out;
    EXPECT_GE(std::count(result.out.begin(), result.out.end(), '\n'), 2);
  }
}

TOOL_TEST(Syscount, ListAndNames) {
  auto list = run({tool_path("syscount"), "-l"});
  EXPECT_EQ(list.status, 0) << list.err;
  for (auto* call : {": read\n", ": clock_nanosleep\n", ": futex_waitv\n", ": mseal\n"})
    EXPECT_TRUE(contains(list.out, call)) << call;
  for (auto& wrong : std::vector<Strings>{{"--syscall", "no_such_call"},
                                          {"--syscall", "read,"},
                                          {"--syscall", ""},
                                          {"-e", "ENOSUCH"},
                                          {"-e", "0"},
                                          {"-e", "5000"},
                                          {"--ppid", "0"},
                                          {"--sort", "total_ns"}}) {
    SCOPED_TRACE(::testing::PrintToString(wrong));
    Strings argv{tool_path("syscount")};
    argv.insert(argv.end(), wrong.begin(), wrong.end());
    auto result = run(argv);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_EQ(result.out, "");
  }
}

// What another tracer says of the same program.
TOOL_TEST(Syscount, AsStraceCounts) {
  require_tool("syscount");
  Strings command{workload_path("syscalls"), "--signals", "0", "--restarts", "0"};
  Strings strace{"strace", "-f", "-c", "--"};
  strace.insert(strace.end(), command.begin(), command.end());
  Result other;
  try {
    other = run(strace);
  } catch (const std::exception& e) {
    throw Skip(std::string("strace: ") + e.what());
  }
  if (other.status) throw Skip("strace: " + other.err);
  Strings own{"--json", "--strict", "--"};
  own.insert(own.end(), command.begin(), command.end());
  Tracer tracer("syscount", own, {.attached = false});
  auto report = tracer.finish();
  std::istringstream lines(other.err);
  int compared = 0;
  for (std::string line; std::getline(lines, line);) {
    auto cells = words(line);
    if (cells.size() < 5 || cells.back() == "total" || cells.back() == "syscall") continue;
    if (cells[0].find_first_not_of("0123456789.") != std::string::npos) continue;
    // The tool's child, before it becomes the command, waits and unblocks signals; and exits
    // never end.
    if (std::set<std::string>{"read", "rt_sigprocmask", "rt_sigaction", "exit_group"}.contains(
            cells.back()))
      continue;
    EXPECT_EQ(sum_of(report, cells.back()), std::stoull(cells[3])) << line;
    compared++;
  }
  EXPECT_GE(compared, 8) << other.err;
}

const DeclareTests kSyscount{{
    .name = "syscount",
    .reports = {{ReportKind::aggregate}},
    .events = {"-P -L", "syscalls --signals 0 --restarts 0"},
    .stress = {.workload = "syscalls --calls {n} --restarts 0",
               .events = 500000,
               .options = "-P --syscall getppid",
               .shown = "count",
               .truth = "calls",
               .tiny = "--max-keys 1"},
    .long_run = {{.arguments = "-P -L 10"}},
}};

}  // namespace
}  // namespace coretap::tooltest
