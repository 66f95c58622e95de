// funcslower against a program whose calls take a known time.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

Observed slow_calls(const std::string& words) {
  return observe("funcslower --json -p {pid} " + words, "calls --calls 10 --sleep-us 2000");
}

TOOL_TEST(Funcslower, SlowCallsWithArgumentsAndResult) {
  auto seen = slow_calls("-a 2 -U " + calls("timed_call") + " " + calls("inner_call"));
  auto report = seen.report();
  const auto n = seen.truth["calls"].u64();
  EXPECT_EQ(report.body.size() + report.lost("filtered"), 2 * n);
  std::uint64_t number = 0;
  for (auto& event : report.body) {
    if (event["target"].str() == "inner_call") continue;  // slow only on a busy machine
    EXPECT_EQ(event["target"].str(), "timed_call");
    EXPECT_GE(event["latency_ns"].u64(), 2'000'000u);
    EXPECT_EQ(event["argument_values"].strings(), Strings(fmt::format("{:#x} 0x7d0", number)));
    EXPECT_EQ(std::stoull(event["return_value"].str(), nullptr, 16), 2 * number);
    EXPECT_TRUE(has_frame(event, "user_stack", "main"));
    number++;
  }
  EXPECT_EQ(number, n);
}

TOOL_TEST(Funcslower, SystemCalls) {
  auto seen = slow_calls("-u 1500 -a 1 -K sys_clock_nanosleep sys_getppid");
  auto report = seen.report();
  ASSERT_EQ(report.body.size(), 3 * seen.truth["calls"].u64());
  EXPECT_GE(report.lost("filtered"), seen.truth["calls"].u64()) << "getppid is fast";
  for (auto& event : report.body) {
    EXPECT_TRUE(event["target"].str().ends_with("sys_clock_nanosleep"));
    EXPECT_EQ(event["argument_values"].strings(), Strings("0x1")) << "CLOCK_MONOTONIC";
    EXPECT_EQ(event["return_value"].str(), "0000000000000000");
    expect_fields(event, {{"result", 0}, {"error", nullptr}});
    EXPECT_FALSE(event["kernel_stack"].strings().empty());
  }
  EXPECT_TRUE(slow_calls("-m 100 sys_clock_nanosleep").report().body.empty());
}

// Results and arguments of system calls in the form of strace; those of functions are numbers.
TOOL_TEST(Funcslower, SystemCallsInWords) {
  const std::vector<Strings> tools = {
      Strings("funcslower --json -u 0 -a 3 -p {pid} sys_unlinkat"),
      Strings("funcslower -u 0 -a 3 -p {pid} sys_unlinkat"),
      Strings("funcslower -m 10 -a 2 -p {pid} sys_clock_nanosleep")};
  auto seen = watch_all({{"syscalls --signals 0 --restarts 0", tools}}).at(0);
  ASSERT_EQ(seen.body().size(), seen.number("failed"));
  for (auto& event : seen.body()) {
    expect_fields(event, {{"result", -ENOENT}, {"error", "ENOENT"}});
    EXPECT_EQ(event["return_value"].str(), "fffffffffffffffe");
    EXPECT_EQ(event["argument_values"].strings().at(2), fmt::format("{:#x}", AT_REMOVEDIR));
  }
  expect_contains(seen.text(1), {" ENOENT ", "unlinkat", "dfd=AT_FDCWD", "flag=AT_REMOVEDIR"});
  expect_contains(seen.text(2), {" 0 ", "which_clock=CLOCK_MONOTONIC"});
}

std::string nested(const std::string& functions) {
  return workload_path("nested") + ":" + functions;
}

/// Calls by caller and function, "n_outer n_leaf"; of an outermost one only the function.
Counts by_caller(const Report& report) {
  std::map<std::uint64_t, Json> by_id;
  for (auto& call : report.body) by_id.emplace(call["call_id"].u64(), call);
  Counts all;
  for (auto& call : report.body) {
    auto name = call["target"].str();
    auto start = call["monotonic_ns"].u64();
    if (call["parent_id"].is_null()) {
      EXPECT_EQ(call["depth"].u64(), 0u);
    } else {
      auto& caller = by_id.at(call["parent_id"].u64());
      name.insert(0, caller["target"].str() + ' ');
      EXPECT_EQ(call["depth"].u64(), caller["depth"].u64() + 1);
      EXPECT_EQ(call["tid"].u64(), caller["tid"].u64());
      EXPECT_GE(start, caller["monotonic_ns"].u64());
      if (call["ending"].str() == "return" && caller["ending"].str() == "return") {
        EXPECT_LE(start + call["latency_ns"].u64(),
                  caller["monotonic_ns"].u64() + caller["latency_ns"].u64());
      }
    }
    all[name]++;
  }
  return all;
}

Counts times(std::uint64_t n, Counts each) {
  for (auto& [name, count] : each) count *= n;
  return each;
}

const Counts kPlain = {{"n_outer", 1},         {"n_outer n_middle", 2}, {"n_outer n_leaf", 1},
                       {"n_middle n_leaf", 4}, {"n_again", 1},          {"n_again n_again", 4},
                       {"n_again n_leaf", 1}};

/// Handlers on stacks above those of their threads, longjmp, a jump at the end.
TOOL_TEST(Funcslower, TreesOfThreads) {
  constexpr int kThreads = 8, kRounds = 20;
  auto seen = observe("funcslower --json --tree -a 1 -p {pid} " + nested("n_*"),
                      fmt::format("nested --threads {} --rounds {} --jump --signal --alternate "
                                  "--tail --end-inside",
                                  kThreads, kRounds));
  auto report = seen.report();
  Counts round = kPlain;
  round.insert({{"n_catches", 1},
                {"n_catches n_jumped", 1},
                {"n_catches n_leaf", 1},
                {"n_signalled", 1},
                {"n_signalled n_handled", 1},
                {"n_handled n_leaf", 1},
                {"n_signalled n_leaf", 1},
                {"n_tail", 1},
                {"n_tail n_jumped_to", 1},
                {"n_jumped_to n_leaf", 1}});
  auto wanted = times(kThreads * kRounds, round);
  wanted["n_enters"] = wanted["n_enters n_stays"] = kThreads;
  EXPECT_EQ(by_caller(report), wanted);
  EXPECT_EQ(report.body.size() - 2 * kThreads,
            seen.truth["calls"].u64() - kThreads * kRounds /* n_jumps, which has no return */);
  // Their sum is the time of the outermost call, and calls of a tree follow each other.
  std::uint64_t total = 0, selves = 0, outermost = 0, argument = 0;
  for (auto& call : report.body) {
    auto name = call["target"].str(), ending = call["ending"].str();
    EXPECT_EQ(ending, name == "n_jumped"                        ? "unseen"
                      : name == "n_enters" || name == "n_stays" ? "exit"
                                                                : "return");
    EXPECT_EQ(call["return_value"].is_null(), ending != "return");
    if (ending == "unseen") {
      EXPECT_TRUE(call["latency_ns"].is_null());
      continue;
    }
    if (call["depth"].u64() == 0) {
      EXPECT_EQ(selves, total);
      total = call["latency_ns"].u64();
      selves = 0;
      outermost = name == "n_again";
      argument = 5;
    }
    selves += call["self_ns"].u64();
    if (name != "n_again") continue;
    EXPECT_EQ(outermost, 1u);
    EXPECT_EQ(call["argument_values"].strings(), Strings(fmt::format("{:#x}", argument--)));
  }
  EXPECT_EQ(report.lost("unmatched"), 0u);
}

TOOL_TEST(Funcslower, TreesAreCutByExecAndByTheEnd) {
  auto seen = watch_all(
      {{"nested --rounds 3 --exec", {"funcslower --json --tree -p {pid} " + nested("n_*")}},
       {"nested --rounds 3 --stay", {"funcslower --json --tree -p {pid} " + nested("n_*")}}});
  auto executed = seen.at(0).report();
  auto wanted = times(6, kPlain);
  wanted["n_enters"] = wanted["n_enters n_stays"] = 1;
  EXPECT_EQ(by_caller(executed), wanted);
  EXPECT_EQ(counts_by(executed, "ending", nullptr),
            (Counts{{"exec", 2}, {"return", seen.at(0).truth["calls"].u64()}}));
  auto open = seen.at(1).report();
  wanted = times(3, kPlain);
  wanted["n_enters"] = wanted["n_enters n_stays"] = 1;
  EXPECT_EQ(by_caller(open), wanted);
  for (auto& call : lines_with(open.body, {{"ending", "open"}}))
    EXPECT_FALSE(call["latency_ns"].is_null());
  EXPECT_EQ(counts_by(open, "ending", nullptr)["open"], 2u);
}

TOOL_TEST(Funcslower, TreesLeaveShortCallsOut) {
  auto seen =
      watch_all({{"nested --rounds 2 --wide 30 --sleep-us 1000 --depth 3",
                  {Strings("funcslower --json --tree -u 3000 -p {pid} " + nested("n_*")),
                   Strings("funcslower --json --tree --tree-size 10 -p {pid} " + nested("n_*")),
                   Strings("funcslower --tree -a 1 -p {pid} " + nested("n_*"))}}})
          .at(0);
  auto shortened = seen.report(0);
  std::uint64_t hidden = 0;
  for (auto& call : shortened.body) {
    EXPECT_GE(call["latency_ns"].u64(), 3'000'000u);
    if (call["depth"].u64() == 0) hidden += call["hidden_calls"].u64();
    if (call["target"].str() != "n_wide") continue;
    // On a slow machine some leaves are long.
    auto leaves = lines_where(
        shortened, [&](auto& leaf) { return leaf["parent_id"].text() == call["call_id"].text(); });
    EXPECT_EQ(call["hidden_calls"].u64() + leaves.size(), 30u);
    EXPECT_EQ(call["self_ns"].u64() + call["hidden_ns"].u64() + sum(leaves, "latency_ns"),
              call["latency_ns"].u64());
  }
  EXPECT_EQ(lines_with(shortened.body, {{"target", "n_wide"}}).size(), 2u);
  EXPECT_EQ(shortened.body.size() + shortened.lost("filtered"), seen.truth["calls"].u64());
  EXPECT_LE(hidden, shortened.lost("filtered"));
  auto bounded = seen.report(1);
  for (auto& call : lines_with(bounded.body, {{"target", "n_wide"}}))
    expect_fields(call, {{"omitted_calls", 20}});
  EXPECT_EQ(lines_with(bounded.body, {{"target", "n_leaf"}}).size() + 2 * 20,
            seen.truth["leaves"].u64());
  EXPECT_EQ(bounded.lost("filtered"), 2u * 20u);
  auto text = seen.text(2);
  expect_contains(
      text, {"CALL\n", " n_outer(0x1) {\n", "   n_middle(0xb) {\n", "     n_leaf(0xc) = 0xd;\n",
             "   } = 0xd; /* n_middle */\n", " n_again(0x3) {\n", "     n_again(0x1) {\n"});
}

TESTS_OF(funcslower, .events = {"-u 50 sys_clock_nanosleep", "calls --calls 5 --sleep-us 500"},
         .user_stacks = {"-U"},
         .stress = event_row("probes --calls {n}", 100000, "calls", "-u 0 sys_getppid"),
         .long_run = {{.arguments = "-m 500"}});

}  // namespace
}  // namespace coretap::tooltest
