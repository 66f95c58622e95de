// trace against programs that call functions with known arguments.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "../harness.hpp"
#include "instructions.hpp"
#include "module_opens.hpp"

namespace coretap::tooltest {
namespace {

std::string probes() { return workload_path("probes"); }

struct Observed {
  Json truth;
  Report report;
};

/// What the workload `probes` does, `calls` times, until it says its truth.
Observed observe(const Strings& words, std::uint64_t calls = 20) {
  require_tool("trace");
  Workload workload("probes", {"--calls", std::to_string(calls)}, kLinger);
  Strings all{"--json", "-p", workload.id()};
  all.insert(all.end(), words.begin(), words.end());
  Tracer tracer("trace", all);
  workload.release();
  auto truth = workload.truth();
  return {truth, tracer.stop()};
}

Report of_command(const Strings& options, const Strings& command) {
  require_tool("trace");
  Strings words{tool_path("trace"), "--json"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  auto ran = run(words);
  EXPECT_EQ(ran.status, 0) << ran.err;
  return parse_report(ran.out, ran.err);
}

bool has_kprobes() {
  struct stat st {};
  return ::stat("/sys/bus/event_source/devices/kprobe/type", &st) == 0;
}

Strings messages(const Report& report) {
  Strings all;
  for (auto& event : report.body) all.push_back(event["message"].str());
  return all;
}

/// Each number below `calls` for which `wanted` holds, as `format` shows it.
Strings numbers(std::uint64_t calls, bool (*wanted)(std::uint64_t), const char* format) {
  Strings all;
  for (std::uint64_t i = 0; i < calls; i++)
    if (wanted(i)) {
      char text[64];
      snprintf(text, sizeof text, format, static_cast<unsigned>(i));
      all.emplace_back(text);
    }
  return all;
}

bool any(std::uint64_t) { return true; }

template <class... Values>
std::string text(const char* format, Values... values) {
  char line[128];
  snprintf(line, sizeof line, format, values...);
  return line;
}

/// Exit status and words of a command line that is refused.
Result refused(const std::string& probe) {
  return run({tool_path("trace"), "--duration", "0.1", probe});
}

TOOL_TEST(Trace, ArgumentsOfUserFunctions) {
  auto seen = observe({probes() + ":counted_each \"call %d of %s\", arg1, $comm"});
  EXPECT_EQ(messages(seen.report), numbers(20, any, "call %u of probes"));
  for (auto& event : seen.report.body) {
    EXPECT_EQ(event["target"].str(), "counted_each");
    EXPECT_EQ(event["values"].strings().size(), 2U);
  }
  EXPECT_EQ(seen.report.lost("filtered"), 0U);
}

TOOL_TEST(Trace, FiltersDecideInTheKernel) {
  auto seen =
      observe({probes() + ":counted_each(unsigned long n) (n % 3 == 1 && n > 4) \"%#lx\", n"});
  EXPECT_EQ(messages(seen.report),
            numbers(
                20, [](std::uint64_t i) { return i % 3 == 1 && i > 4; }, "%#x"));
  EXPECT_EQ(seen.report.lost("filtered"), 20 - seen.report.body.size());
}

TOOL_TEST(Trace, ArgumentsOfUsdtProbes) {
  auto seen = observe({"u:" + probes() + ":plain (arg1 >= 15) \"%d\", arg1",
                       "u:" + probes() + ":gated \"gated %d\", arg1"});
  Strings plain, gated;
  for (auto& text : messages(seen.report))
    (text.starts_with("gated") ? gated : plain).push_back(text);
  EXPECT_EQ(plain, numbers(
                       20, [](std::uint64_t i) { return i >= 15; }, "%u"));
  EXPECT_EQ(gated.size(), seen.truth["gated"].u64());
  EXPECT_EQ(gated, numbers(20, any, "gated %u"));
}

TOOL_TEST(Trace, SystemCallsAndTheirResults) {
  auto seen = observe({"r::sys_getppid \"%d\", retval"});
  ASSERT_EQ(seen.report.body.size(), seen.truth["calls"].u64());
  for (auto& text : messages(seen.report)) EXPECT_EQ(text, std::to_string(getpid()));
}

TOOL_TEST(Trace, CallsFromEntryToReturn) {
  require_tool("trace");
  Workload workload("calls", {"--calls", "5", "--sleep-us", "2000"}, kLinger);
  Tracer tracer("trace", {"--json", "--strict", "-p", workload.id(),
                          "r:" + workload_path("calls") +
                              ":timed_call \"%d %d %d %d\", $entry(arg1), $entry(arg2), retval, "
                              "$latency >= 2000000 && $latency < 1000000000",
                          "r::sys_clock_nanosleep ($latency < 2000000) \"fast\""});
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  EXPECT_EQ(messages(report),
            (Strings{"0 2000 0 1", "1 2000 2 1", "2 2000 4 1", "3 2000 6 1", "4 2000 8 1"}));
}

TOOL_TEST(Trace, TextOfTheProcess) {
  auto report = of_command(
      {"sys_faccessat (mode == 4) \"%s\", filename", "sys_faccessat2 (mode == 4) \"%s\", filename"},
      {"sh", "-c", "n=/nowhere/known; test -r $n; true"});
  auto all = messages(report);
  EXPECT_TRUE(std::count(all.begin(), all.end(), "/nowhere/known") == 1) << report.err;
}

TOOL_TEST(Trace, RecordsOfTracepoints) {
  auto report =
      of_command({"t:sched:sched_process_exec \"%s %d\", args->filename, args->pid == $pid"},
                 {"sh", "-c", "/bin/true; exec /bin/echo >/dev/null"});
  std::set<std::string> seen;
  for (auto& text : messages(report)) seen.insert(text);
  EXPECT_TRUE(seen.contains("/bin/true 1")) << report.err;
  EXPECT_TRUE(seen.contains("/bin/echo 1")) << report.err;
}

TOOL_TEST(Trace, PlacesWithinUserFunctions) {
  auto all = instructions_of(probes(), "counted_each");
  ASSERT_GE(all.size(), 2U);
  const auto last = all.back() - all.front();
  auto seen = observe({"--strict", probes() + text(":counted_each+%#lx \"a %%s\", $comm", last),
                       probes() + text(":%#lx \"b\"", all[1]),
                       probes() + text(":%#lx \"entry %%d\", arg1", all[0])});
  auto words = messages(seen.report);
  EXPECT_EQ(std::count(words.begin(), words.end(), "a probes"), 20);
  EXPECT_EQ(std::count(words.begin(), words.end(), "b"), 20);
  EXPECT_EQ(std::count(words.begin(), words.end(), "entry 19"), 1);
  EXPECT_EQ(words.size(), 60U);
  std::set<std::string> names;
  for (auto& event : seen.report.body) names.insert(event["target"].str());
  EXPECT_EQ(names, (std::set<std::string>{"counted_each", text("counted_each+%#lx", last),
                                          text("counted_each+%#lx", all[1] - all[0])}));
}

TOOL_TEST(Trace, PlacesWithinKernelFunctionsHaveNoArguments) {
  require_tool("trace");
  if (!has_kprobes()) GTEST_SKIP() << "no kprobes on this kernel: guests have them";
  for (auto* name : {"count", "arg3"}) {
    auto result = refused(std::string("vfs_read+0x9 \"%d\", ") + name);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, std::string(name) + " is not known here")) << result.err;
    EXPECT_TRUE(contains(result.err, "^")) << result.err;
  }
}

TOOL_TEST(Trace, PlacesThatAreNone) {
  auto all = instructions_of(probes(), "counted_each");
  const auto file = probes();
  std::size_t longer = 0;
  while (longer + 1 < all.size() && all[longer + 1] == all[longer] + 1) longer++;
  const auto inside = all[longer] - all[0] + 1;  // an instruction of several bytes
  struct Case {
    std::string probe, words;
  };
  for (auto& [probe, words] :
       std::vector<Case>{{file + text(":counted_each+%#lx", inside), "instructions begin at"},
                         {file + ":counted_each+0x1000", "counted_each has 0x"},
                         {file + ":0xfffff000", "no symbol of"},
                         {"r:" + file + ":counted_each+4", "has no return"},
                         {file + ":counted_*+4", "name one function"},
                         {file + text(":counted_each+%#lx \"%%d\", arg1", all[1] - all[0]),
                          "arg1 is not known here"},
                         {file + text(":counted_each+%#lx(int n) (n > 1)", all[1] - all[0]),
                          "n is not known here"}}) {
    auto result = refused(probe);
    EXPECT_EQ(result.status, 2) << probe << "\n" << result.err;
    EXPECT_TRUE(contains(result.err, words)) << probe << "\n" << result.err;
  }
}

TOOL_TEST(Trace, MemoryThatIsNotThere) {
  auto seen = observe({probes() + ":counted_each \"%d %s\", *(int *)arg1, (char *)arg1"}, 3);
  EXPECT_EQ(messages(seen.report),
            (Strings{"(fault) (fault)", "(fault) (fault)", "(fault) (fault)"}));
  seen = observe({probes() + ":counted_each (*(int *)arg1 == 0)"}, 3);
  EXPECT_TRUE(seen.report.body.empty());
  EXPECT_EQ(seen.report.lost("unjudged"), 3U);
}

TOOL_TEST(Trace, LongTextIsCut) {
  auto report = of_command({"-Z", "8", "sys_execve \"%s\", filename",
                            "t:sched:sched_process_exec \"%s\", args->filename"},
                           {"sh", "-c", "exec /usr/bin/env true >/dev/null"});
  auto all = messages(report);
  EXPECT_GE(std::count(all.begin(), all.end(), "/usr/bin..."), 1) << report.err;
  EXPECT_GE(report.lost("truncated"), 1U);
}

// What two words name is two lines.
TOOL_TEST(Trace, SeveralProbes) {
  auto seen = observe({probes() + ":counted_each \"a %d\", arg1",
                       probes() + ":counted_e* (arg1 == 2) \"b %d\", arg1"},
                      4);
  auto all = messages(seen.report);
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, (Strings{"a 0", "a 1", "a 2", "a 3", "b 2", "b 2"}));
}

TOOL_TEST(Trace, KernelFunctions) {
  if (!has_kprobes()) GTEST_SKIP() << "no kprobes on this kernel: guests have them";
  auto report =
      of_command({"vfs_read (STREQ(\"hostname\", file->f_path.dentry->d_name.name)) \"%s %d %d\", "
                  "file->f_path.dentry->d_name.name, count > 0, $task->pid == $pid",
                  "r::vfs_read (retval < 0) \"%E\", retval"},
                 {"sh", "-c", "cat /etc/hostname >/dev/null; cat / 2>/dev/null; true"});
  auto all = messages(report);
  EXPECT_GE(std::count(all.begin(), all.end(), "hostname 1 1"), 1) << report.err;
  EXPECT_GE(std::count(all.begin(), all.end(), "EISDIR"), 1) << report.err;
}

TOOL_TEST(Trace, FunctionsOfModulesWithTheirTypes) {
  require_tool("trace");
  const ModuleOpens opens;
  const std::string typed = std::string(kOpenOf9p) + " \"%lu %d\", fid->qid.path, fid->clnt->msize";
  if (!opens.has_types) {
    auto result = refused(typed);
    EXPECT_EQ(result.status, 3);
    EXPECT_TRUE(contains(result.err, "no type information of module 9pnet")) << result.err;
    auto plain =
        of_command({std::string(kOpenOf9p) + " (arg1 != 0) \"%d\", arg2"}, opens.command());
    EXPECT_GE(plain.body.size(), kOpensOf9p) << plain.err;
    return;
  }
  for (auto& probe :
       {typed, std::string(kOpenOf9p) +
                   "(struct p9_fid *f, int mode) (f->clnt->msize > 0) \"%lu %d\", f->qid.path, "
                   "((struct p9_fid *)arg1)->clnt->msize"}) {
    auto report = of_command({probe}, opens.command());
    std::map<std::string, std::uint64_t> times;
    for (auto& message : messages(report)) {
      times[message]++;
      EXPECT_TRUE(message.ends_with(" " + opens.message_bytes)) << message;
    }
    EXPECT_EQ(opens.opened(times), 1U) << report.err;
  }
  auto wrong = refused(std::string(kOpenOf9p) + " \"%d\", fid->qdi.path");
  EXPECT_EQ(wrong.status, 2);
  EXPECT_TRUE(contains(wrong.err, "struct p9_fid has no member qdi")) << wrong.err;
}

TOOL_TEST(Trace, EndsAfterSomeEvents) {
  require_tool("trace");
  Workload workload("probes", {"--calls", "1000"}, kLinger);
  Tracer tracer("trace", {"--json", "-M", "3", "-p", workload.id(), probes() + ":counted_each"});
  workload.release();
  auto report = tracer.finish();
  EXPECT_EQ(report.body.size(), 3U);
}

TOOL_TEST(Trace, MessagesAreFiltered) {
  auto seen = observe({"-f", "1", probes() + ":counted_each \"%d\", arg1"}, 12);
  EXPECT_EQ(messages(seen.report), (Strings{"1", "10", "11"}));
}

TOOL_TEST(Trace, Columns) {
  require_tool("trace");
  EXPECT_EQ(header_of("trace", {}), (Strings{"PID", "TID", "COMM", "FUNC", "-"}));
  EXPECT_EQ(header_of("trace", {"-T", "-C"}),
            (Strings{"TIME", "PID", "TID", "COMM", "CPU", "FUNC", "-"}));
}

TOOL_TEST(Trace, ErrorsShowTheirPlace) {
  require_tool("trace");
  struct Case {
    std::string probe, words;
  };
  for (auto& [probe, words] : std::vector<Case>{
           {probes() + ":counted_each \"%d\"", "1 conversion"},
           {probes() + ":counted_each (arg1 >", "an operand is missing here"},
           {probes() + ":counted_each (arg7 == 1)", "arg7"},
           {probes() + ":counted_each (retval == 1)", "retval is not known here"},
           {"r:" + probes() + ":counted_each \"%d\", arg1", "arg1 is not known here"},
           {probes() + ":counted_each \"%d\", $latency", "$latency is not known here"},
           {"r:" + probes() + ":counted_each \"%d\", $entry(n)", "no parameter n"},
           {probes() + ":counted_each \"%q\", arg1", "conversion"},
           {probes() + ":counted_each \"%s\", (int)arg1", "this is a number"},
           {"t:sched:sched_switch \"%d\", args->prev_pdi", "prev_pid"},
           {probes() + ":counted_eahc \"%d\", arg1", "counted_each"},
           {probes() + ":counted_each \"%d\", ((struct task_strutc *)arg1)->pid", "task_struct"}}) {
    auto result = refused(probe);
    EXPECT_EQ(result.status, 2) << probe << "\n" << result.err;
    EXPECT_TRUE(contains(result.err, words)) << probe << "\n" << result.err;
  }
}

std::string declarations() { return workload_path("declared"); }

/// What the workload `declared` passes, call by call: two probes hold one against the other.
Report of_declared(const std::string& probe) {
  return of_command({probe}, {declarations(), "--calls", "6"});
}

TOOL_TEST(Trace, NamesAndTypesOfDebugInformation) {
  auto report = of_declared(
      declarations() +
      ":handle_request (count >= 2 && r->next->number == 100 + count) \"%d %s %d %d %d %d %s %d %d\", "
      "count, r->path, r->at.y, r->flags, r->rest, r->state == BUSY, r->text, r->sizes[1][1], "
      "r->next->small");
  Strings expected;
  for (int n = 2; n < 6; n++)
    expected.push_back(text("%d first %d %d %d %d inside %d %d", n, -n, n, n, n % 2, 10 * n, -n));
  EXPECT_EQ(messages(report), expected);
  EXPECT_EQ(report.lost("filtered"), 2U);
}

TOOL_TEST(Trace, ResultsOfDebugInformation) {
  auto numbers = of_declared("r:" + declarations() + ":handle_request \"%d\", retval");
  auto records =
      of_declared("r:" + declarations() + ":next_of \"%d %s\", retval->number, $retval->path");
  Strings first, second;
  for (int n = 0; n < 6; n++) {
    first.push_back(std::to_string(-n));
    second.push_back(text("%d last", 100 + n));
  }
  EXPECT_EQ(messages(numbers), first);
  EXPECT_EQ(messages(records), second);
}

// The place of a large result is passed first, in a register of its own.
TOOL_TEST(Trace, LargeResultsTakeARegister) {
  auto report = of_declared(declarations() + ":large_result \"%d\", seed");
  EXPECT_EQ(messages(report), (Strings{"0", "1", "2", "3", "4", "5"}));
}

TOOL_TEST(Trace, ParametersThatAreInNoRegister) {
  require_tool("trace");
  struct Case {
    std::string function, name, why;
  };
  for (auto& [function, name, why] : {Case{"by_value", "p", "passed by value"},
                                      Case{"handle_request", "ratio", "no integer and no pointer"},
                                      Case{"handle_request", "cuont", "did you mean"},
                                      Case{"handle_request", "r->pth", "path"}}) {
    auto result = refused(declarations() + ":" + function + " \"%d\", " + name);
    EXPECT_EQ(result.status, 2) << result.err;
    EXPECT_TRUE(contains(result.err, why)) << result.err;
  }
  auto around = of_declared(declarations() + ":by_value \"%d %d\", before, after");
  EXPECT_EQ(messages(around), (Strings{"0 50", "1 51", "2 52", "3 53", "4 54", "5 55"}));
}

TOOL_TEST(Trace, CastsToTypesOfTheProgram) {
  auto report = of_declared(
      declarations() + ":next_of \"%d %d\", ((struct request *)arg1)->rest, sizeof(struct large)");
  Strings expected;
  for (int n = 0; n < 6; n++) expected.push_back(text("%d 32", n));
  EXPECT_EQ(messages(report), expected);
  auto by_typedef = of_declared(
      declarations() +
      ":next_of \"%d %d\", ((request_t *)arg1)->rest, sizeof(request_t) == sizeof(struct request)");
  expected.clear();
  for (int n = 0; n < 6; n++) expected.push_back(text("%d 1", n));
  EXPECT_EQ(messages(by_typedef), expected);
}

TOOL_TEST(Trace, NamesOfCxx) {
  auto overloads = workload_path("overloads");
  auto of = [&](const std::string& probe) {
    return of_command({overloads + ":" + probe}, {overloads, "4"});
  };
  EXPECT_EQ(of("app::Request::handle").body.size(), 8U) << "both overloads";
  auto hidden = of("app::*::hidden");
  ASSERT_EQ(hidden.body.size(), 4U);
  EXPECT_EQ(hidden.body[0]["target"].str(), "app::(anonymous namespace)::hidden");
  auto mangled = of("_ZN3app7Request6handleEl \"%d %d %d\", only, this->number, this->fast");
  EXPECT_EQ(messages(mangled), (Strings{"1000 0 0", "1001 10 1", "1002 20 0", "1003 30 1"}));
}

TOOL_TEST(Trace, ProgramsWithoutDebugInformation) {
  require_tool("trace");
  TemporaryDirectory scratch;
  auto bare = scratch.path() + "/bare";
  ASSERT_EQ(run({"strip", "--strip-debug", "-o", bare, declarations()}).status, 0);
  auto result = refused(bare + ":handle_request \"%d\", count");
  EXPECT_EQ(result.status, 2);
  EXPECT_TRUE(contains(result.err, "no debug information")) << result.err;
}

const DeclareTests kTrace{{
    .name = "trace",
    .events = {{"sys_getppid \"process %d, %s\", $tgid, $comm"}, {"probes", "--calls", "5"}},
    .stress = {.workload = "probes --calls {n}",
               .events = 100000,
               .options = {"sys_getppid \"%d\", $pid"},
               .truth = "calls",
               .tiny = "--ring-size 4096"},
    .long_run = {{.arguments = {"sys_getppid \"%d\", $pid"}}},
}};

}  // namespace
}  // namespace coretap::tooltest
