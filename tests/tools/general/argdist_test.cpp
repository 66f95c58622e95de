// argdist against programs that call functions with known arguments.
#include <algorithm>
#include <map>

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

Observed observe(const Strings& words, std::uint64_t calls = 20) {
  require_tool("argdist");
  Workload workload("probes", {"--calls", std::to_string(calls)}, kLinger);
  Strings all{"--json", "--strict", "-p", workload.id()};
  all.insert(all.end(), words.begin(), words.end());
  Tracer tracer("argdist", all);
  workload.release();
  auto truth = workload.truth();
  return {truth, tracer.stop()};
}

/// How often, by the values.
std::map<std::string, std::uint64_t> counts(const Report& report) {
  std::map<std::string, std::uint64_t> all;
  for (auto& row : report.body) {
    std::string values;
    for (auto& each : row["values"].strings()) values += (values.empty() ? "" : ", ") + each;
    all[row["probe"].str() + ": " + values] += row["count"].u64();
  }
  return all;
}

using Counts = std::map<std::string, std::uint64_t>;

TOOL_TEST(Argdist, ValuesOfArguments) {
  auto seen = observe({"-C", "p:" + probes() + ":counted_each(u64 n):int:n % 3#rest"});
  EXPECT_EQ(counts(seen.report),
            (Counts{{"rest: n % 3 = 0", 7}, {"rest: n % 3 = 1", 7}, {"rest: n % 3 = 2", 6}}));
}

TOOL_TEST(Argdist, SeveralValuesAndSpecifications) {
  auto seen =
      observe({"-C", "p:" + probes() + ":counted_each(u64 n):u64,char*:n / 10,$COMM#a", "-C",
               "u:" + probes() + ":plain():u32:arg1 > 4:arg1 >= 2#b", "p::sys_getppid()#calls"});
  EXPECT_EQ(counts(seen.report), (Counts{{"a: n / 10 = 0, $COMM = probes", 10},
                                         {"a: n / 10 = 1, $COMM = probes", 10},
                                         {"b: arg1 > 4 = 0", 3},
                                         {"b: arg1 > 4 = 1", 15},
                                         {"calls: ", seen.truth["calls"].u64()}}));
  EXPECT_EQ(seen.report.lost("filtered"), 2U);
}

TOOL_TEST(Argdist, PlacesWithinFunctions) {
  auto seen = observe({"-C", "p:" + last_place_of(probes(), "counted_each") + "():char*:$COMM#a"});
  EXPECT_EQ(counts(seen.report), (Counts{{"a: $COMM = probes", 20}}));
}

TOOL_TEST(Argdist, FunctionsOfModulesWithTheirTypes) {
  require_tool("argdist");
  const ModuleOpens opens;
  const auto spec =
      "p:" + std::string(kOpenOf9p) + "():u64,u32:fid->qid.path,fid->clnt->msize#opens";
  Strings words{tool_path("argdist"), "--json", "-C", spec, "--"};
  for (auto& word : opens.command()) words.push_back(word);
  auto ran = run(words);
  if (!opens.has_types) {
    EXPECT_EQ(ran.status, 3);
    EXPECT_TRUE(contains(ran.err, "no type information of module 9pnet")) << ran.err;
    return;
  }
  EXPECT_EQ(ran.status, 0) << ran.err;
  auto all = counts(parse_report(ran.out, ran.err));
  for (auto& [row, n] : all)
    EXPECT_TRUE(row.ends_with("fid->clnt->msize = " + opens.message_bytes)) << row;
  EXPECT_EQ(opens.opened(all), 1U) << ran.out;
}

TOOL_TEST(Argdist, ResultsOfSystemCalls) {
  auto seen = observe({"-C", "r::sys_getppid()#r"});
  EXPECT_EQ(counts(seen.report),
            (Counts{{"r: $retval = " + std::to_string(getpid()), seen.truth["calls"].u64()}}));
}

TOOL_TEST(Argdist, Histograms) {
  auto seen = observe({"-H", "p:" + probes() + ":counted_each(u64 n):u64:n#up", "-H",
                       "p:" + probes() + ":counted_each(u64 n):int:0 - (int)n#down"});
  Counts slots;
  for (auto& h : seen.report.body)
    for (auto& slot : h["histogram"].items())
      slots[h["probe"].str() + (h["negative"].boolean() ? " -" : " ") +
            std::to_string(slot["from"].u64())] += slot["count"].u64();
  EXPECT_EQ(slots, (Counts{{"up 0", 2},
                           {"up 2", 2},
                           {"up 4", 4},
                           {"up 8", 8},
                           {"up 16", 4},
                           {"down 0", 1},
                           {"down (below 0, without the sign) -0", 1},
                           {"down (below 0, without the sign) -2", 2},
                           {"down (below 0, without the sign) -4", 4},
                           {"down (below 0, without the sign) -8", 8},
                           {"down (below 0, without the sign) -16", 4}}));
}

TOOL_TEST(Argdist, CallsFromEntryToReturn) {
  require_tool("argdist");
  Workload workload("calls", {"--calls", "5", "--sleep-us", "2000"}, kLinger);
  Tracer tracer("argdist", {"--json", "--strict", "-p", workload.id(), "-C",
                            "r:" + workload_path("calls") +
                                ":timed_call(int n):int,bool:$entry(n) / 3,$latency > 2000000#x"});
  workload.release();
  workload.truth();
  EXPECT_EQ(counts(tracer.stop()), (Counts{{"x: $entry(n) / 3 = 0, $latency > 2000000 = 1", 3},
                                           {"x: $entry(n) / 3 = 1, $latency > 2000000 = 1", 2}}));
}

TOOL_TEST(Argdist, MemoryThatIsNotThere) {
  auto seen = observe({"-C", "p:" + probes() + ":counted_each(u64 n):int:*(int *)n#x"}, 3);
  EXPECT_EQ(counts(seen.report), (Counts{{"x: *(int *)n = (fault)", 3}}));
  require_tool("argdist");
  Workload workload("probes", {"--calls", "3"}, kLinger);
  Tracer tracer("argdist", {"--json", "-p", workload.id(), "-H",
                            "p:" + probes() + ":counted_each(u64 n):int:*(int *)n"});
  workload.release();
  workload.truth();
  EXPECT_EQ(tracer.stop().lost("unjudged"), 3U);
}

TOOL_TEST(Argdist, RecordsOfTracepoints) {
  require_tool("argdist");
  auto ran = run({tool_path("argdist"), "--json", "-C",
                  "t:sched:sched_process_exec():char*:args->filename#exec", "--", "sh", "-c",
                  "/bin/true; /bin/true; exec /bin/true"});
  auto all = counts(parse_report(ran.out, ran.err));
  EXPECT_EQ(all["exec: args->filename = /bin/true"], 3U) << ran.out;
}

TOOL_TEST(Argdist, Columns) {
  require_tool("argdist");
  auto text =
      run({tool_path("argdist"), "--duration", "0.5", "-C", "p::sys_clock_nanosleep()"}).out;
  EXPECT_TRUE(text.empty() || contains(text, "COUNT      EVENT")) << text;
}

TOOL_TEST(Argdist, ErrorsShowTheirPlace) {
  require_tool("argdist");
  struct Case {
    Strings words;
    std::string says;
  };
  for (auto& [words, says] :
       std::vector<Case>{{{"-C", "sys_read()"}, "expected p:"},
                         {{"-C", "p::sys_read"}, "expected '('"},
                         {{"-C", "p::sys_read("}, "not closed"},
                         {{"-C", "p::sys_read():int,int:fd"}, "2 types and 1 value"},
                         {{"-C", "p::sys_read():int"}, "expected ':' and values"},
                         {{"-H", "p::sys_read():char*:buf"}, "use -C"},
                         {{"-H", "p::sys_read()"}, "needs a type"},
                         {{"-C", "p::sys_read():int:fd:fd =="}, "operand"},
                         {{"-C", "p::sys_read():int:$retval"}, "not known here"},
                         {{"-C", "p::sys_read():strange_t:fd"}, "no type"},
                         {{"-C", "p::sys_read()", "-H", "p::sys_read():int:fd"}, "--histogram"}}) {
    Strings all{tool_path("argdist"), "--duration", "0.1"};
    all.insert(all.end(), words.begin(), words.end());
    auto result = run(all);
    EXPECT_EQ(result.status, 2) << words.back() << "\n" << result.err;
    EXPECT_TRUE(contains(result.err, says)) << words.back() << "\n" << result.err;
  }
}

const DeclareTests kArgdist{{
    .name = "argdist",
    .reports = {{ReportKind::aggregate, {"-C", "p::sys_read()"}}},
    .events = {"-C p::sys_getppid():char*:$COMM", "probes --calls 5"},
    .nothing_when_idle = true,
    .stress = {.workload = "probes --calls {n}",
               .events = 100000,
               .options = "-C p::sys_getppid():u64:$PID",
               .shown = "count",
               .truth = "calls"},
    .long_run = {{.arguments = "-C p::sys_read():int:fd"}},
}};

}  // namespace
}  // namespace coretap::tooltest
