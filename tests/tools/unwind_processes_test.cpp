// User stacks of unusual processes: thousands of mappings, stacks that are not in memory, other
// namespaces, many that end soon. What the tables themselves can do is in unwind_test.cpp.
#include "harness.hpp"

namespace coretap::tooltest {
namespace {

constexpr std::uint64_t kHalf = 20;  // calls of each kind (mapper.c)

struct StackCounts {
  std::uint64_t all = 0, whole = 0, in_chain = 0;
  std::string others;  ///< what is neither whole nor before its tables
  std::map<std::string, std::uint64_t> by_cut;
};

std::string text_of(const Json& line) {
  auto cut = line["user_stack_truncated"];
  std::string all =
      std::to_string(line["count"].u64()) + " " + (cut.is_null() ? "whole" : cut.str());
  for (auto& frame : line["user_stack"].strings()) all += " " + frame;
  return all + "\n";
}

/// Frames of one name that follow each other.
std::uint64_t run_of(const Strings& frames, std::size_t& at, const std::string& name) {
  std::uint64_t n = 0;
  for (; at < frames.size() && frames[at] == name; at++) n++;
  return n;
}

/// A process in the chain shows all of it, or the inner part of it and a reason. Returns what has
/// been seen.
StackCounts check(const Report& report, std::uint64_t pid) {
  StackCounts counts;
  for (auto& line : report.body) {
    if (pid ? line["pid"].u64() != pid : line["comm"].str() != "mapper") continue;
    auto frames = line["user_stack"].strings();
    if (frames.empty()) continue;  // while it executes another program it has no stack
    auto n = line["count"].u64();
    auto cut = line["user_stack_truncated"].is_null() ? "" : line["user_stack_truncated"].str();
    counts.all += n;
    counts.by_cut[cut] += n;
    // Before there are tables frame pointers lead to where the C library begins.
    if (cut.empty() && frames.back() == "_start") counts.whole += n;
    if (cut == "file not read yet") continue;
    if (!cut.empty()) counts.others += text_of(line);
    EXPECT_EQ(line["user_stack_guessed"].u64(), 0u) << text_of(line);
    auto spin = std::ranges::find(frames, "mapper_spin");
    if (spin == frames.end()) continue;
    counts.in_chain += n;
    auto at = static_cast<std::size_t>(spin - frames.begin()) + 1;
    auto inner = run_of(frames, at, "mapper_inner"), outer = run_of(frames, at, "mapper_outer");
    EXPECT_LE(inner, kHalf) << text_of(line);
    EXPECT_LE(outer, kHalf) << text_of(line);
    if (cut.empty()) {
      EXPECT_EQ(inner, kHalf) << text_of(line);
      EXPECT_EQ(outer, kHalf) << text_of(line);
    } else if (at < frames.size()) {
      EXPECT_EQ(inner + outer, 2 * kHalf) << text_of(line);
    }
  }
  return counts;
}

void expect_mostly_whole(const StackCounts& counts) {
  EXPECT_GT(counts.in_chain, 0u) << counts.others;
  EXPECT_GT(counts.whole * 2, counts.all) << counts.others;
}

std::string milliseconds(double usual) {
  return std::to_string(static_cast<std::uint64_t>(usual * std::min(slowness(), 4.0)));
}

StackCounts sample_processes(const Strings& arguments) {
  auto seen =
      observe("profile -F 199 --json -p {pid}", "mapper --ms " + milliseconds(400) + arguments);
  return check(seen.report(), seen.pid);
}

TOOL_TEST(UnwindProcesses, ThousandsOfMappings) {
  expect_mostly_whole(sample_processes({"--mappings", "8000"}));
  expect_mostly_whole(sample_processes({"--mappings", "8000", "--remap"}));
}

// The program's own frames are right; musl's have no tables, and that is said, but where names tell
// that the program or the thread begins there.
TOOL_TEST(UnwindProcesses, MuslsPrograms) {
  for (std::string kind : {"unwind_musl_dynamic", "unwind_musl_static"}) {
    SCOPED_TRACE(kind);
    if (::access(workload_path(kind).c_str(), X_OK)) throw Skip("not built: there is no musl-gcc");
    std::map<std::string, std::uint64_t> callers;
    for (auto& line :
         report_of("profile -F 199 --json --" + Strings{workload_path(kind), milliseconds(200)})
             .body) {
      auto frames = line["user_stack"].strings();
      auto cut = line["user_stack_truncated"].is_null() ? "" : line["user_stack_truncated"].str();
      // From a leaf of musl's only a guess leads on.
      if (cut == "file not read yet" || frames.empty() || frames[0] != "musl_spin") continue;
      EXPECT_EQ(line["user_stack_guessed"].u64(), 0u) << text_of(line);
      std::size_t at = 1;
      EXPECT_EQ(run_of(frames, at, "musl_chain"), 10u) << text_of(line);
      ASSERT_LT(at, frames.size()) << text_of(line);
      EXPECT_TRUE(cut.empty() || cut == "no unwind information") << text_of(line);
      EXPECT_LE(frames.size() - at, 3u) << text_of(line);
      callers[frames[at]] += line["count"].u64();
    }
    for (auto name : {"main", "musl_handler", "musl_thread"}) EXPECT_GT(callers[name], 0u) << name;
  }
}

// The frames whose pages are there are right, and they are not taken for all.
TOOL_TEST(UnwindProcesses, StackPagesThatAreGone) {
  for (std::string kind : {"dropped", "file"}) {
    SCOPED_TRACE(kind);
    auto counts = sample_processes({"--stack", kind});
    EXPECT_GT(counts.in_chain, 0u) << counts.others;
    // A file in memory (tmpfs) keeps its pages: then the walk goes on to the stack's beginning.
    auto kept = kind == "file" ? counts.by_cut["no unwind information"] : 0;
    EXPECT_GT((counts.by_cut["stack not readable"] + kept) * 2, counts.in_chain) << counts.others;
  }
}

// Not even the vdso's table has room.
TOOL_TEST(UnwindProcesses, NoMemoryAtAll) {
  auto seen = observe("profile -F 199 --json --unwind-memory 4K -p {pid}",
                      "mapper --ms " + milliseconds(800));
  auto counts = check(seen.report(), seen.pid);
  EXPECT_GT(counts.all, 0u);
  EXPECT_EQ(counts.whole, 0u);
  EXPECT_GT(counts.by_cut["no memory for unwind tables"], 0u) << counts.others;
}

Strings in_namespace(Strings command) {
  if (run({"/bin/sh", "-c", "unshare -pfm --mount-proc true"}).status)
    throw Skip("no pid namespaces here (unshare -pfm --mount-proc)");
  command.insert(command.begin(),
                 {"/usr/bin/env", "unshare", "-pfm", "--kill-child", "--mount-proc"});
  return command;
}

TOOL_TEST(UnwindProcesses, WorkloadInAPidNamespace) {
  auto command = in_namespace({workload_path("mapper"), "--ms", milliseconds(400), "--hold"});
  Process inside({.argv = command, .stdin_pipe = true});
  ASSERT_TRUE(inside.await([](auto& out, auto&) { return contains(out, "ready"); }))
      << inside.err();
  Tracer tracer("profile", {"-F", "199", "--json", "--comm", "mapper"});
  inside.write_stdin("x");
  ASSERT_EQ(inside.wait(), 0) << inside.err();
  expect_mostly_whole(check(tracer.stop(), 0));
}

TOOL_TEST(UnwindProcesses, ToolInAPidNamespace) {
  require_tool("profile");
  auto both = run(in_namespace({tool_path("profile"), "-F", "199", "--json", "--",
                                workload_path("mapper"), "--ms", milliseconds(400)}));
  ASSERT_EQ(both.status, 0) << both.err;
  expect_mostly_whole(check(parse_report(both.out, both.err), 0));
}

std::size_t descriptors_of(pid_t pid) {
  auto directory = std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::distance(begin(directory), end(directory)));
}

// Their tables are shared, and nothing is kept of each.
TOOL_TEST(UnwindProcesses, ManyShortPrograms) {
  Tracer tracer("profile", {"-F", "199", "--json", "--unwind-memory", "1M"});
  auto programs = [] {
    run({"/bin/sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"});
  };
  programs();
  auto before = descriptors_of(tracer.process().pid());
  programs();
  EXPECT_LE(descriptors_of(tracer.process().pid()), before + 4);
  tracer.stop();
}

// A child has its parent's tables from the beginning.
TOOL_TEST(UnwindProcesses, ChildrenAreReadyAtOnce) {
  auto seen = observe("profile -F 999 --json --comm mapper",
                      "mapper --children 50 --ms " + milliseconds(10));
  std::uint64_t all = 0, not_ready = 0;
  for (auto& line : seen.body()) {
    if (line["pid"].u64() == seen.pid) continue;
    all += line["count"].u64();
    if (!line["user_stack_truncated"].is_null() &&
        line["user_stack_truncated"].str() == "file not read yet")
      not_ready += line["count"].u64();
  }
  EXPECT_GT(all, 0u);
  EXPECT_LE(not_ready, all / 4);
}

}  // namespace
}  // namespace coretap::tooltest
