// stackcount against a program that reaches functions in known stacks a known number of times.
#include "probes.hpp"

namespace coretap::tooltest {
namespace {

Observed count_stacks(const std::string& words, const std::string& workload = "calls --calls 20") {
  return observe("stackcount --json --strict -p {pid} " + words, workload);
}

bool is_called_by(const Json& line, const Strings& callers) {
  auto frames = line["user_stack"].strings();
  auto has = [](auto& frame, auto& name) { return contains(frame, name); };
  return !std::ranges::search(frames, callers, has).empty();
}

TOOL_TEST(Stackcount, UserFunctionsByTheirCallers) {
  auto seen = count_stacks(calls("recursive_call"));
  auto rows = seen.report().body;
  const auto n = seen.truth["calls"].u64();
  std::uint64_t whole = 0;
  for (auto& line : rows) {
    EXPECT_TRUE(line["kernel_stack"].strings().empty()) << "that of the trap";
    EXPECT_TRUE(is_called_by(line, "recursive_call"));
    whole += is_called_by(line, "recursive_call recursive_call main");
    EXPECT_EQ(line["count"].u64(), n);
  }
  EXPECT_EQ(rows.size(), seen.truth["recursive"].u64() / n) << "a stack per depth";
  EXPECT_EQ(whole, rows.size() - 1);
}

TOOL_TEST(Stackcount, SystemCallsWithBothStacks) {
  auto seen = count_stacks("sys_clock_nanosleep");
  const auto n = seen.truth["calls"].u64();
  EXPECT_EQ(seen.report().sum("count"), 3 * n);
  for (auto& line : seen.report().body) {
    EXPECT_FALSE(line["kernel_stack"].strings().empty());
    EXPECT_EQ(line["comm"].str(), "calls");
  }
  auto kernel = count_stacks("-K sys_clock_nanosleep").report(),
       user = count_stacks("-U sys_getppid").report();
  EXPECT_EQ(kernel.sum("count"), 3 * n);
  EXPECT_EQ(kernel.body.size(), 1u) << "the kernel's stack is the same for each caller";
  EXPECT_EQ(user.sum("count"), n);
  for (auto& line : user.body)
    EXPECT_TRUE(is_called_by(line, "main") && line["kernel_stack"].strings().empty());
}

// Functions of books that no kernel from 5.10 on has.
TOOL_TEST(Stackcount, FunctionsThatWereRenamed) {
  require_tool("stackcount");
  const int status = has_kprobes() ? 2 : 3;
  expect_refusals("stackcount", {{"_do_fork", "use t:sched:sched_process_fork", status},
                                 {"generic_make_request", "use t:block:block_bio_queue", status}});
  if (!has_kprobes())
    expect_refused("stackcount __alloc_pages_nodemask", {"use t:kmem:mm_page_alloc"}, 3);
}

// The first line says what the options select.
TOOL_TEST(Stackcount, BannersOfToolsWithStacks) {
  for (auto& [words, says] : {std::pair{"offcputime -K 0.1", "(us) by kernel stack for"},
                              {"offcputime -U 0.1", "(us) by user stack for"},
                              {"offcputime 0.1", "by kernel and user stack for"},
                              {"profile -K -C 0 0.1", "Sampling CPU 0 by kernel stack ("},
                              {"profile 0.1", "Sampling all CPUs by kernel and user stack for"}}) {
    require_tool(Strings(words).at(0));
    expect_contains(result_of(words).err, {says});
  }
}

// Each report has the counts since the one before.
TOOL_TEST(Stackcount, Intervals) {
  auto seen = count_stacks("-i 0.1 " + calls("inner_call"), "calls --calls 40 --sleep-us 3000");
  std::uint64_t intervals = 0, lines = 0, calls = 0;
  for (auto& line : seen.report().body) {
    if (line["type"].str() == "report") {
      intervals++;
    } else {
      lines++;
      calls += line["count"].u64();
    }
  }
  EXPECT_GT(intervals, 2u);
  EXPECT_GT(lines, 1u) << "the same stack in several intervals";
  EXPECT_EQ(calls, seen.truth["calls"].u64());
}

TOOL_TEST(Stackcount, FoldedAndText) {
  auto seen =
      observe_all({"stackcount -f -U -p {pid} sys_getppid", "stackcount -U -p {pid} sys_getppid"},
                  "calls --calls 7");
  auto& line = seen.text(0);
  EXPECT_TRUE(line.starts_with("calls;") && line.ends_with(" 7\n")) << line;
  expect_contains(line, {";main;"});
  expect_contains(seen.text(1), {"    main\n", fmt::format("calls ({})\n        7\n", seen.pid)});
}

TESTS_OF(stackcount, .events = {"sys_getppid", "calls --calls 5 --sleep-us 100"},
         .stress = stack_row("probes --calls {n}", 100000, "calls", "sys_getppid"),
         .long_run = {{.arguments = "t:sched:sched_process_fork", .holds_results = true}});

}  // namespace
}  // namespace coretap::tooltest
