// argdist against programs that call functions with known arguments.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

Observed distribute(const Strings& words, const std::string& workload = "probes --calls 20") {
  return observe("argdist --once --json --strict -p {pid}" + words, workload);
}

using Counts = std::map<std::string, std::uint64_t>;

/// Counts by value.
Counts value_counts(const Report& report) {
  Counts all;
  for (auto& row : report.body) {
    auto values = fmt::format("{}", fmt::join(row["values"].strings(), ", "));
    all[row["probe"].str() + ": " + values] += row["count"].u64();
  }
  return all;
}

TOOL_TEST(Argdist, ValuesOfArguments) {
  auto seen = distribute({"-C", "p:" + probes() + ":counted_each(u64 n):int:n % 3#rest"});
  EXPECT_EQ(value_counts(seen.report()),
            (Counts{{"rest: n % 3 = 0", 7}, {"rest: n % 3 = 1", 7}, {"rest: n % 3 = 2", 6}}));
}

TOOL_TEST(Argdist, SeveralValuesAndSpecifications) {
  auto seen =
      distribute({"-C", "p:" + probes() + ":counted_each(u64 n):u64,char*:n / 10,$COMM#a", "-C",
                  "u:" + probes() + ":plain():u32:arg1 > 4:arg1 >= 2#b", "p::sys_getppid()#calls"});
  EXPECT_EQ(value_counts(seen.report()), (Counts{{"a: n / 10 = 0, $COMM = probes", 10},
                                                 {"a: n / 10 = 1, $COMM = probes", 10},
                                                 {"b: arg1 > 4 = 0", 3},
                                                 {"b: arg1 > 4 = 1", 15},
                                                 {"calls: ", seen.truth["calls"].u64()}}));
  EXPECT_EQ(seen.report().lost("filtered"), 2U);
}

TOOL_TEST(Argdist, Histograms) {
  auto seen = distribute({"-H", "p:" + probes() + ":counted_each(u64 n):u64:n#up", "-H",
                          "p:" + probes() + ":counted_each(u64 n):int:0 - (int)n#down"});
  Strings shown;
  for (auto& h : seen.report().body) {
    shown.push_back(h["probe"].str() + (h["negative"].boolean() ? " -" : ""));
    for (auto& slot : h["histogram"].items())
      shown.back() += " " + slot["from"].text() + ":" + slot["count"].text();
  }
  std::ranges::sort(shown);
  EXPECT_EQ(shown, (Strings{"down (below 0, without the sign) - 0:1 2:2 4:4 8:8 16:4", "down 0:1",
                            "up 0:2 2:2 4:4 8:8 16:4"}));
}

TOOL_TEST(Argdist, MemoryThatIsNotThere) {
  const auto spec = "p:" + probes() + ":counted_each(u64 n):int:*(int *)n";
  auto seen = distribute({"-C", spec + "#x"}, "probes --calls 3");
  EXPECT_EQ(value_counts(seen.report()), (Counts{{"x: *(int *)n = (fault)", 3}}));
  auto slots = observe("argdist --once --json -p {pid}" + Strings{"-H", spec}, "probes --calls 3");
  EXPECT_EQ(slots.report().lost("unjudged"), 3U);
}

TOOL_TEST(Argdist, ErrorsShowTheirPlace) {
  require_tool("argdist");
  expect_refusals("argdist", {{"-C sys_read()", "expected p:"},
                              {"-C p::sys_read", "expected '('"},
                              {"-C p::sys_read(", "not closed"},
                              {"-C p::sys_read():int,int:fd", "2 types and 1 value"},
                              {"-C p::sys_read():int", "expected ':' and values"},
                              {"-H p::sys_read():char*:buf", "use -C"},
                              {"-H p::sys_read()", "needs a type"},
                              {{"-C", "p::sys_read():int:fd:fd =="}, "operand"},
                              {"-C p::sys_read():int:$retval", "not known here"},
                              {"-C p::sys_read():strange_t:fd", "no type"},
                              {"-C p::sys_read() -H p::sys_read():int:fd", "--histogram"}});
}

TESTS_OF(argdist, .reports = {{ReportKind::aggregate, {"-C", "p::sys_read()"}}},
         .events = {"-C p::sys_getppid():char*:$COMM", "probes --calls 5"}, .alone = true,
         .nothing_when_idle = true,
         .stress = total_row("probes --calls {n}", 100000, "count", "calls",
                             "-C p::sys_getppid():u64:$PID"),
         .long_run = {{.arguments = "-C p::sys_read():int:fd"}});

}  // namespace
}  // namespace coretap::tooltest
