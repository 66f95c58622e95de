// Tools with the capabilities they need instead of root's, and without one of them. For those kept
// during tracing see life_test.cpp.
#include <linux/capability.h>
#include <linux/magic.h>
#include <linux/perf_event.h>
#include <sys/statfs.h>

#include "harness.hpp"
#include "rights.hpp"

namespace coretap::tooltest {
namespace {

bool have(int capability) { return capabilities_of(::getpid(), "CapPrm") >> capability & 1; }

/// Asked of the kernel without coretap's code: a probe on a function of this program.
bool probes_need_admin() {
  auto type = slurp("/sys/bus/event_source/devices/uprobe/type");
  if (type.empty()) return false;
  auto probe = [type = std::stoul(type)] {
    perf_event_attr attr{};
    attr.size = sizeof attr;
    attr.type = static_cast<__u32>(type);
    attr.uprobe_path = reinterpret_cast<__u64>("/proc/self/exe");
    auto fd = ::syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
    ::_exit(fd < 0 && errno == EACCES ? 0 : 1);
  };
  auto give_up = as_nobody({CAP_PERFMON});
  return run({"true"}, [&] {
           give_up();
           probe();
         }).status == 0;
}

/// Whether this machine requires the capability at all.
bool is_asked_here(const Asked& asked) {
  auto right = asked.number;
  if (right == CAP_SYS_RESOURCE) return slurp("/proc/sys/kernel/osrelease").starts_with("5.10");
  if (right == CAP_SYS_ADMIN && asked.probes &&
      contains(slurp("/sys/kernel/btf/vmlinux"), "BPF_TRACE_KPROBE_SESSION"))
    return false;  // since 6.10 they need no perf events
  if (right == CAP_SYS_ADMIN)
    return std::stoi(slurp("/proc/sys/kernel/perf_event_paranoid")) > 2 ||
           (asked.probes && probes_need_admin());
  struct stat tracefs {
  }, id{};
  if (right == CAP_DAC_READ_SEARCH && ::stat("/sys/kernel/tracing", &tracefs) == 0 &&
      ::stat("/sys/kernel/tracing/events/sched/sched_switch/id", &id) == 0)
    return !(tracefs.st_mode & S_IXOTH) || !(id.st_mode & S_IROTH);
  return true;
}

/// All capabilities that it needs on this machine and the test has, except one.
std::vector<int> asked_numbers(const std::string& tool, int except = -1) {
  std::vector<int> numbers;
  for (auto& right : asked_by(tool))
    if (right.number != except && have(right.number) && is_asked_here(right))
      numbers.push_back(right.number);
  return numbers;
}

/// Without tracefs only CAP_SYS_ADMIN helps, to mount it.
void require_tracefs(const std::string& tool) {
  struct statfs fs {};
  bool mounted = ::statfs("/sys/kernel/tracing", &fs) == 0 && fs.f_type == TRACEFS_MAGIC;
  for (auto& right : asked_by(tool))
    if (right.number == CAP_DAC_READ_SEARCH && right.always && !mounted)
      throw Skip("tracefs is not mounted here");
}

Strings briefly(const std::string& tool) {
  return tool + " --json --duration 0.3" +
         (has_option(tool, "--dump-on-exit") ? " --dump-on-exit" : "");
}

/// Whether stacks of a workload have names with this part, without a capability (-1: with all).
void expect_names(bool named, int without, const std::string& stacks, std::string_view part,
                  const Strings& workload) {
  SCOPED_TRACE(named);
  Scene scene(workload, {});
  scene.trace("offcputime --json -p {pid} " + stacks,
              {.in_child = as_nobody(asked_numbers("offcputime", without))});
  auto seen = scene.finish();
  auto lines = seen.report().of_process(seen.pid);
  EXPECT_EQ(!lines_with_frame(lines, stacks == "-U" ? "user_stack" : "kernel_stack", part).empty(),
            named)
      << seen.err[0];
}

/// One of the tools that need the same, or each.
Strings examined() {
  Strings tools;
  std::set<std::vector<Asked>> classes;
  for (auto& name : tool_names())
    if (with_all_tools() || (!expected_missing(name) && classes.insert(asked_by(name)).second))
      tools.push_back(name);
  return tools;
}

TOOL_SUITE(Rights, (examined()));

void require_giving(const Result& result) {
  if (result.status >= 126) throw Skip("cannot give up rights here: " + result.err);
}

TOOL_TEST_P(Rights, AreEnough, tool) {
  require_tool(tool);
  require_tracefs(tool);
  auto result = result_of(briefly(tool), as_nobody(asked_numbers(tool)));
  require_giving(result);
  // Tools that use tracepoints only as a fallback.
  if (result.status == 3 && contains(result.err, "tracefs is not mounted"))
    throw Skip("tracefs is not mounted here");
  // Other tests' programs may take locks in orders that can lead to a deadlock.
  const bool found = result.status == 1 && tool == "deadlock";
  ASSERT_TRUE(result.status == 0 || found) << result.status << ": " << result.err;
  auto report = parse_report(result.out, result.err);
  EXPECT_EQ(report.header["hooks"].items().empty(), !has_kernel_program(tool));
}

TOOL_TEST_P(Rights, AreAllNeeded, tool) {
  require_tool(tool);
  require_tracefs(tool);
  for (auto& right : asked_by(tool)) {
    if (!right.always || !have(right.number) || !is_asked_here(right)) continue;
    SCOPED_TRACE("without " + right.name);
    // CAP_SYS_ADMIN includes those that were split off from it.
    auto numbers = asked_numbers(tool, right.number);
    if (right.number == CAP_BPF || right.number == CAP_PERFMON) std::erase(numbers, CAP_SYS_ADMIN);
    auto result = result_of(briefly(tool), as_nobody(numbers));
    require_giving(result);
    // The maps of some tools are so small that every user may lock that much.
    if (right.number == CAP_SYS_RESOURCE && result.status == 0) continue;
    EXPECT_EQ(result.status, 3) << result.err;
    EXPECT_TRUE(contains(result.err, right.name)) << result.err;
    EXPECT_TRUE(safe_for_terminals(result.err));
  }
}

// Symbols of root's process for an ordinary user with the capabilities. Its file has no path that
// every user could read.
TOOL_TEST(RightsToNames, OfUserFunctions) {
#ifdef __x86_64__
  const Strings workload("unwind --end sleep --ms 300 --memory");
#else
  const Strings workload("sleeper --sleeps 30");
#endif
  expect_names(true, -1, "-U", "main", workload);
  expect_names(false, CAP_SYS_PTRACE, "-U", "main", workload);
}

TOOL_TEST(RightsToNames, OfKernelFunctions) {
  std::optional<Setting> restricted;
  if (in_guest()) restricted.emplace("/proc/sys/kernel/kptr_restrict", "1");
  if (!slurp("/proc/sys/kernel/kptr_restrict").starts_with("1"))
    throw Skip("kernel.kptr_restrict is not 1: CAP_SYSLOG makes no difference");
  expect_names(true, -1, "-K", "nanosleep", "sleeper --sleeps 20");
  expect_names(false, CAP_SYSLOG, "-K", "nanosleep", "sleeper --sleeps 20");
}

}  // namespace
}  // namespace coretap::tooltest
