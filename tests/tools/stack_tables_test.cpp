// Functions, groups and call trees of tools that sum up stacks: a property of the library, shown by
// one tool each. Truth: workloads that count themselves, and the CPU time that the kernel has.
#include <fmt/format.h>

#include "on_terminal.hpp"

namespace coretap::tooltest {
namespace {

Json only(const Report& report, const char* key, const std::string& value) {
  for (auto& line : report.body)
    if (line.has(key) && line[key].is_string() && line[key].str() == value) return line;
  ADD_FAILURE() << "no " << key << " " << value << "\n" << report.err;
  return report.header;
}

TOOL_TEST(StackTables, FunctionsAndCallers) {
  const std::string with = " --json -F 499 -U -p {pid}";
  auto seen =
      observe_all({"profile --functions" + with, "profile --callees-of workload_spin" + with,
                   "profile --callers-of workload_spin" + with, "profile" + with},
                  "sleeper --sleeps 1 --spin 800");
  auto stacks = seen.report(3);
  auto of_spin = static_cast<double>(sum_with_frame(stacks.body, "user_stack", "workload_spin"));
  ASSERT_GT(of_spin, 100);
  auto row = only(seen.report(0), "function", "workload_spin");
  EXPECT_EQ(row["object"].str(), "sleeper");
  EXPECT_FALSE(row["in_kernel"].boolean());
  // Other clocks, on the same CPU at other moments.
  EXPECT_NEAR(static_cast<double>(row["total"].u64()), of_spin, 0.1 * of_spin);
  EXPECT_LE(row["self"].u64(), row["total"].u64());
  auto main = only(seen.report(0), "function", "main");
  EXPECT_GE(main["total"].u64(), row["total"].u64());
  EXPECT_LT(main["self"].u64(), main["total"].u64() / 10);

  for (std::size_t i : {1U, 2U}) {
    auto tree = seen.report(i);
    ASSERT_FALSE(tree.body.empty()) << tree.err;
    expect_fields(tree.body.front(), {{"name", "workload_spin"}, {"level", 0}, {"kind", "user"}});
    EXPECT_NEAR(static_cast<double>(tree.body.front()["total"].u64()), of_spin, 0.1 * of_spin);
    auto main_calls = lines_where(tree, [](auto& line) { return line["name"].str() == "main"; });
    EXPECT_EQ(main_calls.empty(), i == 1) << "callees have no callers";
  }
}

TOOL_TEST(StackTables, GroupsIncludeProcessesThatHaveEnded) {
  Cgroup cgroup("-stack-groups");
  auto name = cgroup.path().substr(cgroup.path().rfind('/'));
  Tracer by_cgroup("offcputime", "--json --by cgroup"), by_comm("offcputime", "--json --by comm"),
      by_pid("stackcount", "--json --by pid t:syscalls:sys_enter_getppid"),
      wakers("offwaketime", "--folded --by cgroup");
  std::string calls_and_pid;
  {
    Workload calls("calls", "--calls 20 --sleep-us 20000",
                   {.in_child = [&] { cgroup.add(::getpid()); }});
    calls_and_pid = fmt::format("calls ({})", calls.pid());
    calls.release();
    calls.truth();
  }
  auto report = by_cgroup.stop();
  std::uint64_t blocked = 0;
  for (auto& line : report.body)
    if (line["group"].str().ends_with(name)) blocked += line["total_ns"].u64();
  EXPECT_GE(blocked, 20 * 20'000'000U) << report.err;
  EXPECT_GE(only(by_comm.stop(), "group", "calls")["total_ns"].u64(), 20 * 20'000'000U);
  EXPECT_EQ(only(by_pid.stop(), "group", calls_and_pid)["total"].u64(), 20u);
  auto& process = wakers.process();
  process.signal(SIGINT);
  EXPECT_EQ(process.wait(soon()), 0) << process.err();
  EXPECT_TRUE(contains(process.out(), name + ";")) << process.out().substr(0, 2000);
}

// libc makes the call for the program.
TOOL_TEST(StackTables, TheCallerOutsideLibc) {
  Workload calls("calls", "--calls 60", kLinger);
  const auto with = " -U --json -p " + calls.id() + " t:syscalls:sys_enter_getppid";
  Tracer by_object("stackcount", "--by object" + with),
      by_caller("stackcount", "--by caller" + with);
  calls.release();
  calls.truth();
  auto objects = by_object.stop(), callers = by_caller.stop();
  EXPECT_EQ(only(callers, "group", "calls")["total"].u64(), 60u) << callers.err;
  ASSERT_EQ(objects.body.size(), 1u);
  expect_fields(objects.body[0], {{"total", 60}});
  expect_contains(objects.body[0]["group"].str(), {"libc"});
}

TOOL_TEST(StackTables, IntervalsAddUp) {
  Workload calls("calls", "--calls 60 --sleep-us 20000", kLinger);
  Tracer tracer("stackcount",
                Strings{"--json", "--functions", "-i", "0.3", "-p", calls.id(), "sys_getppid"});
  calls.release();
  calls.truth();
  auto report = tracer.stop();
  std::uint64_t total = 0, rows = 0;
  for (auto& line : report.body)
    if (line["function"].str() == "main") total += line["total"].u64(), rows++;
  EXPECT_EQ(total, 60u) << report.err;
  EXPECT_GE(rows, 3u);
}

TOOL_TEST(StackTables, Screen) {
  Workload spins("sleeper", "--sleeps 1 --spin 20000", kLinger);
  spins.release();
  OnTerminal top("profile", 100, 12, {"--screen", "-i", "0.3", "-F", "199", "-p", spins.id()});
  EXPECT_TRUE(contains(top.read_until("workload_spin"), "SELF"));
  top.press("s");
  top.read_until("main");
  top.press("p");
  top.read_until("[paused]");
  top.quit();
  EXPECT_TRUE(top.restored());
}

TOOL_TEST(StackTables, GraphsAndWrongOptions) {
  auto dot = output_of("profile --dot - --functions -F 199 0.5");
  expect_contains(dot, {"digraph {", "}\n", "FUNCTION"});
  for (auto* words : {"--functions --tree", "--functions --folded", "--callers-of a --functions",
                      "--svg x.svg --interval 1", "--dot x.dot --screen", "--screen --json",
                      "--by comm,pid", "--by uid"})
    expect_refused("profile " + std::string(words), {"--"}, 2);
  expect_refused("faults --processes --functions", {"--functions"}, 2);
}

}  // namespace
}  // namespace coretap::tooltest
