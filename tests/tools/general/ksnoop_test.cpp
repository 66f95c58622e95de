// ksnoop against programs whose calls have known arguments and results.
#include "module_opens.hpp"

namespace coretap::tooltest {
namespace {

Report snoop(const Strings& words, const Strings& command) {
  return of_command("ksnoop" + words, command);
}

std::size_t with_values(const Report& report, const Strings& values) {
  return static_cast<std::size_t>(std::ranges::count_if(
      report.body, [&](auto& event) { return event["values"].strings() == values; }));
}

/// The workload `calls` sleeps twice a round, by clock_nanosleep(CLOCK_MONOTONIC, 0, {0, 2000000},
/// NULL); traces its arguments.
Report of_sleeps(const std::string& values, const Strings& wanted, const Strings& options = {}) {
  auto report = snoop(options + Strings{"sys_clock_nanosleep" + values},
                      workload_path("calls") + " --calls 3 --sleep-us 2000");
  EXPECT_GE(report.body.size(), 3U);
  EXPECT_EQ(with_values(report, wanted), report.body.size());
  return report;
}

Strings shell(const std::string& script) { return {"sh", "-c", script}; }

/// The kernel function that opens files; newer kernels have another name for it.
std::string opener() {
  std::ifstream symbols("/proc/kallsyms");
  for (std::string address, kind, name, rest; symbols >> address >> kind >> name;) {
    if (name == "do_filp_open") return name;
    std::getline(symbols, rest);
  }
  return "do_file_open";
}

TOOL_TEST(Ksnoop, ResultsOfCalls) {
  auto seen = observe("ksnoop --json --strict -p {pid} sys_getppid(return)", "probes --calls 20");
  auto events = seen.report().body;
  ASSERT_EQ(events.size(), seen.truth["calls"].u64());
  for (auto& event : events) {
    expect_fields(event, {{"target", "sys_getppid"}, {"comm", "probes"}});
    EXPECT_EQ(event["values"].strings(), Strings{"return = " + std::to_string(getpid())});
    EXPECT_FALSE(event["latency_ns"].is_null());
  }
}

TOOL_TEST(Ksnoop, EntriesAlone) {
  auto report = snoop("trace sys_getppid()", probes() + " --calls 20");
  ASSERT_EQ(report.body.size(), 20U);
  EXPECT_EQ(with_values(report, {}), 20U);
  for (auto& event : report.body) EXPECT_TRUE(event["latency_ns"].is_null());
}

TOOL_TEST(Ksnoop, StructsBehindPointers) {
  auto report = of_sleeps(
      "(arg1, (struct __kernel_timespec *)arg3, (struct __kernel_timespec *)arg4, return)",
      {"arg1 = 1",
       "(struct __kernel_timespec *)arg3 = (struct __kernel_timespec){.tv_nsec = 2000000}",
       "(struct __kernel_timespec *)arg4 = NULL", "return = 0"});
  for (auto& event : report.body) EXPECT_GE(event["latency_ns"].u64(), 2'000'000U);
}

TOOL_TEST(Ksnoop, FunctionsOfModulesWithTheirTypes) {
  require_tool("ksnoop");
  const ModuleOpens opens;
  const std::string name = kOpenOf9p;
  if (!opens.has_types)
    return expect_refusals("ksnoop", {{name, "no type information of module 9pnet", 3}});
  auto info = run({tool_path("ksnoop"), "info", name});
  EXPECT_EQ(info.out, "int p9_client_open(struct p9_fid *fid, int mode);\n") << info.err;
  auto report = snoop(Strings{name + "(fid->qid.path, *fid->clnt, return == 0)"}, opens.command());
  std::map<std::string, std::uint64_t> times;
  for (auto& event : report.body) {
    auto values = event["values"].strings();
    ASSERT_EQ(values.size(), 3U);
    times[values[0]]++;
    expect_contains(values[1], {"(struct p9_client){", ".msize = " + opens.message_bytes});
    EXPECT_EQ(values[2], "return = 0");
  }
  EXPECT_EQ(opens.opened(times), 1U) << report.err;
}

TOOL_TEST(Ksnoop, LargeStructsAreCut) {
  const std::string shown = "(struct __kernel_timespec *)arg3 = (struct __kernel_timespec)";
  auto cut = of_sleeps("((struct __kernel_timespec *)arg3)", {shown + "{...}"}, "-Z 8");
  EXPECT_EQ(cut.lost("truncated"), cut.body.size());
  auto whole = of_sleeps("((struct __kernel_timespec *)arg3)", {shown + "{.tv_nsec = 2000000}"});
  EXPECT_EQ(whole.lost("truncated"), 0U);
}

TOOL_TEST(Ksnoop, MembersOfTheTask) {
  auto report = snoop(Strings{"sys_getppid($task->tgid, $task->comm, $task->real_parent->tgid, "
                              "$task->group_leader == $task)"},
                      probes() + " --calls 1");
  auto values = only(report.body)["values"].strings();
  ASSERT_EQ(values.size(), 4U);
  EXPECT_EQ(values[0], "$task->tgid = " + report.body[0]["pid"].text());
  EXPECT_EQ(values[1], "$task->comm = \"probes\"");
  // It is larger than the copied part.
  expect_contains(values[3], {"(struct task_struct){", ", ..."});
}

TOOL_TEST(Ksnoop, ComparisonsDecide) {
  // 100 bytes in parts of 77: the second part has 23.
  const auto script =
      shell("head -c 100 /dev/zero | dd bs=77 iflag=fullblock of=/dev/null 2>/dev/null");
  auto report = snoop(Strings{"sys_read(arg3 == 77, return == 23)"}, script);
  EXPECT_EQ(report.body.size(), 1U) << report.err;
  EXPECT_EQ(with_values(report, {"arg3 = 77", "return = 23"}), 1U);
  EXPECT_GE(report.lost("filtered"), 2U);
  report = snoop(Strings{"sys_read(arg3 >= 77, arg3 <= 77, return)"}, script);
  EXPECT_EQ(report.body.size(), 3U) << report.err;
}

// Error results are negative.
TOOL_TEST(Ksnoop, ResultsHaveSigns) {
  auto report = snoop(Strings{"sys_read(return < 0)"}, shell("cat / 2>/dev/null; true"));
  EXPECT_EQ(with_values(report, {"return = -21"}), 1U) << report.err;
  EXPECT_EQ(report.body.size(), 1U) << report.err;
}

TOOL_TEST(Ksnoop, Tracepoints) {
  auto report = snoop("t:sched:sched_process_exec t:sched:sched_process_exit(args->pid)",
                      shell("exec /bin/echo >/dev/null"));
  std::size_t found = 0;
  for (auto& event : report.body) {
    auto values = event["values"].strings();
    auto pid = event["pid"].text();
    if (event["target"].str() == "sched:sched_process_exit") {
      EXPECT_EQ(values, Strings{"args->pid = " + pid});
    } else if (!values.empty() && values[0] == "filename = \"/bin/echo\"") {
      found++;
      EXPECT_EQ(values[1], "pid = " + pid);
    }
  }
  EXPECT_EQ(found, 1U) << report.err;
}

// Fields of its record are then plain loads.
TOOL_TEST(Ksnoop, OneTracepointAlone) {
  for (std::string list : {"", "(args->pid, args->prio > 0)"}) {
    auto report = snoop(Strings{"t:sched:sched_process_exit" + list}, "true");
    ASSERT_GE(report.body.size(), 1U) << report.err;
    auto pid = (list.empty() ? "pid = " : "args->pid = ") + report.body[0]["pid"].text();
    EXPECT_EQ(std::ranges::count(report.body[0]["values"].strings(), pid), 1) << report.err;
  }
}

TOOL_TEST(Ksnoop, LinesOfText) {
  auto ran = run(Strings{tool_path("ksnoop"),
                         "sys_clock_nanosleep((struct __kernel_timespec *)arg3, return)", "--"} +
                 workload_path("calls") + "--calls 1 --sleep-us 2000");
  expect_contains(ran.out, {" sys_clock_nanosleep\n"
                            "        (struct __kernel_timespec *)arg3 = "
                            "(struct __kernel_timespec){\n"
                            "            .tv_nsec = 2000000,\n"
                            "        }\n"
                            "        return = 0\n"});
}

TOOL_TEST(Ksnoop, Declarations) {
  expect_contains(output_of("ksnoop info vfs_fsync t:sched:sched_process_exit no_such"),
                  {"int vfs_fsync(struct file *file, int datasync);\n",
                   "sched_process_exit(struct task_struct *",
                   "no_such is not in the kernel's type information"});
}

TOOL_TEST(Ksnoop, BadWords) {
  expect_refusals(
      "ksnoop",
      {{"sys_read(arg1", "expected ')' or ',' here\n  sys_read(arg1\n               ^"},
       {{"sys_read(arg1) x"}, "expected the end here\n  sys_read(arg1) x\n                 ^"},
       {"sys_read(cuont)", "^"},
       {"sys_read(arg1->x)", "-> follows a pointer"},
       {{"sys_read((struct fil *)arg1)"}, "struct fil"},
       {{"sys_read(arg1, )"}, "expected a name, a number or '(' here"},
       {"t:sched:sched_switch(return)", "a tracepoint has no return"},
       {"r::sys_read", "the entry and the return are traced together"},
       {"vfs_*", "a pattern has no values of its own"},
       {"c:malloc(arg1)", "no function of the kernel"},
       {"u:c:setjmp", "no function of the kernel"},
       {"(arg1)", "expected the name of a function here"},
       {"-s sys_read"}});
}

TOOL_TEST(Ksnoop, FunctionsThatCannotBeTraced) {
  require_tool("ksnoop");
  if (!has_kprobes()) return expect_refusals("ksnoop", {{"vfs_read(count)", "sys_read", 3}});
  auto result = run({tool_path("ksnoop"), "--duration", "0.1", "vfs_raed"});
  expect_contains(result.err, {"vfs_read"});  // the nearest name
}

TOOL_TEST(Ksnoop, KernelFunctions) {
  need_kprobes();
  TemporaryDirectory scratch;
  auto path = scratch.path() + "/known";
  std::ofstream(path) << std::string(100, 'x');
  struct stat st {};
  ASSERT_EQ(stat(path.c_str(), &st), 0);
  auto inode = std::to_string(st.st_ino);
  const auto copy = "dd of=/dev/null bs=77 if=" + path;
  auto report = snoop(
      Strings{
          "vfs_read(count == 77, file->f_inode->i_ino, (char *)file->f_path.dentry->d_name.name, "
          "file->f_path, *pos, return)"},
      copy);
  ASSERT_EQ(report.body.size(), 3U) << report.err;
  const char *positions[] = {"0", "77", "100"}, *results[] = {"77", "23", "0"};
  for (std::size_t i = 0; i < 3; i++) {
    auto values = report.body[i]["values"].strings();
    ASSERT_EQ(values.size(), 6U);
    expect_contains(values[3], {"file->f_path = (struct path){.mnt = 0x"});
    values.erase(values.begin() + 3);
    EXPECT_EQ(values, (Strings{"count = 77", "file->f_inode->i_ino = " + inode,
                               "(char *)file->f_path.dentry->d_name.name = \"known\"",
                               std::string("*pos = ") + positions[i],
                               std::string("return = ") + results[i]}));
  }
  // The whole struct inode contains the number, too.
  report = snoop(Strings{"vfs_read(count == 77, file->f_inode, return == 23)"}, copy);
  expect_contains(
      only(report.body)["values"].strings().at(1),
      {"(struct inode){.i_mode = " + std::to_string(st.st_mode) + ",", ".i_ino = " + inode + ","});
}

TOOL_TEST(Ksnoop, AllArgumentsOfKernelFunctions) {
  need_kprobes();
  auto report = snoop("vfs_read", shell("cat / 2>/dev/null; true"));
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
  need_kprobes();
  auto report = snoop(opener() + "(return)", shell("cat /no/such 2>/dev/null; true"));
  EXPECT_GE(with_values(report, {"return = ERR_PTR(-2)"}), 1U) << report.err;
}

// Nested calls of one task keep their own values.
TOOL_TEST(Ksnoop, CallsWithinCalls) {
  need_kprobes();
  auto report = snoop({opener() + "(arg1, return)", "vfs_open(file->f_flags, return)"},
                      shell("cat /etc/hostname >/dev/null"));
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
  need_kprobes();
  expect_refusals("ksnoop", {{"vfs_read(cuont)", "vfs_read(cuont)\n           ^"},
                             {"vfs_read(cuont)", "count"},
                             {"vfs_read(file->f_inod)", "f_inode"},
                             {"wake_up_new_task(return)", "void"}});
}

TESTS_OF(ksnoop, .events = {{"sys_getppid($comm, return)"}, {"probes", "--calls", "5"}},
         .stress = event_row("probes --calls {n}", 100000, "calls", "sys_getppid(return)"),
         .long_run = {{.arguments = "sys_getppid(return)"}});

}  // namespace
}  // namespace coretap::tooltest
