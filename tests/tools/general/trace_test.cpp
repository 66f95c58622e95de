// trace against programs that call functions with known arguments.
#include "module_opens.hpp"

namespace coretap::tooltest {
namespace {

/// Traces the workload `probes`, with `calls` calls, until it prints its truth.
Observed trace_probes(const Strings& words, std::uint64_t calls = 20) {
  return observe("trace --json -p {pid}" + words, fmt::format("probes --calls {}", calls));
}

Strings messages(const Report& report) {
  Strings all;
  for (auto& event : report.body) all.push_back(event["message"].str());
  return all;
}
std::size_t times(const Report& report, const std::string& message) {
  return lines_with(report.body, {{"message", message}}).size();
}

/// A text for each number from `first` up to but not including `end`.
template <class Text>
Strings for_each(int first, int end, Text text) {
  Strings all;
  for (int n = first; n < end; n++) all.push_back(text(n));
  return all;
}

const std::string kEach = probes() + ":counted_each";

TOOL_TEST(Trace, ArgumentsOfUserFunctions) {
  auto report = trace_probes({kEach + " \"call %d of %s\", arg1, $comm"}).report();
  EXPECT_EQ(messages(report),
            for_each(0, 20, [](int n) { return fmt::format("call {} of probes", n); }));
  for (auto& event : report.body) {
    EXPECT_EQ(event["target"].str(), "counted_each");
    EXPECT_EQ(event["values"].strings().size(), 2U);
  }
  EXPECT_EQ(report.lost("filtered"), 0U);
}

TOOL_TEST(Trace, FiltersDecideInTheKernel) {
  auto report =
      trace_probes({kEach + "(unsigned long n) (n % 3 == 1 && n > 4) \"%#lx\", n"}).report();
  EXPECT_EQ(messages(report), Strings("0x7 0xa 0xd 0x10 0x13"));
  EXPECT_EQ(report.lost("filtered"), 20 - report.body.size());
}

TOOL_TEST(Trace, ArgumentsOfUsdtProbes) {
  auto seen = trace_probes({"u:" + probes() + ":plain (arg1 >= 15) \"%d\", arg1",
                            "u:" + probes() + ":gated \"gated %d\", arg1"});
  auto plain = messages(seen.report()), gated = plain;
  auto is_gated = [](auto& text) { return text.starts_with("gated"); };
  std::erase_if(plain, is_gated);
  std::erase_if(gated, std::not_fn(is_gated));
  EXPECT_EQ(plain, Strings("15 16 17 18 19"));
  EXPECT_EQ(gated.size(), seen.truth["gated"].u64());
  EXPECT_EQ(gated, for_each(0, 20, [](int n) { return fmt::format("gated {}", n); }));
}

TOOL_TEST(Trace, SystemCallsAndTheirResults) {
  auto seen = trace_probes({"r::sys_getppid \"%d\", retval"});
  EXPECT_EQ(seen.report().body.size(), seen.truth["calls"].u64());
  EXPECT_EQ(times(seen.report(), std::to_string(getpid())), seen.truth["calls"].u64());
}

TOOL_TEST(Trace, CallsFromEntryToReturn) {
  auto seen = observe(Strings{"trace", "--json", "--strict", "-p", "{pid}",
                              "r:" + calls("timed_call") +
                                  " \"%d %d %d %d\", $entry(arg1), $entry(arg2), retval, "
                                  "$latency >= 2000000 && $latency < 1000000000",
                              "r::sys_clock_nanosleep ($latency < 2000000) \"fast\""},
                      "calls --calls 5 --sleep-us 2000");
  EXPECT_EQ(messages(seen.report()),
            (Strings{"0 2000 0 1", "1 2000 2 1", "2 2000 4 1", "3 2000 6 1", "4 2000 8 1"}));
}

TOOL_TEST(Trace, TextOfTheProcess) {
  auto report = of_command({"trace", "sys_faccessat (mode == 4) \"%s\", filename",
                            "sys_faccessat2 (mode == 4) \"%s\", filename"},
                           {"sh", "-c", "n=/nowhere/known; test -r $n; true"});
  EXPECT_EQ(times(report, "/nowhere/known"), 1u) << report.err;
}

TOOL_TEST(Trace, RecordsOfTracepoints) {
  auto report = of_command(
      {"trace", "t:sched:sched_process_exec \"%s %d\", args->filename, args->pid == $pid"},
      {"sh", "-c", "/bin/true; exec /bin/echo >/dev/null"});
  EXPECT_GE(times(report, "/bin/true 1"), 1u) << report.err;
  EXPECT_GE(times(report, "/bin/echo 1"), 1u) << report.err;
}

TOOL_TEST(Trace, PlacesWithinUserFunctions) {
  auto all = instructions_of(probes(), "counted_each");
  const auto last = fmt::format("counted_each+{:#x}", all.back() - all.front());
  auto report = trace_probes({"--strict", probes() + ":" + last + " \"a %s\", $comm",
                              fmt::format("{}:{:#x} \"b\"", probes(), all[1]),
                              fmt::format("{}:{:#x} \"entry %d\", arg1", probes(), all[0])})
                    .report();
  EXPECT_EQ(times(report, "a probes"), 20u);
  EXPECT_EQ(times(report, "b"), 20u);
  EXPECT_EQ(times(report, "entry 19"), 1u);
  EXPECT_EQ(report.body.size(), 60U);
  std::set<std::string> names;
  for (auto& event : report.body) names.insert(event["target"].str());
  EXPECT_EQ(names, (std::set<std::string>{"counted_each", last,
                                          fmt::format("counted_each+{:#x}", all[1] - all[0])}));
}

TOOL_TEST(Trace, PlacesWithinKernelFunctionsHaveNoArguments) {
  require_tool("trace");
  need_kprobes();
  for (std::string name : {"count", "arg3"}) {
    Strings probe{"vfs_read+0x9 \"%d\", " + name};
    expect_refusals("trace", {{probe, name + " is not known here"}, {probe, "^"}});
  }
}

// An address less the offset is the function's place in the file, as objdump has it.
TOOL_TEST(Trace, AddressesOfStacks) {
  const auto begin = instructions_of(probes(), "counted_each").front();
  auto report = trace_probes({"-U", "--address", kEach}).report();
  ASSERT_EQ(report.body.size(), 20u);
  static const std::regex form("([0-9a-f]{16}) counted_each\\+0x([0-9a-f]+) \\[probes\\]");
  for (auto& event : report.body) {
    auto frames = event["user_stack"].strings();
    ASSERT_GT(frames.size(), 1u);
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(frames[0], parts, form)) << frames[0];
    EXPECT_EQ(std::stoull(parts[1], nullptr, 16) - std::stoull(parts[2], nullptr, 16), begin);
  }
  auto plain = trace_probes({"-U", kEach}).report();
  ASSERT_FALSE(plain.body.empty());
  EXPECT_EQ(plain.body[0]["user_stack"].strings()[0], "counted_each");
  expect_refused("trace -a sys_read", {"--user-stack"});
}

TOOL_TEST(Trace, PlacesThatAreNone) {
  auto all = instructions_of(probes(), "counted_each");
  std::size_t longer = 0;
  while (longer + 1 < all.size() && all[longer + 1] == all[longer] + 1) longer++;
  auto place = [&](std::uint64_t offset) { return fmt::format("{}+{:#x}", kEach, offset); };
  const auto inside = all[longer] - all[0] + 1;  // an instruction of several bytes
  const auto second = place(all[1] - all[0]);
  expect_refusals("trace", {{place(inside), "instructions begin at"},
                            {kEach + "+0x1000", "counted_each has 0x"},
                            {probes() + ":0xfffff000", "no symbol of"},
                            {"r:" + kEach + "+4", "has no return"},
                            {probes() + ":counted_*+4", "name one function"},
                            {{second + " \"%d\", arg1"}, "arg1 is not known here"},
                            {{second + "(int n) (n > 1)"}, "n is not known here"}});
}

TOOL_TEST(Trace, MemoryThatIsNotThere) {
  auto report = trace_probes({kEach + " \"%d %s\", *(int *)arg1, (char *)arg1"}, 3).report();
  EXPECT_EQ(messages(report), (Strings{"(fault) (fault)", "(fault) (fault)", "(fault) (fault)"}));
  report = trace_probes({kEach + " (*(int *)arg1 == 0)"}, 3).report();
  EXPECT_TRUE(report.body.empty());
  EXPECT_EQ(report.lost("unjudged"), 3U);
}

TOOL_TEST(Trace, LongTextIsCut) {
  auto report = of_command({"trace", "-Z", "8", "sys_execve \"%s\", filename",
                            "t:sched:sched_process_exec \"%s\", args->filename"},
                           {"sh", "-c", "exec /usr/bin/env true >/dev/null"});
  EXPECT_GE(times(report, "/usr/bin..."), 1u) << report.err;
  EXPECT_GE(report.lost("truncated"), 1U);
}

// Two matching arguments print two lines.
TOOL_TEST(Trace, SeveralProbes) {
  auto seen = trace_probes(
      {kEach + " \"a %d\", arg1", probes() + ":counted_e* (arg1 == 2) \"b %d\", arg1"}, 4);
  auto all = messages(seen.report());
  std::ranges::sort(all);
  EXPECT_EQ(all, (Strings{"a 0", "a 1", "a 2", "a 3", "b 2", "b 2"}));
}

TOOL_TEST(Trace, KernelFunctions) {
  need_kprobes();
  auto report =
      of_command({"trace",
                  "vfs_read (STREQ(\"hostname\", file->f_path.dentry->d_name.name)) \"%s %d %d\", "
                  "file->f_path.dentry->d_name.name, count > 0, $task->pid == $pid",
                  "r::vfs_read (retval < 0) \"%E\", retval"},
                 {"sh", "-c", "cat /etc/hostname >/dev/null; cat / 2>/dev/null; true"});
  EXPECT_GE(times(report, "hostname 1 1"), 1u) << report.err;
  EXPECT_GE(times(report, "EISDIR"), 1u) << report.err;
}

TOOL_TEST(Trace, FunctionsOfModulesWithTheirTypes) {
  require_tool("trace");
  const ModuleOpens opens;
  const std::string name = kOpenOf9p, typed = name + " \"%lu %d\", fid->qid.path, fid->clnt->msize";
  if (!opens.has_types) {
    expect_refusals("trace", {{{typed}, "no type information of module 9pnet", 3}});
    auto plain = of_command({"trace", name + " (arg1 != 0) \"%d\", arg2"}, opens.command());
    EXPECT_GE(plain.body.size(), kOpensOf9p) << plain.err;
    return;
  }
  for (auto& probe :
       {typed, name + "(struct p9_fid *f, int mode) (f->clnt->msize > 0) \"%lu %d\", f->qid.path, "
                      "((struct p9_fid *)arg1)->clnt->msize"}) {
    auto report = of_command({"trace", probe}, opens.command());
    std::map<std::string, std::uint64_t> opened;
    for (auto& message : messages(report)) {
      opened[message]++;
      EXPECT_TRUE(message.ends_with(" " + opens.message_bytes)) << message;
    }
    EXPECT_EQ(opens.opened(opened), 1U) << report.err;
  }
  expect_refusals("trace",
                  {{{name + " \"%d\", fid->qdi.path"}, "struct p9_fid has no member qdi"}});
}

TOOL_TEST(Trace, EndsAfterSomeEvents) {
  Scene scene("probes --calls 1000");
  auto& tracer = scene.trace("trace --json -M 3 -p {pid} " + kEach);
  scene.workload().release();
  EXPECT_EQ(tracer.finish().body.size(), 3U);
}

TOOL_TEST(Trace, MessagesAreFiltered) {
  auto seen = trace_probes({"-f", "1", kEach + " \"%d\", arg1"}, 12);
  EXPECT_EQ(messages(seen.report()), Strings("1 10 11"));
}

TOOL_TEST(Trace, ErrorsShowTheirPlace) {
  require_tool("trace");
  expect_refusals("trace",
                  {{{kEach + " \"%d\""}, "1 conversion"},
                   {{kEach + " (arg1 >"}, "an operand is missing here"},
                   {{kEach + " (arg7 == 1)"}, "arg7"},
                   {{kEach + " (retval == 1)"}, "retval is not known here"},
                   {{"r:" + kEach + " \"%d\", arg1"}, "arg1 is not known here"},
                   {{kEach + " \"%d\", $latency"}, "$latency is not known here"},
                   {{"r:" + kEach + " \"%d\", $entry(n)"}, "no parameter n"},
                   {{kEach + " \"%q\", arg1"}, "conversion"},
                   {{kEach + " \"%s\", (int)arg1"}, "this is a number"},
                   {{"t:sched:sched_switch \"%d\", args->prev_pdi"}, "prev_pid"},
                   {{probes() + ":counted_eahc \"%d\", arg1"}, "counted_each"},
                   {{kEach + " \"%d\", ((struct task_strutc *)arg1)->pid"}, "task_struct"}});
}

const std::string kDeclared = workload_path("declared") + ":";

/// The values that the workload `declared` passes in its six calls; two probes compare them.
Strings of_declared(const std::string& probe) {
  return messages(of_command({"trace", probe}, workload_path("declared") + " --calls 6"));
}

TOOL_TEST(Trace, NamesAndTypesOfDebugInformation) {
  auto report = of_command(
      {"trace", kDeclared + "handle_request (count >= 2 && r->next->number == 100 + count) "
                            "\"%d %s %d %d %d %d %s %d %d\", count, r->path, r->at.y, r->flags, "
                            "r->rest, r->state == BUSY, r->text, r->sizes[1][1], r->next->small"},
      workload_path("declared") + " --calls 6");
  EXPECT_EQ(messages(report), for_each(2, 6, [](int n) {
              return fmt::format("{} first {} {} {} {} inside {} {}", n, -n, n, n, n % 2, 10 * n,
                                 -n);
            }));
  EXPECT_EQ(report.lost("filtered"), 2U);
}

TOOL_TEST(Trace, ResultsOfDebugInformation) {
  EXPECT_EQ(of_declared("r:" + kDeclared + "handle_request \"%d\", retval"),
            Strings("0 -1 -2 -3 -4 -5"));
  EXPECT_EQ(of_declared("r:" + kDeclared + "next_of \"%d %s\", retval->number, $retval->path"),
            for_each(100, 106, [](int n) { return fmt::format("{} last", n); }));
}

// The address of a large result is passed first, in an additional register.
TOOL_TEST(Trace, LargeResultsTakeARegister) {
  EXPECT_EQ(of_declared(kDeclared + "large_result \"%d\", seed"), Strings("0 1 2 3 4 5"));
}

TOOL_TEST(Trace, ParametersThatAreInNoRegister) {
  require_tool("trace");
  const auto request = kDeclared + "handle_request \"%d\", ";
  expect_refusals("trace",
                  {{{kDeclared + "by_value \"%d\", p"}, "passed by value"},
                   {{request + "ratio"}, "no integer and no pointer"},
                   {{"r:" + kDeclared + "ratio_of \"%d\", retval"}, "pointer (double)"},
                   {{"r:" + kDeclared + "large_result \"%d\", retval"}, "struct large"},
                   {{"r:" + kDeclared + "*_result (retval > 0)"}, "_result: the function returns"},
                   {{request + "cuont"}, "did you mean"},
                   {{request + "r->pth"}, "path"}});
  EXPECT_EQ(of_declared(kDeclared + "by_value \"%d %d\", before, after"),
            (Strings{"0 50", "1 51", "2 52", "3 53", "4 54", "5 55"}));
}

TOOL_TEST(Trace, CastsToTypesOfTheProgram) {
  const auto next = kDeclared + "next_of \"%d %d\", ";
  EXPECT_EQ(of_declared(next + "((struct request *)arg1)->rest, sizeof(struct large)"),
            for_each(0, 6, [](int n) { return fmt::format("{} 32", n); }));
  EXPECT_EQ(of_declared(next + "((request_t *)arg1)->rest, sizeof(request_t) == sizeof(struct "
                               "request)"),
            for_each(0, 6, [](int n) { return fmt::format("{} 1", n); }));
}

TOOL_TEST(Trace, NamesOfCxx) {
  auto overloads = workload_path("overloads");
  auto of = [&](const std::string& probe) {
    return of_command({"trace", overloads + ":" + probe}, overloads + " 4");
  };
  EXPECT_EQ(of("app::Request::handle").body.size(), 8U) << "both overloads";
  auto hidden = of("app::*::hidden");
  ASSERT_EQ(hidden.body.size(), 4U);
  EXPECT_EQ(hidden.body[0]["target"].str(), "app::(anonymous namespace)::hidden");
  for (auto* name : {"app::converted<int>", "app::Request::as<long>", "app::Request::as",
                     "app::text_of", "app::text_of(int)", "app::hidden"})
    EXPECT_EQ(of(name).body.size(), 4U) << name;
  EXPECT_EQ(of("app::converted").body.size(), 8U) << "of both types";
  auto mangled = of("_ZN3app7Request6handleEl \"%d %d %d\", only, this->number, this->fast");
  EXPECT_EQ(messages(mangled), (Strings{"1000 0 0", "1001 10 1", "1002 20 0", "1003 30 1"}));
}

TOOL_TEST(Trace, ProgramsWithoutDebugInformation) {
  require_tool("trace");
  TemporaryDirectory scratch;
  auto bare = scratch.path() + "/bare";
  ASSERT_EQ(run({"strip", "--strip-debug", "-o", bare, workload_path("declared")}).status, 0);
  expect_refusals("trace", {{{bare + ":handle_request \"%d\", count"}, "no debug information"}});
}

TESTS_OF(trace,
         .events = {{"sys_getppid \"process %d, %s\", $tgid, $comm"}, {"probes", "--calls", "5"}},
         .user_stacks = {"-U"},
         .stress = event_row("probes --calls {n}", 100000, "calls", {"sys_getppid \"%d\", $pid"}),
         .long_run = {{.arguments = {"sys_getppid \"%d\", $pid"}}});

}  // namespace
}  // namespace coretap::tooltest
