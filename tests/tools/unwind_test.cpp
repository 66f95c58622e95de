// User stacks without frame pointers, against chains of functions that the workload knows by name.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using Stacks = std::vector<Strings>;

constexpr char kNotReady[] = "file not read yet";
constexpr std::size_t kDeepest = 127;

/// The build leaves these workloads out where it cannot make them.
void require_workload(const std::string& name) {
  if (::access(workload_path(name).c_str(), X_OK))
    throw Skip("not built for this machine: " + name);
}

// ---- what the reports say ----

struct UserStack {
  Strings frames;
  std::string cut;  ///< why it is not whole; empty: it is
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

/// Frames from the leaf on; a truth's "..." stands for any frames, "?" for one. The number of
/// frames that it takes.
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

/// Which of the truths this stack is.
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

/// Behind main or a thread's function there is only what starts it.
void expect_start(const Strings& truth, const UserStack& stack) {
  auto rest = stack.frames.size() - *match(truth, stack.frames);
  if (truth.back() == "main") {
    EXPECT_EQ(stack.frames.back(), "_start") << stack.text();
    EXPECT_LE(rest, 3u) << stack.text();
  } else if (truth.back() == "raw_thread") {
    EXPECT_EQ(rest, 0u) << stack.text();
  } else {
    EXPECT_LE(rest, 2u) << stack.text();
  }
}

struct Expected {
  std::uint64_t least_guessed = 0, most_guessed = 0;
  double known =
      0.8;  ///< at least this part is in the chain; the rest is the workload's start and end
  Strings sometimes = {};  ///< reasons that a quarter may have
};

/// For a moment after dlopen what it has mapped is not known, or taken for what was there.
const Expected kYoung{.sometimes = {"no mapping", "no unwind information"}};

/// A thread's memory is taken away before its end.
const Expected kEnding{.sometimes = {"exiting"}};

/// All stacks are whole, and nearly all of them are the workload's; only while the tables are made
/// they may be cut.
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

/// They run at once: what each has to itself is a part of `ms`.
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

/// Those of the workload's stacks that begin with this leaf.
std::vector<UserStack> with_leaf(const Traced& traced, std::string_view leaf) {
  std::vector<UserStack> found;
  for (auto& stack : traced.stacks)
    if (!stack.frames.empty() && stack.frames[0] == leaf) found.push_back(stack);
  return found;
}

// ---- what runs innermost ----

TOOL_TEST(Unwind, ChainOfAllKindsOfFrames) {
  auto observed = trace_cases("profile", kSampled, {{"--end spin"}});
  EXPECT_GT(observed.cases[0].truths[0].size(), 44u);
  expect_whole(observed.cases[0].stacks, observed.cases[0].truths, {});
  expect_all_whole("offcputime", {}, {{"--end sleep"}});
}

TOOL_TEST(Unwind, LeavesInTheCLibraryAndTheVdso) {
  auto observed =
      trace_cases("profile", kSampled, {{"--end memset"}, {"--end strlen"}, {"--end vdso"}});
  for (auto& one : observed.cases) {
    expect_whole(one.stacks, one.truths, {});
    std::uint64_t outside = 0;
    for (auto& stack : one.stacks)
      if (which(one.truths, stack) && stack.frames[0] != one.truths[0][1]) outside += stack.count;
    EXPECT_GT(outside, 0u) << "never in a leaf that is not the workload's own";
  }
}

TOOL_TEST(Unwind, SignalHandlers) {
  expect_all_whole("profile", kSampled,
                   {{"--end raise"}, {"--end trap"}, {"--end altstack"}, {"--end returns"}});
}

TOOL_TEST(Unwind, ProcedureLinkageTables) {
  expect_all_whole("profile", kSampled,
                   {{"--end plt", kYoung},
                    {"--end plt --ibt", kYoung},
                    // Loading the library takes its time too.
                    {"--end lazy", {.known = 0.2, .sometimes = kYoung.sometimes}},
                    {"--end lazy --ibt", {.known = 0.2, .sometimes = kYoung.sometimes}}});
}

// ---- what calls the chain ----

TOOL_TEST(Unwind, CallersAndThreads) {
  const std::vector<Case> spinning{
      {"--way qsort"}, {"--way thread", kEnding}, {"--way clone3", kEnding}};
  expect_all_whole("profile", kSampled, spinning);
  auto sleeping = spinning;
  // The first thread waits for the other one.
  for (auto& c : sleeping) c.arguments = c.arguments + "--end sleep";
  sleeping[2].expected.known = 0.5;
  expect_all_whole("offcputime", {}, sleeping);
}

// The tables end in the middle, and frame pointers lead on.
TOOL_TEST(Unwind, FramePointersWhereThereIsNoTable) {
  const Expected guessed{.least_guessed = 1, .most_guessed = 1, .sometimes = kYoung.sometimes};
  std::vector<Case> cases{{"--way framed", guessed}, {"--way jit", guessed}};
  expect_all_whole("profile", kSampled, cases);
  for (auto& c : cases) c.arguments = c.arguments + "--end sleep";
  expect_all_whole("offcputime", {}, cases);
}

// Neither: what is below may be true or not, but it may not be taken for the whole.
TOOL_TEST(Unwind, CodeWithoutTablesIsMarked) {
  for (auto& [tool, options, end] : both_ways("--end spin")) {
    auto observed = trace_cases(
        tool, options,
        {{"--way bare-null" + end}, {"--way bare-odd" + end}, {"--way bare-stack" + end}});
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
    for (auto& stack : observed.cases[1].stacks) EXPECT_EQ(stack.guessed, 0u) << stack.text();
  }
}

TOOL_TEST(Unwind, DepthIsBounded) {
  for (auto& [tool, options, end] : both_ways("--end spin")) {
    auto deep = trace_cases(tool, options, {{"--way deep" + end}}).cases[0];
    auto truth = deep.truths[0];
    ASSERT_GT(truth.size(), kDeepest);
    std::uint64_t deepest = 0, all = 0;
    for (auto& stack : deep.stacks) {
      all += stack.count;
      if (stack.cut != "stack depth") continue;
      deepest += stack.count;
      EXPECT_EQ(stack.frames.size(), kDeepest);
      auto first = truth;
      first.resize(kDeepest / 2);
      EXPECT_TRUE(match(first, stack.frames)) << stack.text();
      EXPECT_EQ(stack.frames.back(), "deep") << stack.text();
    }
    EXPECT_GE(deepest + 3, all / 2);
  }
}

// ---- mappings that change ----

/// The same with any name for the functions that are called so.
Stacks whatever_is(std::string_view named, Stacks truths) {
  for (auto& truth : truths)
    for (auto& frame : truth)
      if (frame.starts_with(named)) frame = "?";
  return truths;
}

TOOL_TEST(Unwind, LibrariesThatTakeEachOthersPlace) {
  for (auto& [tool, options, more] : both_ways("--ms 1500")) {
    auto one = trace_cases(tool, options, {{"--way dlopen" + more}}).cases[0];
    ASSERT_EQ(one.truths.size(), 6u);
    expect_whole(one.stacks, {whatever_is("reuse_", one.truths)[0]}, kYoung);
  }
}

TOOL_TEST(Unwind, NamesOfLibrariesThatAreGone) {
  expect_all_whole("profile", kSampled, {{"--way dlopen --ms 1500", kYoung}});
}

TOOL_TEST(Unwind, NamesBeforeExec) {
  expect_all_whole("profile", kSampled, {{"--then qsort --ms 900"}});
  expect_all_whole("offcputime", {}, {{"--then qsort --end sleep"}});
}

TOOL_TEST(Unwind, OtherPlacesOfTheProgram) {
  expect_all_whole("profile", kSampled, {{"--place deleted"}, {"--place namespace"}});
}

TOOL_TEST(Unwind, ForkServer) {
  require_workload("unwind");
  auto report = follow("profile" + kSampled, "unwind --end fork --times 200 --ms 5");
  std::vector<UserStack> stacks;
  std::set<std::uint64_t> children;
  auto truths = truths_of(*report.truth);
  for (auto& line : report.body) {
    stacks.push_back(stack_of(line, line["count"].u64()));
    if (which(truths, stacks.back())) children.insert(line["pid"].u64());
  }
  // A child ends in the kernel, where its memory is taken away, and begins with faults: the page of
  // a stack is gone for the moment in which it is copied.
  expect_whole(stacks, truths, {.known = 0.3, .sometimes = {"exiting", "stack not readable"}});
  EXPECT_GT(children.size(), 20u);
}

// ---- other kinds of programs ----

TOOL_TEST(Unwind, StaticAndStripped) {
  expect_all_whole("profile", kSampled,
                   {{"--way main", {}, "unwind_static"},
                    {"--way thread", kEnding, "unwind_static"},
                    {"--end altstack --way clone3", kEnding, "unwind_static"}});
  // Without names the number of frames must do.
  auto both =
      trace_cases("profile", kSampled,
                  {{"--way main", {}, "unwind_static"}, {"--way main", {}, "unwind_stripped"}});
  std::map<std::size_t, std::uint64_t> depths[2];
  for (int i : {0, 1})
    for (auto& stack : both.cases[i].stacks)
      if (stack.cut.empty()) depths[i][stack.frames.size()] += stack.count;
  auto usual = [](auto& depth) {
    return std::max_element(depth.begin(), depth.end(),
                            [](auto& a, auto& b) { return a.second < b.second; })
        ->first;
  };
  ASSERT_FALSE(depths[0].empty());
  ASSERT_FALSE(depths[1].empty());
  EXPECT_EQ(usual(depths[0]), usual(depths[1]));
  EXPECT_GT(usual(depths[1]), 44u);
}

TOOL_TEST(Unwind, CodeInTheMiddleOfAPage) {
  expect_all_whole("profile", kSampled,
                   {{"--way main", {}, "unwind_lld"}, {"--end plt", {}, "unwind_lld"}});
}

TOOL_TEST(Unwind, ThirtyTwoBitsAreMarked) {
  require_workload("unwind_narrow");
  auto report = follow("profile --strict" + kSampled, "unwind_narrow");
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
    EXPECT_EQ(stack.cut, "no frame pointers") << stack.text();
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
  auto little = trace_cases("profile", kSampled + "--unwind-memory 64K",
                            {{"--way qsort"}, {"--way qsort --end memset"}});
  std::uint64_t refused = 0;
  for (auto& one : little.cases)
    for (auto& stack : one.stacks) {
      EXPECT_FALSE(which(one.truths, stack)) << stack.text();
      if (stack.cut == "no memory for unwind tables") refused += stack.count;
    }
  EXPECT_GT(refused, 0u);
  EXPECT_TRUE(contains(little.report.err, "--unwind-memory")) << little.report.err;
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

// The writer of the pipe is in the chain, and another thread reads it.
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

// ---- a program that was not prepared ----

constexpr char kWork[] = R"py(
import json, re, time
end = time.process_time() + 1.5
def more(match): return json.dumps(sorted(match.group(0), key=lambda c: hash(c) ^ 5))
while time.process_time() < end:
    re.sub("[a-z]+", more, "one two three four five six seven " * 20)
)py";

/// Reads our JSON; every return address of it must follow a call, by the bytes of its file. Prints
/// how many do, which do not, and how many names it could not place.
constexpr char kCheck[] = R"py(
import json, re, struct, sys
class Elf:
    def __init__(self, path):
        self.data = d = open(path, "rb").read()
        self.loads, self.names = [], {}
        phoff, shoff = struct.unpack_from("<QQ", d, 32)
        phsize, phnum, shsize, shnum = struct.unpack_from("<HHHH", d, 54)
        for i in range(phnum):
            kind, flags, offset, va, _, size = struct.unpack_from("<IIQQQQ", d, phoff + i * phsize)
            if kind == 1: self.loads.append((va, offset, size))
        heads = [struct.unpack_from("<IIQQQQIIQQ", d, shoff + i * shsize) for i in range(shnum)]
        for h in heads:
            if h[1] not in (2, 11): continue
            strings = heads[h[6]][4]
            for at in range(h[4], h[4] + h[5], 24):
                name, info, _, _, value, _ = struct.unpack_from("<IBBHQQ", d, at)
                if info & 15 not in (2, 10): continue
                text = d[strings + name:d.index(b"\0", strings + name)].decode(errors="replace")
                self.names.setdefault(text, set()).add(value)
    def before(self, va):
        for start, offset, size in self.loads:
            if start + 8 <= va <= start + size:
                return self.data[offset + va - start - 8:offset + va - start]
        return b""
def is_call(b):
    return len(b) == 8 and (b[-5] == 0xe8 or any(b[-n] == 0xff and b[-n + 1] >> 3 & 7 == 2
                                                 for n in range(2, 8)))
files, good, bad, unplaced = {}, 0, [], 0
for line in sys.stdin:
    entry = json.loads(line)
    if entry.get("type") != "stack": continue
    stack = entry["user_stack"]
    for i in range(1, len(stack)):
        if "<signal handler>" in stack[i - 1:i + 1]: continue
        found = re.fullmatch(r"(.+)\+0x([0-9a-f]+) \((/.*)\)", stack[i])
        none = re.fullmatch(r"\[unknown\] \((/.*)\+0x([0-9a-f]+)\)", stack[i])
        path = found.group(3) if found else none.group(1) if none else None
        try:
            elf = files.get(path) or files.setdefault(path, Elf(path))
        except (OSError, TypeError):
            unplaced += entry["count"]
            continue
        if none: places = {int(none.group(2), 16)}
        else: places = {v + int(found.group(2), 16) for v in elf.names.get(found.group(1), ())}
        if not places: unplaced += entry["count"]
        elif any(is_call(elf.before(p)) for p in places): good += entry["count"]
        else: bad.append(stack[i])
print(json.dumps({"good": good, "bad": bad, "unplaced": unplaced}))
)py";

TOOL_TEST(Unwind, ReturnAddressesFollowCalls) {
  require_tool("profile");
  if (run({"/bin/sh", "-c", "command -v python3"}).status) throw Skip("no python3");
  Tracer tracer("profile", {"-F", "499", "-U", "-v", "-s", "--json", "--", "python3", "-c", kWork},
                {.attached = false});
  if (int status = tracer.process().wait())
    throw std::runtime_error("profile: " + std::to_string(status) + tracer.process().err());
  auto report = parse_report(tracer.process().out(), tracer.process().err());
  std::uint64_t all = 0, whole = 0, frames = 0;
  std::string others;
  for (auto& line : report.body) {
    auto stack = stack_of(line, line["count"].u64());
    all += stack.count;
    if (stack.cut.empty()) {
      whole += stack.count;
      frames += stack.count * stack.frames.size();
    } else {
      others += stack.text() + "\n";
    }
  }
  // Programs that run for moments only, and starts of others, may come before their tables.
  EXPECT_GT(whole, all / 2) << others;
  EXPECT_GT(frames, whole * 10);

  Process check({.argv = {"/usr/bin/env", "python3", "-c", kCheck}, .stdin_pipe = true});
  check.write_stdin(tracer.process().out());
  check.close_stdin();
  ASSERT_EQ(check.wait(), 0) << check.err();
  auto found = Json::parse(check.out());
  EXPECT_TRUE(found["bad"].items().empty()) << check.out();
  EXPECT_GT(found["good"].u64(), 100u) << check.out();
  EXPECT_LT(found["unplaced"].u64(), found["good"].u64() / 5) << check.out();
}

}  // namespace
}  // namespace coretap::tooltest
