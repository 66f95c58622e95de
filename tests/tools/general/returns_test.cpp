// Limits of user probes: programs that unwind must end as if untraced, and no value in a red zone
// may change.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

constexpr int kCalls = 10;
const std::string kOutcome = "10 calls, 5 caught, 20 destroyed";

struct Traced {
  Report report;
  std::string outcome;
};
Traced trace_unwinding(const Strings& tool) {
  const std::string file = ::testing::TempDir() + "/unwinds." + std::to_string(getpid());
  ::unlink(file.c_str());
  auto report = of_command(tool, {workload_path("unwinds"), std::to_string(kCalls), file});
  return {std::move(report), slurp(file)};
}

std::string in_unwinds(const std::string& function) {
  return workload_path("unwinds") + ":" + function;
}

TOOL_TEST(Returns, ExceptionsAndCancelledThreadsPass) {
  // An exception ends 5 of 10 calls; waits() never returns.
  for (auto& tool :
       std::vector<Strings>{{"funclatency", "-F", in_unwinds("passed"), in_unwinds("throws_odd"),
                             in_unwinds("waits")},
                            {"funcslower", "-u", "0", in_unwinds("passed"), in_unwinds("waits")},
                            {"trace", "r:" + in_unwinds("passed"), "r:" + in_unwinds("waits")},
                            {"trace", "r:" + in_unwinds("passed") + " \"%d\", $latency"},
                            {"funccount", "r:" + in_unwinds("passed"), "r:" + in_unwinds("waits")},
                            {"gethostlatency"},
                            {"deadlock"}}) {
    SCOPED_TRACE(join(tool));
    auto traced = trace_unwinding(tool);
    EXPECT_EQ(traced.outcome, kOutcome);
    if (tool.size() == 1) continue;
    auto passed = lines_with(traced.report.body, {{"target", "passed"}});
    const bool counts = tool[0] == "funccount" || tool[0] == "funclatency";
    auto seen = counts ? sum(passed, "count") : passed.size();
    EXPECT_TRUE(lines_with(traced.report.body, {{"target", "waits"}}).empty());
    EXPECT_EQ(seen, kCalls / 2u);
  }
}

TOOL_TEST(Returns, OfFunctionsThatEndByAJump) {
  auto timed =
      trace_unwinding({"funclatency", "-F", in_unwinds("ends_elsewhere"), in_unwinds("last")});
  auto by = by_target(timed.report);
  EXPECT_EQ(by.at("ends_elsewhere")["count"].u64(), kCalls);
  EXPECT_EQ(by.at("last")["count"].u64(), 2 * kCalls);
  EXPECT_EQ(timed.report.lost("unmatched"), 0u);
  // Traced alone: its return is also the return of all calls of the other function.
  expect_refusals("trace", {{"r:" + in_unwinds("ends_elsewhere"), "--return-trampoline", 3}});
  auto forced =
      trace_unwinding({"trace", "--return-trampoline", "r:" + in_unwinds("ends_elsewhere")});
  EXPECT_EQ(forced.report.body.size(), kCalls);
}

/// The kernel's return probe would end the program with SIGILL, and leave out nested calls.
TOOL_TEST(Returns, SwitchedStacksAndManyNestedCalls) {
  constexpr unsigned kDeep = 150;
  TemporaryDirectory directory;
  const auto program = workload_path("coroutines"), file = directory.path() + "/outcome";
  const auto switches = program + ":switches", nests = program + ":nests";
  for (auto& tool : std::vector<Strings>{{"funclatency", "-F", switches, nests},
                                         {"funcslower", "-u", "0", switches, nests},
                                         {"trace", "r:" + switches, "r:" + nests},
                                         {"funccount", "r:" + switches, "r:" + nests}}) {
    SCOPED_TRACE(join(tool));
    auto report = of_command(tool, {program, std::to_string(kDeep), file});
    const auto outcome = slurp(file);
    ASSERT_EQ(outcome.size(), 2 * kDeep + 4) << outcome;
    EXPECT_TRUE(outcome.starts_with("0101010101") && outcome.ends_with("01 150")) << outcome;
    auto seen = [&](const char* function) {
      auto found = lines_with(report.body, {{"target", function}});
      return tool[0] == "funccount" || tool[0] == "funclatency" ? sum(found, "count")
                                                                : found.size();
    };
    // Calls are timed on one stack, and to some depth; calls that are left out are counted.
    EXPECT_EQ(seen("switches") + report.lost("unmatched"), 2 * kDeep);
    EXPECT_EQ(seen("nests") + report.lost("untracked"), kDeep);
    EXPECT_GE(seen("switches"), kDeep);
    EXPECT_GT(seen("nests"), 0u);
  }
}

/// A workload of hand-written instructions.
std::string redzone() {
  auto file = workload_path("redzone");
  if (::access(file.c_str(), X_OK)) throw Skip("its instructions are those of x86-64");
  return file;
}

TOOL_TEST(Returns, RedZonesStayAsTheyAre) {
  const auto file = redzone();
  Strings tool{"funccount", "--json", "-p", "{pid}"};
  std::size_t before = tool.size();
  for (auto kind :
       {"nop", "nop2", "nop5", "nop10", "jmp", "jcc", "test", "load", "store", "xchg", "usdt"}) {
    tool.push_back(file + ":kept_" + kind);
    tool.push_back(file + ":kept_" + kind + "+0xf");
  }
  tool.push_back("u:" + file + ":passed");
  // Instructions that this kernel would corrupt, or never hits, are rejected.
  const std::map<std::string, std::string> refusals = {{"kept_nop5+0xf", "red zone"},
                                                       {"kept_usdt+0xf", "red zone"},
                                                       {"passed", "red zone"},
                                                       {"kept_nop10+0xf", "cannot probe"},
                                                       {"kept_xchg+0xf", "for a nop"}};
  std::erase_if(tool, [&](auto& place) {
    auto refusal = refusals.find(place.substr(place.rfind(':') + 1));
    if (refusal == refusals.end()) return false;
    auto tried = run({tool_path("funccount"), "--duration", "0.1", place});
    if (tried.status) expect_contains(tried.err, {refusal->second});
    return tried.status == 3;
  });
  auto seen = observe(tool, "redzone --hits 2000");
  EXPECT_EQ(seen.truth["changed"].u64(), 0u);
  EXPECT_EQ(sum(seen.report().body, "count"), seen.truth["hits"].u64() * (tool.size() - before));
}

TOOL_TEST(Returns, EntriesAreProbedWhereTheyCostLeast) {
  const auto in = [](auto name) { return redzone() + ":" + name; };
  const auto looped = in("looped"), pushed = in("pushed"), cleared = in("cleared"),
             lowered = in("lowered"), second = "p:" + cleared + " (arg2 == arg1 * 2)";
  auto all = observe_all(
      {{"funccount", "--json", "-p", "{pid}", looped, pushed, cleared, lowered, in("led"),
        in("shared")},
       {"trace", "--json", "-p", "{pid}", "p:" + pushed + " (arg2 == arg1 * 2)", second},
       {"trace", "--json", "-p", "{pid}", "p:" + cleared + " (arg1 >= 0)", "r:" + lowered},
       {"funclatency", "--json", "-F", "-p", "{pid}", pushed, cleared, lowered},
       {"funcslower", "--json", "-p", "{pid}", "-u", "0", "-a", "2", cleared},
       {"stackcount", "--json", "-p", "{pid}", lowered, cleared}},
      "redzone --hits 500");
  EXPECT_EQ(all.truth["changed"].u64(), 0u);
  EXPECT_EQ(all.report(0).body.size(), 6u);
  for (auto& row : all.report(0).body) EXPECT_EQ(row["count"].u64(), 500u);
  for (int i : {1, 2}) EXPECT_EQ(all.report(i).body.size(), 1000u);
  EXPECT_EQ(sum(all.report(3).body, "count"), 1500u);
  for (auto& row : all.report(5).body) {
    EXPECT_EQ(row["count"].u64(), 500u);
    EXPECT_TRUE(has_frame(row, "user_stack", "main"));
  }
  auto steps = [](Strings words) {
    words.insert(words.begin() + 1, "--explain");
    return contains(said_by(words), "single-step");
  };
  for (auto& place : {pushed, cleared, lowered}) EXPECT_FALSE(steps({"funccount", place})) << place;
  for (auto& place : {looped, in("led"), in("shared")})
    EXPECT_TRUE(steps({"funccount", place})) << place;
  EXPECT_FALSE(steps({"stackcount", cleared}));
  EXPECT_TRUE(steps({"stackcount", lowered}));
  EXPECT_TRUE(steps({"trace", second}));
  EXPECT_FALSE(steps({"trace", "p:" + cleared + " \"%d\", arg1"}));
}

// At a function's entry the return address is on top of the stack, with or without tables.
TOOL_TEST(Returns, CallersOfCodeWithoutTables) {
  auto seen = observe({"stackcount", "--json", "-p", "{pid}", redzone() + ":kept_nop"},
                      "redzone --hits 10");
  ASSERT_EQ(seen.report().body.size(), 1u);
  EXPECT_TRUE(has_frame(seen.report().body[0], "user_stack", "main"));
}

}  // namespace
}  // namespace coretap::tooltest
