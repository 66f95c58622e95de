// User stacks without frame pointers, against call chains that the workload knows by name.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using Stacks = std::vector<Strings>;

constexpr char kNotReady[] = "file not read yet";

/// Skips workloads that the build could not make.
void require_workload(const std::string& name) {
  if (::access(workload_path(name).c_str(), X_OK))
    throw Skip("not built for this machine: " + name);
}

// ---- contents of reports ----

struct UserStack {
  Strings frames;
  std::string cut;  ///< why it is incomplete; empty: complete
  std::uint64_t guessed, count;

  std::string text() const {
    std::string all = std::to_string(count) + " times, " + std::to_string(guessed) + " guessed, " +
                      (cut.empty() ? "whole" : cut) + ":";
    for (auto& f : frames) all += " " + f;
    return all;
  }
};

UserStack stack_of(const Json& party, std::uint64_t count) {
  auto cut = party["user_stack_truncated"];
  return {party["user_stack"].strings(), cut.is_null() ? "" : cut.str(),
          party["user_stack_guessed"].u64(), count};
}

/// Frames from the leaf on; a truth's "..." matches any frames, "?" one. Returns the number of
/// frames matched.
std::optional<std::size_t> match(const Strings& truth, const Strings& frames, std::size_t t = 0,
                                 std::size_t f = 0) {
  if (t == truth.size()) return f;
  if (truth[t] == "...") {
    for (; f <= frames.size(); f++)
      if (auto end = match(truth, frames, t + 1, f)) return end;
    return std::nullopt;
  }
  if (f == frames.size() || (truth[t] != "?" && truth[t] != frames[f])) return std::nullopt;
  return match(truth, frames, t + 1, f + 1);
}

/// Index of the truth that this stack matches.
std::optional<std::size_t> which(const Stacks& truths, const UserStack& stack) {
  for (std::size_t i = 0; i < truths.size(); i++)
    if (match(truths[i], stack.frames)) return i;
  return std::nullopt;
}

Stacks truths_of(const Json& truth) {
  Stacks all;
  for (auto& stack : truth["stacks"].items()) all.push_back(stack.strings());
  return all;
}

/// After main or a thread's function come only the frames of its start.
void expect_start(const Strings& truth, const UserStack& stack) {
  auto rest = stack.frames.size() - *match(truth, stack.frames);
  if (truth.back() == "main") {
    EXPECT_EQ(stack.frames.back(), "_start") << stack.text();
    EXPECT_LE(rest, 3u) << stack.text();
  } else {
    EXPECT_LE(rest, 2u) << stack.text();
  }
}

struct Expected {
  std::uint64_t least_guessed = 0, most_guessed = 0;
  /// Share in the chain, at least; the rest is the start and the end, long in guests of arm64.
  double known = kArm64 ? 0.25 : 0.8;
  Strings sometimes = {};  ///< reasons that a quarter may have
};

/// Shortly after dlopen new mappings are unknown, or the previous ones are still listed.
const Expected kYoung{
    .sometimes = kArm64 ? Strings{"no mapping", "no unwind information", "stack goes backwards"}
                        : Strings{"no mapping", "no unwind information"}};

/// A thread's memory is released before its exit.
/// On arm64 also where the kernel has marked pages as old, which processors without a hardware
/// access flag cannot read until the program itself has.
const Expected kEnding{.sometimes =
                           kArm64 ? Strings{"exiting", "stack not readable"} : Strings{"exiting"}};

/// All stacks are complete, and nearly all match the workload's; they may be cut only while the
/// tables are built.
void expect_whole(const std::vector<UserStack>& stacks, const Stacks& truths,
                  const Expected& expected) {
  std::uint64_t all = 0, waiting = 0, known = 0, excused = 0;
  std::vector<std::uint64_t> each(truths.size());
  std::string others;
  for (auto& stack : stacks) {
    all += stack.count;
    if (stack.cut == kNotReady) {
      waiting += stack.count;
      continue;
    }
    if (std::ranges::count(expected.sometimes, stack.cut)) {
      excused += stack.count;
      others += stack.text() + "\n";
      continue;
    }
    EXPECT_EQ(stack.cut, "") << stack.text();
    auto truth = which(truths, stack);
    if (!truth) {
      // Preempted or waiting for memory elsewhere in the chain: the same frame may be below.
      EXPECT_LE(stack.guessed, expected.most_guessed) << stack.text();
      others += stack.text() + "\n";
      continue;
    }
    known += stack.count;
    each[*truth] += stack.count;
    expect_start(truths[*truth], stack);
    EXPECT_GE(stack.guessed, expected.least_guessed) << stack.text();
    EXPECT_LE(stack.guessed, expected.most_guessed) << stack.text();
  }
  EXPECT_GT(all, 0u);
  EXPECT_LE(waiting, all / 2) << "the tables came late";
  EXPECT_LE(excused, all / 4 + 2) << others;
  EXPECT_GE(static_cast<double>(known) + 3,
            static_cast<double>(all - waiting - excused) * expected.known)
      << others;
  for (std::size_t i = 0; i < truths.size(); i++)
    EXPECT_GT(each[i], 0u) << "never seen: stack " << i << "\n" << others;
}

// ---- several workloads under one tracer ----

struct Case {
  Strings arguments;
  Expected expected = {};
  std::string workload = "unwind";
};

struct Traced {
  std::vector<UserStack> stacks;
  Stacks truths;
};

struct TracedCases {
  Report report;
  std::vector<Traced> cases;
};

/// They run at the same time: each gets a share of `ms`.
TracedCases trace_cases(const std::string& tool, const Strings& options,
                        const std::vector<Case>& cases) {
  require_tool(tool);
  std::vector<std::unique_ptr<Workload>> workloads;
  std::string pids;
  auto ms = std::to_string(static_cast<std::uint64_t>(
      std::min(slowness(), 4.0) * (300 + 150 * static_cast<double>(cases.size() - 1))));
  for (auto& c : cases) {
    require_workload(c.workload);
    workloads.push_back(std::make_unique<Workload>(c.workload, Strings{"--ms", ms} + c.arguments,
                                                   Workload::How{.linger = true}));
    pids += (pids.empty() ? "" : ",") + workloads.back()->id();
  }
  Tracer tracer(tool, options + Strings{"--json", "-p", pids});
  for (auto& workload : workloads) workload->release();
  std::vector<Traced> traced;
  traced.reserve(workloads.size());
  for (auto& workload : workloads) traced.push_back({{}, truths_of(workload->truth())});
  auto report = tracer.stop();
  for (std::size_t i = 0; i < workloads.size(); i++) {
    for (auto& line : report.body)
      if (line["pid"].i64() == workloads[i]->pid())
        traced[i].stacks.push_back(stack_of(line, line["count"].u64()));
  }
  return {std::move(report), std::move(traced)};
}

const Strings kSampled("-F 199");

/// By samples, with these arguments of the workload, and by its sleeps.
std::vector<std::tuple<std::string, Strings, Strings>> both_ways(const Strings& sampled) {
  return {{"profile", kSampled, sampled}, {"offcputime", {}, "--end sleep"}};
}

void expect_all_whole(const std::string& tool, const Strings& options,
                      const std::vector<Case>& cases) {
  auto observed = trace_cases(tool, options, cases);
  for (std::size_t i = 0; i < cases.size(); i++) {
    std::string name = tool;
    for (auto& word : cases[i].arguments) name += " " + word;
    SCOPED_TRACE(name);
    expect_whole(observed.cases[i].stacks, observed.cases[i].truths, cases[i].expected);
  }
}

/// The workload's stacks with this leaf.
std::vector<UserStack> with_leaf(const Traced& traced, std::string_view leaf) {
  std::vector<UserStack> found;
  for (auto& stack : traced.stacks)
    if (!stack.frames.empty() && stack.frames[0] == leaf) found.push_back(stack);
  return found;
}

// ---- innermost functions ----

TOOL_TEST(Unwind, ChainOfAllKindsOfFrames) {
  auto observed = trace_cases("profile", kSampled, {{"--end spin"}});
  EXPECT_GT(observed.cases[0].truths[0].size(), 44u);
  expect_whole(observed.cases[0].stacks, observed.cases[0].truths, {});
  expect_all_whole("offcputime", {}, {{"--end sleep"}});
}

TOOL_TEST(Unwind, SignalHandlers) {
  expect_all_whole("profile", kSampled, {{"--end trap"}, {"--end returns"}});
}

TOOL_TEST(Unwind, ProcedureLinkageTables) {
  expect_all_whole("profile", kSampled, {{"--end plt", kYoung}, {"--end plt --ibt", kYoung}});
}

// ---- callers of the chain ----

TOOL_TEST(Unwind, Threads) {
  for (auto& [tool, options, end] : both_ways("--end spin"))
    expect_all_whole(tool, options, {{"--way thread" + end, kEnding}});
}

// The tables end within the chain, and frame pointers continue.
TOOL_TEST(Unwind, FramePointersWhereThereIsNoTable) {
  const Expected guessed{.least_guessed = 1, .most_guessed = 1, .sometimes = kYoung.sometimes};
  // On arm64 the instructions of small files show where the link register is.
  const auto& framed = kArm64 ? kYoung : guessed;
  for (auto& [tool, options, end] : both_ways("--end spin"))
    expect_all_whole(tool, options, {{"--way framed" + end, framed}, {"--way jit" + end, guessed}});
}

// Neither: frames below may be right or wrong, but the stack must be marked as incomplete.
TOOL_TEST(Unwind, CodeWithoutTablesIsMarked) {
  for (auto& [tool, options, end] : both_ways("--end spin")) {
    auto observed =
        trace_cases(tool, options, {{"--way bare-odd" + end}, {"--way bare-stack" + end}});
    for (auto& one : observed.cases) {
      std::uint64_t marked = 0;
      std::string seen;
      for (auto& stack : one.stacks) {
        seen += stack.text() + "\n";
        if (!which(one.truths, stack)) continue;
        if (stack.guessed || stack.cut == "no unwind information") marked += stack.count;
        if (stack.guessed) continue;
        EXPECT_TRUE(stack.cut == kNotReady || std::ranges::count(kYoung.sometimes, stack.cut))
            << stack.text();
        EXPECT_EQ(stack.frames.back(), "bare_call") << stack.text();
      }
      EXPECT_GT(marked, 0u) << tool << ":\n" << seen;
    }
    for (auto& stack : observed.cases[0].stacks) EXPECT_EQ(stack.guessed, 0u) << stack.text();
  }
}

// Thousands of mappings, one of which changes continuously.
TOOL_TEST(Unwind, ThousandsOfMappings) {
  expect_all_whole("profile", kSampled,
                   {{"--mappings 8000"}, {"--mappings 8000 --end remap", kYoung}});
}

// Frames in present pages are right, and the stack is marked as incomplete.
TOOL_TEST(Unwind, StackPagesThatAreGone) {
  auto gone = trace_cases("profile", kSampled, {{"--end dropped"}}).cases[0];
  std::uint64_t all = 0, unreadable = 0;
  for (auto& stack : with_leaf(gone, "spin")) {
    all += stack.count;
    if (stack.cut != "stack not readable") continue;
    unreadable += stack.count;
    EXPECT_LT(stack.frames.size(), 20u) << stack.text();
    EXPECT_EQ(std::ranges::count(stack.frames, "drop_callers") + 2, std::ssize(stack.frames))
        << stack.text();
  }
  EXPECT_GT(unreadable * 2, all);
}

// ---- mappings that change ----

TOOL_TEST(Unwind, LibrariesThatTakeEachOthersPlace) {
  for (auto& [tool, options, more] : both_ways("--ms 1500"))
    expect_all_whole(tool, options, {{"--way dlopen" + more, kYoung}});
}

TOOL_TEST(Unwind, NamesBeforeExec) {
  expect_all_whole("profile", kSampled, {{"--then thread --ms 900"}});
  expect_all_whole("offcputime", {}, {{"--then thread --end sleep"}});
}

TOOL_TEST(Unwind, ForkServer) {
  require_workload("unwind");
  auto report = follow("profile" + kSampled, "unwind --end fork --times 200 --ms 5");
  std::vector<UserStack> stacks;
  std::set<std::uint64_t> children;
  std::uint64_t all = 0, not_ready = 0;
  auto truths = truths_of(*report.truth);
  for (auto& line : report.body) {
    stacks.push_back(stack_of(line, line["count"].u64()));
    if (which(truths, stacks.back())) children.insert(line["pid"].u64());
    all += stacks.back().count;
    if (stacks.back().cut == kNotReady) not_ready += stacks.back().count;
  }
  EXPECT_LE(not_ready, all / 4) << "a child has its parent's tables from the beginning";
  // A child ends in the kernel, where its memory is released, and starts with faults: a stack page
  // is absent while it is copied.
  expect_whole(stacks, truths,
               {.known = kArm64 ? 0.1 : 0.3, .sometimes = {"exiting", "stack not readable"}});
  EXPECT_GT(children.size(), 20u);
}

// ---- other kinds of programs ----

TOOL_TEST(Unwind, StaticPrograms) {
  expect_all_whole(
      "profile", kSampled,
      {{"--end trap", {}, "unwind_static"}, {"--way thread", kEnding, "unwind_static"}});
}

TOOL_TEST(Unwind, CodeInTheMiddleOfAPage) {
  expect_all_whole("profile", kSampled,
                   {{"--way main", {}, "unwind_lld"}, {"--end plt", {}, "unwind_lld"}});
}

TOOL_TEST(Unwind, ThirtyTwoBitsAreMarked) {
  require_workload("unwind_narrow");
  if (!has_32_bit_calls()) throw Skip("this kernel runs no 32-bit programs");
  auto report =
      report_of("profile --json --strict -F 199 --" + Strings{workload_path("unwind_narrow")});
  std::uint64_t spinning = 0;
  for (auto& line : report.body) {
    auto stack = stack_of(line, line["count"].u64());
    if (stack.frames.empty() || stack.frames[0] != "narrow_spin") continue;
    spinning += stack.count;
    EXPECT_NE(stack.cut, "") << stack.text();
  }
  EXPECT_GT(spinning, 0u);
}

// ---- options ----

TOOL_TEST(Unwind, FramePointersOnlyAndOff) {
  auto fp = trace_cases("profile", kSampled + "--unwind fp", {{"--end spin"}});
  auto cut = with_leaf(fp.cases[0], "spin");
  EXPECT_FALSE(cut.empty());
  for (auto& stack : cut) {
    // On arm64 some functions have a frame record, and the others are passed over.
    EXPECT_EQ(stack.cut, kArm64 ? "" : "no frame pointers") << stack.text();
    EXPECT_FALSE(which(fp.cases[0].truths, stack)) << stack.text();
    EXPECT_EQ(stack.guessed, 0u) << stack.text();
  }
  auto off = trace_cases("profile", kSampled + "--unwind off", {{"--end spin"}});
  auto one = with_leaf(off.cases[0], "spin");
  EXPECT_FALSE(one.empty());
  for (auto& stack : one) {
    EXPECT_EQ(stack.frames.size(), 1u) << stack.text();
    EXPECT_EQ(stack.cut, "--unwind off") << stack.text();
  }
}

TOOL_TEST(Unwind, MemoryIsBounded) {
  for (std::string memory : {kArm64 ? "16K" : "64K", "4K"}) {
    auto little = trace_cases("offcputime", Strings{"--unwind-memory", memory}, {{"--end sleep"}});
    std::uint64_t refused = 0;
    for (auto& one : little.cases)
      for (auto& stack : one.stacks) {
        EXPECT_FALSE(which(one.truths, stack)) << stack.text();
        if (stack.cut == "no memory for unwind tables") refused += stack.count;
      }
    EXPECT_GT(refused, 0u);
    EXPECT_TRUE(contains(little.report.err, "--unwind-memory")) << little.report.err;
  }
}

// ---- programs in memory, and in namespaces ----

Strings in_namespace(const Strings& command) {
  if (run({"/bin/sh", "-c", "unshare -pfm --mount-proc true"}).status)
    throw Skip("no pid namespaces here (unshare -pfm --mount-proc)");
  return Strings{"/usr/bin/env", "unshare", "-pfm", "--kill-child", "--mount-proc"} + command;
}

/// Of the workload with default options.
void expect_default_whole(const Report& report) {
  Workload same("unwind", "--ms 1");
  same.release();
  std::vector<UserStack> stacks;
  for (auto& line : report.body)
    if (line["comm"].str() == "unwind" && !line["user_stack"].strings().empty())
      stacks.push_back(stack_of(line, line["count"].u64()));
  // The program may be seen at its start and its end.
  const Expected whole_life{.sometimes = kYoung.sometimes + kEnding.sometimes};
  expect_whole(stacks, truths_of(same.truth()), whole_life);
}

TOOL_TEST(Unwind, ProgramsInMemory) {
  require_workload("unwind");
  expect_default_whole(follow("profile" + kSampled, "unwind --memory"));
}

TOOL_TEST(Unwind, WorkloadInAPidNamespace) {
  require_workload("unwind");
  Process inside({.argv = in_namespace({workload_path("unwind"), "--hold"}), .stdin_pipe = true});
  ASSERT_TRUE(inside.await([](auto& out, auto&) { return contains(out, "ready"); }))
      << inside.err();
  auto outer = std::to_string(inside.pid());
  auto pid = words(slurp("/proc/" + outer + "/task/" + outer + "/children")).at(0);
  Tracer tracer("profile", kSampled + ("--json -p " + pid));
  inside.write_stdin("x");
  ASSERT_EQ(inside.wait(), 0) << inside.err();
  expect_default_whole(tracer.stop());
}

TOOL_TEST(Unwind, ToolInAPidNamespace) {
  require_workload("unwind");
  require_tool("profile");
  auto both = run(in_namespace(Strings{tool_path("profile")} + kSampled +
                               Strings{"--json", "--", workload_path("unwind")}));
  ASSERT_EQ(both.status, 0) << both.err;
  expect_default_whole(parse_report(both.out, both.err));
}

// ---- the other tools ----

TOOL_TEST(Unwind, Allocations) {
  require_workload("unwind");
  auto seen = observe("memleak --json -o 0 -i 1000 -p {pid}", "unwind --end malloc");
  std::vector<UserStack> stacks;
  for (auto& line : seen.body())
    if (line["bytes"].u64() == line["count"].u64() * 1000)
      stacks.push_back(stack_of(line, line["count"].u64()));
  expect_whole(stacks, truths_of(seen.truth), {});
}

TOOL_TEST(Unwind, CallersOfOpen) {
  require_workload("unwind");
  auto seen = observe("opensnoop --json --callers -p {pid}", "unwind --end open");
  std::vector<UserStack> stacks;
  for (auto& event : seen.body()) stacks.push_back(stack_of(event, 1));
  EXPECT_EQ(stacks.size(), 100u);
  expect_whole(stacks, truths_of(seen.truth), {.known = 1});
}

// The writer of the pipe has the chain, and another thread reads the pipe.
TOOL_TEST(Unwind, Wakers) {
  for (std::string tool : {"wakeuptime", "offwaketime", "chaintrace"}) {
    SCOPED_TRACE(tool);
    require_workload("unwind");
    const std::string stacks = tool == "wakeuptime" ? "--user-stacks" : "";
    auto seen = observe(tool + " --json -p {pid} " + stacks, "unwind --end wake");
    std::vector<UserStack> writers, readers;
    for (auto& line : seen.body()) {
      auto wakers = line["wakers"].items();
      if (wakers.empty() || wakers[0]["context"].str() != "task" ||
          wakers[0]["comm"].str() != "unwind")
        continue;
      writers.push_back(stack_of(wakers[0], line["count"].u64()));
      if (line.has("user_stack")) readers.push_back(stack_of(line, line["count"].u64()));
    }
    expect_whole(writers, truths_of(seen.truth), {});
    if (tool != "wakeuptime") expect_whole(readers, {{"...", "reader_main"}}, {});
  }
}

// ---- ordinary programs ----

// Each call of its function calls the same functions of the shell, which exports their names.
TOOL_TEST(Unwind, FramesOfARecursiveScript) {
  require_tool("profile");
  constexpr char kScript[] =
      "f() { if [ $1 -gt 0 ]; then f $(($1-1)); else printf -v s %25000s; : ${s// /xy}; fi; }; f $0";
  std::vector<std::ptrdiff_t> usual;  // calls in most stacks, by depth
  for (std::string depth : {"0", "2", "4"}) {
    std::uint64_t all = 0, whole = 0;
    std::map<std::ptrdiff_t, std::uint64_t> calls;
    const Strings command{"bash", "-c", kScript, depth};
    for (auto& line : report_of("profile -F 499 -U --json --" + command).body) {
      auto stack = stack_of(line, line["count"].u64());
      all += stack.count;
      if (!stack.cut.empty() || stack.frames.empty()) continue;  // in exec it has no frames
      whole += stack.count;
      // The dynamic linker's start, before the program's.
      EXPECT_TRUE(stack.frames.back() == "_start" || stack.frames.back() == "_dl_start_user" ||
                  (kArm64 && stack.frames.back() == "[unknown]"))  // it has no symbols there
          << stack.text();
      calls[std::ranges::count(stack.frames, "execute_command_internal")] += stack.count;
    }
    ASSERT_GT(whole, all / (kArm64 ? 4 : 2));  // their guests are slow: tables come late
    usual.push_back(std::ranges::max_element(calls, {}, [](auto& c) { return c.second; })->first);
  }
  EXPECT_GT(usual[1], usual[0]);
  EXPECT_EQ(usual[2] - usual[1], usual[1] - usual[0]);
}

std::size_t descriptors_of(pid_t pid) {
  auto directory = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(directory), end(directory)));
}

// Their tables are shared, and nothing is kept per process.
TOOL_TEST(Unwind, ManyShortPrograms) {
  Tracer tracer("profile", kSampled + "--json --unwind-memory 1M");
  const Strings programs{"/bin/sh", "-c",
                         "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"};
  run(programs);
  auto before = descriptors_of(tracer.process().pid());
  run(programs);
  // The last processes may not be handled yet.
  EXPECT_TRUE(until([&] { return descriptors_of(tracer.process().pid()) <= before + 4; }));
  tracer.stop();
}

}  // namespace
}  // namespace coretap::tooltest
