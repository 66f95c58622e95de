// ksnoop against programs whose calls have known arguments and results.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "../harness.hpp"
#include "module_opens.hpp"

namespace coretap::tooltest {
namespace {

/// Of calls: clock_nanosleep(CLOCK_MONOTONIC, 0, {0, 2000000}, NULL), and of its arguments.
constexpr char kSleep[] = "sys_clock_nanosleep";

std::string of_sleep(const std::string& values) { return std::string(kSleep) + values; }

Report of_command(const Strings& words, const Strings& command) {
  require_tool("ksnoop");
  Strings all{tool_path("ksnoop"), "--json"};
  all.insert(all.end(), words.begin(), words.end());
  all.emplace_back("--");
  all.insert(all.end(), command.begin(), command.end());
  auto ran = run(all);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return parse_report(ran.out, ran.err);
}

/// The workload `calls` sleeps twice a round.
Report of_sleeps(const std::string& values, const Strings& options = {}) {
  auto words = options;
  words.push_back(of_sleep(values));
  return of_command(words, {workload_path("calls"), "--calls", "3", "--sleep-us", "2000"});
}

std::size_t with(const Report& report, const Strings& values) {
  return static_cast<std::size_t>(
      std::count_if(report.body.begin(), report.body.end(),
                    [&](auto& event) { return event["values"].strings() == values; }));
}

bool has_kprobes() {
  struct stat st {};
  return ::stat("/sys/bus/event_source/devices/kprobe/type", &st) == 0;
}

/// The function that opens files; newer kernels have another name for it.
std::string opener() {
  std::ifstream symbols("/proc/kallsyms");
  for (std::string address, kind, name, rest; symbols >> address >> kind >> name;) {
    if (name == "do_filp_open") return name;
    std::getline(symbols, rest);
  }
  return "do_file_open";
}

#define NEEDS_KPROBES \
  if (!has_kprobes()) GTEST_SKIP() << "no kprobes on this kernel: guests have them"

Result refused(const std::string& word) {
  return run({tool_path("ksnoop"), "--duration", "0.1", word});
}

TOOL_TEST(Ksnoop, ResultsOfCalls) {
  require_tool("ksnoop");
  Workload workload("probes", {"--calls", "20"}, kLinger);
  Tracer tracer("ksnoop", {"--json", "--strict", "-p", workload.id(), "sys_getppid(return)"});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  ASSERT_EQ(report.body.size(), truth["calls"].u64());
  for (auto& event : report.body) {
    EXPECT_EQ(event["target"].str(), "sys_getppid");
    EXPECT_EQ(event["values"].strings(), Strings{"return = " + std::to_string(getpid())});
    EXPECT_FALSE(event["latency_ns"].is_null());
    EXPECT_EQ(event["comm"].str(), "probes");
  }
}

TOOL_TEST(Ksnoop, EntriesAlone) {
  auto report = of_command({"sys_getppid()"}, {workload_path("probes"), "--calls", "20"});
  ASSERT_EQ(report.body.size(), 20U);
  for (auto& event : report.body) {
    EXPECT_TRUE(event["latency_ns"].is_null());
    EXPECT_EQ(event["values"].strings(), Strings{});
  }
}

TOOL_TEST(Ksnoop, StructsBehindPointers) {
  auto report = of_sleeps(
      "(arg1, (struct __kernel_timespec *)arg3, (struct __kernel_timespec *)arg4, return)");
  ASSERT_GE(report.body.size(), 3U);
  EXPECT_EQ(with(report, {"arg1 = 1",
                          "(struct __kernel_timespec *)arg3 = "
                          "(struct __kernel_timespec){.tv_nsec = 2000000}",
                          "(struct __kernel_timespec *)arg4 = NULL", "return = 0"}),
            report.body.size());
  for (auto& event : report.body) EXPECT_GE(event["latency_ns"].u64(), 2'000'000U);
}

TOOL_TEST(Ksnoop, FunctionsOfModulesWithTheirTypes) {
  require_tool("ksnoop");
  const ModuleOpens opens;
  const std::string name = kOpenOf9p;
  if (!opens.has_types) {
    auto whole = refused(name);
    EXPECT_EQ(whole.status, 3);
    EXPECT_TRUE(contains(whole.err, "no type information of module 9pnet")) << whole.err;
    return;
  }
  auto info = run({tool_path("ksnoop"), "info", name});
  EXPECT_EQ(info.out, "int p9_client_open(struct p9_fid *fid, int mode);\n") << info.err;
  auto report = of_command({name + "(fid->qid.path, *fid->clnt, return == 0)"}, opens.command());
  std::map<std::string, std::uint64_t> times;
  for (auto& event : report.body) {
    auto values = event["values"].strings();
    ASSERT_EQ(values.size(), 3U);
    times[values[0]]++;
    EXPECT_TRUE(contains(values[1], "(struct p9_client){")) << values[1];
    EXPECT_TRUE(contains(values[1], ".msize = " + opens.message_bytes)) << values[1];
    EXPECT_EQ(values[2], "return = 0");
  }
  EXPECT_EQ(opens.opened(times), 1U) << report.err;
}

TOOL_TEST(Ksnoop, MemoryThatIsNotThere) {
  auto report =
      of_sleeps("((struct __kernel_timespec *)1, ((struct __kernel_timespec *)1)->tv_sec)");
  ASSERT_GE(report.body.size(), 3U);
  EXPECT_EQ(with(report, {"(struct __kernel_timespec *)1 = (fault)",
                          "((struct __kernel_timespec *)1)->tv_sec = (fault)"}),
            report.body.size());
}

TOOL_TEST(Ksnoop, LargeStructsAreCut) {
  auto report = of_sleeps("((struct __kernel_timespec *)arg3)", {"-Z", "8"});
  ASSERT_GE(report.body.size(), 3U);
  EXPECT_EQ(with(report, {"(struct __kernel_timespec *)arg3 = (struct __kernel_timespec){...}"}),
            report.body.size());
  EXPECT_EQ(report.lost("truncated"), report.body.size());
  report = of_sleeps("((struct __kernel_timespec *)arg3)");
  EXPECT_EQ(report.lost("truncated"), 0U);
}

TOOL_TEST(Ksnoop, MembersOfTheTask) {
  auto report = of_command({"sys_getppid($task->tgid, $task->comm, $task->real_parent->tgid, "
                            "$task->group_leader == $task)"},
                           {workload_path("probes"), "--calls", "1"});
  ASSERT_EQ(report.body.size(), 1U);
  auto values = report.body[0]["values"].strings();
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values[0], "$task->tgid = " + std::to_string(report.body[0]["pid"].u64()));
  EXPECT_EQ(values[1], "$task->comm = \"probes\"");
  EXPECT_TRUE(contains(values[3], "(struct task_struct){")) << values[3];
  EXPECT_TRUE(contains(values[3], ", ...")) << "it is larger than what is copied";
}

TOOL_TEST(Ksnoop, ComparisonsDecide) {
  // Of 100 bytes in parts of 77 the second has 23.
  const char* script = "head -c 100 /dev/zero | dd bs=77 iflag=fullblock of=/dev/null 2>/dev/null";
  auto report = of_command({"sys_read(arg3 == 77, return == 23)"}, {"sh", "-c", script});
  ASSERT_EQ(report.body.size(), 1U) << report.err;
  EXPECT_EQ(report.body[0]["values"].strings(), (Strings{"arg3 = 77", "return = 23"}));
  EXPECT_GE(report.lost("filtered"), 2U);
  report = of_command({"sys_read(arg3 >= 77, arg3 <= 77, return)"}, {"sh", "-c", script});
  EXPECT_EQ(report.body.size(), 3U) << report.err;
}

// An error is below zero.
TOOL_TEST(Ksnoop, ResultsHaveSigns) {
  auto report = of_command({"sys_read(return < 0)"}, {"sh", "-c", "cat / 2>/dev/null; true"});
  EXPECT_EQ(with(report, {"return = -21"}), 1U) << report.err;
  EXPECT_EQ(report.body.size(), 1U) << report.err;
}

TOOL_TEST(Ksnoop, Tracepoints) {
  auto report = of_command({"t:sched:sched_process_exec", "t:sched:sched_process_exit(args->pid)"},
                           {"sh", "-c", "exec /bin/echo >/dev/null"});
  std::size_t found = 0;
  for (auto& event : report.body) {
    auto values = event["values"].strings();
    auto pid = std::to_string(event["pid"].u64());
    if (event["target"].str() == "sched:sched_process_exit") {
      EXPECT_EQ(values, Strings{"args->pid = " + pid});
    } else if (!values.empty() && values[0] == "filename = \"/bin/echo\"") {
      found++;
      EXPECT_EQ(values[1], "pid = " + pid);
    }
  }
  EXPECT_EQ(found, 1U) << report.err;
}

// Fields of its record are plain loads then.
TOOL_TEST(Ksnoop, OneTracepointAlone) {
  for (std::string list : {"", "(args->pid, args->prio > 0)"}) {
    auto report = of_command({"t:sched:sched_process_exit" + list}, {"true"});
    ASSERT_GE(report.body.size(), 1U) << report.err;
    auto values = report.body[0]["values"].strings();
    auto pid =
        (list.empty() ? "pid = " : "args->pid = ") + std::to_string(report.body[0]["pid"].u64());
    EXPECT_EQ(std::count(values.begin(), values.end(), pid), 1) << report.err;
  }
}

TOOL_TEST(Ksnoop, SeveralFunctions) {
  auto report = of_command({"trace", "sys_getppid(return)", of_sleep("(arg1)")},
                           {workload_path("calls"), "--calls", "1", "--sleep-us", "1000"});
  EXPECT_GE(with(report, {"arg1 = 1"}), 1U) << report.err;
}

TOOL_TEST(Ksnoop, EndsAfterSomeEvents) {
  auto report =
      of_command({"-M", "3", "sys_getppid"}, {workload_path("probes"), "--calls", "1000"});
  EXPECT_EQ(report.body.size(), 3U);
}

TOOL_TEST(Ksnoop, LinesOfText) {
  require_tool("ksnoop");
  EXPECT_EQ(header_of("ksnoop", {}), (Strings{"TIME", "CPU", "PID", "FUNCTION/ARGS"}));
  auto ran = run({tool_path("ksnoop"), of_sleep("((struct __kernel_timespec *)arg3, return)"), "--",
                  workload_path("calls"), "--calls", "1", "--sleep-us", "2000"});
  EXPECT_TRUE(contains(ran.out,
                       " sys_clock_nanosleep\n"
                       "        (struct __kernel_timespec *)arg3 = "
                       "(struct __kernel_timespec){\n"
                       "            .tv_nsec = 2000000,\n"
                       "        }\n"
                       "        return = 0\n"))
      << ran.out;
}

TOOL_TEST(Ksnoop, Declarations) {
  auto ran =
      run({tool_path("ksnoop"), "info", "vfs_fsync", "t:sched:sched_process_exit", "no_such"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_TRUE(contains(ran.out, "int vfs_fsync(struct file *file, int datasync);\n")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "sched_process_exit(struct task_struct *")) << ran.out;
  EXPECT_TRUE(contains(ran.out, "no_such is not in the kernel's type information")) << ran.out;
}

TOOL_TEST(Ksnoop, BadWords) {
  const std::pair<const char*, const char*> all[] = {
      {"sys_read(arg1", "expected ')' or ',' here\n  sys_read(arg1\n               ^"},
      {"sys_read(arg1) x", "expected the end here\n  sys_read(arg1) x\n                 ^"},
      {"sys_read(cuont)", "^"},
      {"sys_read(arg1->x)", "-> follows a pointer"},
      {"sys_read((struct fil *)arg1)", "struct fil"},
      {"sys_read(arg1, )", "expected a name, a number or '(' here"},
      {"t:sched:sched_switch(return)", "a tracepoint has no return"},
      {"r::sys_read", "the entry and the return are traced together"},
      {"vfs_*", "a pattern has no values of its own"},
      {"c:malloc(arg1)", "no function of the kernel"},
      {"u:c:setjmp", "no function of the kernel"},
      {"(arg1)", "expected the name of a function here"},
  };
  for (auto& [word, words] : all) {
    auto result = refused(word);
    EXPECT_EQ(result.status, 2) << word;
    EXPECT_TRUE(contains(result.err, words)) << word << ": " << result.err;
  }
  EXPECT_EQ(run({tool_path("ksnoop"), "-s", "sys_read"}).status, 2);
}

TOOL_TEST(Ksnoop, FunctionsThatCannotBeTraced) {
  require_tool("ksnoop");
  if (has_kprobes()) {
    EXPECT_TRUE(contains(refused("vfs_raed").err, "vfs_read")) << "the nearest name";
    return;
  }
  auto result = refused("vfs_read(count)");
  EXPECT_EQ(result.status, 3);
  EXPECT_TRUE(contains(result.err, "t:syscalls:sys_enter_read")) << result.err;
}

TOOL_TEST(Ksnoop, KernelFunctions) {
  NEEDS_KPROBES;
  TemporaryDirectory scratch;
  auto path = scratch.path() + "/known";
  std::ofstream(path) << std::string(100, 'x');
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  auto inode = std::to_string(st.st_ino);
  auto report = of_command(
      {"vfs_read(count == 77, file->f_inode->i_ino, (char *)file->f_path.dentry->d_name.name, "
       "file->f_path, *pos, return)"},
      {"dd", "if=" + path, "of=/dev/null", "bs=77"});
  ASSERT_EQ(report.body.size(), 3U) << report.err;
  const char *positions[] = {"0", "77", "100"}, *results[] = {"77", "23", "0"};
  for (std::size_t i = 0; i < 3; i++) {
    auto values = report.body[i]["values"].strings();
    ASSERT_EQ(values.size(), 6U);
    EXPECT_EQ(values[0], "count = 77");
    EXPECT_EQ(values[1], "file->f_inode->i_ino = " + inode);
    EXPECT_EQ(values[2], "(char *)file->f_path.dentry->d_name.name = \"known\"");
    EXPECT_TRUE(contains(values[3], "file->f_path = (struct path){.mnt = 0x")) << values[3];
    EXPECT_EQ(values[4], std::string("*pos = ") + positions[i]);
    EXPECT_EQ(values[5], std::string("return = ") + results[i]);
  }
  // The whole struct inode has the number, too.
  report = of_command({"vfs_read(count == 77, file->f_inode, return == 23)"},
                      {"dd", "if=" + path, "of=/dev/null", "bs=77"});
  ASSERT_EQ(report.body.size(), 1U) << report.err;
  auto values = report.body[0]["values"].strings();
  EXPECT_TRUE(contains(values[1], "(struct inode){.i_mode = " + std::to_string(st.st_mode) + ","));
  EXPECT_TRUE(contains(values[1], ".i_ino = " + inode + ",")) << values[1];
}

TOOL_TEST(Ksnoop, AllArgumentsOfKernelFunctions) {
  NEEDS_KPROBES;
  auto report = of_command({"vfs_read"}, {"sh", "-c", "cat / 2>/dev/null; true"});
  std::size_t errors = 0;
  for (auto& event : report.body) {
    auto values = event["values"].strings();
    ASSERT_EQ(values.size(), 5U);
    EXPECT_TRUE(values[0].starts_with("file = (struct file){")) << values[0];
    EXPECT_TRUE(values[2].starts_with("count = ")) << values[2];
    errors += values[4] == "return = -21";
  }
  EXPECT_EQ(errors, 1U) << report.err;
}

TOOL_TEST(Ksnoop, PointersThatAreErrors) {
  NEEDS_KPROBES;
  auto report = of_command({opener() + "(return)"}, {"sh", "-c", "cat /no/such 2>/dev/null; true"});
  EXPECT_GE(with(report, {"return = ERR_PTR(-2)"}), 1U) << report.err;
}

// Nested calls of one task keep their own values.
TOOL_TEST(Ksnoop, CallsWithinCalls) {
  NEEDS_KPROBES;
  auto report = of_command({opener() + "(arg1, return)", "vfs_open(file->f_flags, return)"},
                           {"sh", "-c", "cat /etc/hostname >/dev/null"});
  std::size_t inner = 0, outer = 0;
  for (auto& event : report.body) {
    auto values = event["values"].strings();
    ASSERT_EQ(values.size(), 2U);
    if (event["target"].str() == "vfs_open") {
      inner += values[1] == "return = 0";
    } else {
      EXPECT_TRUE(values[0].starts_with("arg1 = ")) << values[0];
      outer += values[1].starts_with("return = (struct file){");
    }
  }
  EXPECT_GE(outer, 1U);
  EXPECT_GE(inner, outer) << "overlay file systems open twice";
}

TOOL_TEST(Ksnoop, WrongNamesInKernelFunctions) {
  NEEDS_KPROBES;
  auto result = refused("vfs_read(cuont)");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "vfs_read(cuont)\n           ^")) << result.err;
  EXPECT_TRUE(contains(result.err, "count")) << result.err;
  EXPECT_TRUE(contains(refused("vfs_read(file->f_inod)").err, "f_inode"));
  EXPECT_TRUE(contains(refused("wake_up_new_task(return)").err, "void"));
}

const DeclareTests kKsnoop{{
    .name = "ksnoop",
    .events = {{"sys_getppid($comm, return)"}, {"probes", "--calls", "5"}},
    .stress = {.workload = "probes --calls {n}",
               .events = 100000,
               .options = "sys_getppid(return)",
               .truth = "calls",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = "sys_getppid(return)"}},
}};

}  // namespace
}  // namespace coretap::tooltest
