// offcputime against processes that sleep a known number of times in known functions.
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

// ---- a child of our own: a different stack for each sleep ----

constexpr int kLevels = 11;  // 2^11 ways down
constexpr char kChildVariable[] = "CORETAP_TOOLTEST_STACKS";

/// Raw and always inlined: the C library has no frame pointers, or none in a function so small.
__attribute__((always_inline)) inline void short_sleep() {
  timespec t{0, 20'000};
#if defined(__x86_64__)
  long result;
  asm volatile("syscall"
               : "=a"(result)
               : "a"(SYS_nanosleep), "D"(&t), "S"(nullptr)
               : "rcx", "r11", "memory");
#elif defined(__aarch64__)
  register long number asm("x8") = SYS_nanosleep;
  register long first asm("x0") = reinterpret_cast<long>(&t);
  register long second asm("x1") = 0;
  asm volatile("svc 0" : "+r"(first) : "r"(number), "r"(second) : "memory");
#else
  ::syscall(SYS_nanosleep, &t, nullptr);
#endif
}

#if defined(__GNUC__) && !defined(__clang__)
#define FRAMED __attribute__((noinline, noipa, used, optimize("no-omit-frame-pointer")))
#else
#define FRAMED __attribute__((noinline, used))
#endif

FRAMED void many_ways(unsigned way, int level) {
  asm volatile("" : : "r"(__builtin_frame_address(0)));
  if (!level) {
    short_sleep();
  } else if (way & 1) {
    many_ways(way >> 1, level - 1);
    asm volatile("nop");
  } else {
    many_ways(way >> 1, level - 1);
    asm volatile("nop\n\tnop");
  }
  asm volatile("");
}

// Before main: this executable is the child's as well.
__attribute__((constructor)) void act_as_child() {
  if (!::getenv(kChildVariable)) return;
  char byte;
  (void)!::write(1, "ready\n", 6);
  (void)!::read(0, &byte, 1);
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  for (unsigned way = 0; way < 1u << kLevels; way++) many_ways(way, kLevels);
  ::getrusage(RUSAGE_SELF, &after);
  ::dprintf(1, "%ld\n", after.ru_nvcsw - before.ru_nvcsw);
  ::_exit(0);
}

// ---- what the reports say ----

bool in_known_chain(const Json& line) {
  auto frames = line["user_stack"].strings();
  return frames.size() >= 3 && frames[0] == "workload_sleep" && frames[1] == "workload_middle" &&
         frames[2] == "workload_outer";
}

struct Sum {
  std::uint64_t ns = 0, count = 0;
};
template <class Condition>
Sum sum_of(const Report& report, Condition condition) {
  Sum sum;
  for (auto& line : report.body)
    if (condition(line)) {
      sum.ns += line["total_ns"].u64();
      sum.count += line["count"].u64();
    }
  return sum;
}

Sum blocked_in_chain(const Report& report) {
  return sum_of(report,
                [](auto& line) { return !line["runnable"].boolean() && in_known_chain(line); });
}

bool has_frame(const Strings& frames, std::string_view part) {
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

/// Each sleep of the workload is one voluntary switch, off the CPU nearly all of the time: the
/// timer runs from before the switch on. A tenth is room for what an emulated CPU needs to get
/// there.
void expect_sleeps(const Report& report, const Json& truth, std::uint64_t ms) {
  auto blocked = blocked_in_chain(report);
  EXPECT_EQ(blocked.count, truth["voluntary"].u64());
  EXPECT_LE(blocked.ns, truth["slept_ns"].u64());
  EXPECT_GE(blocked.ns, blocked.count * ms * 900'000);
}

TOOL_TEST(Offcputime, TotalOfKnownSleeps) {
  require_tool("offcputime");
  Workload workload("sleeper", {"--sleeps", "20", "--ms", "10"});
  Tracer tracer("offcputime", {"--json", "--strict", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();  // the process is gone now
  auto report = tracer.stop();
  expect_sleeps(report, truth, 10);
  for (auto& line : report.body) {
    EXPECT_EQ(line["pid"].i64(), workload.pid());
    EXPECT_EQ(line["comm"].str(), "sleeper");
    EXPECT_FALSE(line["kernel_stack"].items().empty());
    if (!line["runnable"].boolean() && in_known_chain(line)) {
      EXPECT_TRUE(has_frame(line["kernel_stack"].strings(), "nanosleep"));
    }
    for (auto& frame : line["kernel_stack"].strings())
      EXPECT_FALSE(frame.starts_with("bpf_") || contains(frame, "__traceiter")) << frame;
  }
}

TOOL_TEST(Offcputime, WhileTheProcessLives) {
  require_tool("offcputime");
  Workload workload("sleeper", {"--sleeps", "10", "--ms", "10", "--threads", "3"}, kLinger);
  Tracer tracer("offcputime", {"--json", "--strict", "-s", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  for (auto& thread : truth["threads"].items()) {
    auto sum = sum_of(report, [&](auto& line) {
      auto frames = line["user_stack"].strings();
      return line["tid"].u64() == thread["tid"].u64() && !line["runnable"].boolean() &&
             frames.size() > 2 && frames[0].starts_with("workload_sleep+0x") &&
             frames[1].starts_with("workload_middle+0x") &&
             frames[2].starts_with("workload_outer+0x");
    });
    EXPECT_EQ(sum.count, thread["voluntary"].u64());
    EXPECT_LE(sum.ns, thread["slept_ns"].u64());
  }
}

TOOL_TEST(Offcputime, ThresholdsStatesAndParts) {
  require_tool("offcputime");
  Workload workload("sleeper", {"--sleeps", "10", "--ms", "10"});
  auto with = [&](Strings options) {
    options.insert(options.end(), {"--json", "-p", workload.id()});
    return std::make_unique<Tracer>("offcputime", options);
  };
  auto above = with({"-m", "5000"}), far_above = with({"-m", "60000000"}),
       below = with({"-M", "1000"});
  auto interruptible = with({"--state", "1"}), uninterruptible = with({"--state", "2"});
  auto runnable = with({"--state", "0"});
  auto kernel = with({"-K"}), user = with({"-U", "--state", "1"});
  workload.release();
  auto truth = workload.truth();
  expect_sleeps(above->stop(), truth, 10);
  EXPECT_TRUE(far_above->stop().body.empty());
  EXPECT_EQ(blocked_in_chain(below->stop()).count, 0u);
  expect_sleeps(interruptible->stop(), truth, 10);
  EXPECT_EQ(blocked_in_chain(uninterruptible->stop()).count, 0u);
  for (auto& line : runnable->stop().body) EXPECT_TRUE(line["runnable"].boolean());
  auto kernel_only = kernel->stop();
  auto sleeps = sum_of(kernel_only, [](auto& line) {
    EXPECT_TRUE(line["user_stack"].items().empty());
    return !line["runnable"].boolean() && has_frame(line["kernel_stack"].strings(), "nanosleep");
  });
  EXPECT_EQ(sleeps.count, truth["voluntary"].u64());
  auto user_only = user->stop();
  for (auto& line : user_only.body) EXPECT_TRUE(line["kernel_stack"].items().empty());
  expect_sleeps(user_only, truth, 10);
}

TOOL_TEST(Offcputime, FoldedAndDelimited) {
  require_tool("offcputime");
  Workload workload("sleeper", {"--sleeps", "10", "--ms", "10"});
  Tracer folded("offcputime", {"-f", "-d", "-p", workload.id()});
  Tracer text("offcputime", {"-d", "-p", workload.id()});
  Tracer csv("offcputime", {"--csv", "-p", workload.id()});
  workload.release();
  auto truth = workload.truth();

  std::istringstream lines(folded.stop_text());
  static const std::regex shape("([^ ].*) ([0-9]+)");
  std::uint64_t in_chain = 0;
  for (std::string line; std::getline(lines, line);) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(line, parts, shape)) << line;
    auto frames = parts[1].str();
    EXPECT_TRUE(frames.starts_with("sleeper;")) << line;
    if (!contains(frames, ";workload_outer;workload_middle;workload_sleep;-;")) continue;
    EXPECT_TRUE(contains(frames, "nanosleep")) << line;
    if (!frames.ends_with(";[runnable]")) in_chain += std::stoull(parts[2]);
  }
  EXPECT_LE(in_chain * 1000, truth["slept_ns"].u64());
  EXPECT_GE(in_chain * 1000, truth["voluntary"].u64() * 9'000'000);

  auto shown = text.stop_text();
  EXPECT_TRUE(
      contains(shown, "    --\n    workload_sleep\n    workload_middle\n    workload_outer\n"))
      << shown;
  EXPECT_TRUE(std::regex_search(shown, std::regex("\n    -                sleeper \\(" +
                                                  workload.id() + "\\)\n        [0-9]+\n")))
      << shown;

  std::istringstream rows(csv.stop_text());
  std::string row;
  ASSERT_TRUE(std::getline(rows, row));
  EXPECT_EQ(row, "comm,pid,tid,runnable,still_waiting,total_ns,count,stack");
  bool found = false;
  while (std::getline(rows, row))
    found |= row.starts_with("sleeper," + workload.id() + "," + workload.id() + ",false,false,") &&
             contains(row, "workload_outer;workload_middle;workload_sleep");
  EXPECT_TRUE(found);
}

// Two that never block share a CPU: each is off it because of the other only.
TOOL_TEST(Offcputime, PreemptionIsNotBlocking) {
  require_tool("offcputime");
  Strings spin{"--sleeps", "0", "--spin", "200", "--cpu", "0"};
  Workload one("sleeper", spin, kLinger), two("sleeper", spin, kLinger);
  Tracer tracer("offcputime", {"--json", "--strict", "-p", one.id() + "," + two.id()});
  Tracer folded("offcputime", {"-f", "-p", one.id() + "," + two.id()});
  one.release();
  two.release();
  auto first = one.truth(), second = two.truth();
  if (!(first["nonvoluntary"].u64() + second["nonvoluntary"].u64()))
    throw Skip("neither was preempted");
  auto report = tracer.stop();
  for (auto* truth : {&first, &second}) {
    auto pid = (*truth)["pid"].u64();
    auto preempted = sum_of(
        report, [&](auto& line) { return line["pid"].u64() == pid && line["runnable"].boolean(); });
    EXPECT_GE(preempted.count, (*truth)["nonvoluntary"].u64());
    auto spinning = sum_of(report, [&](auto& line) {
      return line["pid"].u64() == pid && has_frame(line["user_stack"].strings(), "workload_spin");
    });
    auto blocked_spinning = sum_of(report, [&](auto& line) {
      return line["pid"].u64() == pid && !line["runnable"].boolean() &&
             has_frame(line["user_stack"].strings(), "workload_spin");
    });
    if ((*truth)["nonvoluntary"].u64() > 2) {
      EXPECT_GT(spinning.ns, 0u);
    }
    EXPECT_EQ(blocked_spinning.count, 0u) << "a spinning task never blocks";
  }
  EXPECT_TRUE(contains(folded.stop_text(), ";[runnable] "));
}

TOOL_TEST(Offcputime, ListsOfProcessesAndThreads) {
  require_tool("offcputime");
  Strings some{"--sleeps", "5", "--ms", "5", "--threads", "2"};
  Workload one("sleeper", some), two("sleeper", some), three("sleeper", some);
  auto tid = [](const Workload& v, std::size_t i) { return v.ready()["tids"].items().at(i).u64(); };
  Tracer pids("offcputime", {"--json", "-p", one.id() + "," + two.id()});
  Tracer tids("offcputime",
              {"--json", "-t", std::to_string(tid(one, 1)) + "," + std::to_string(tid(three, 0))});
  for (auto* v : {&one, &two, &three}) v->release();
  for (auto* v : {&one, &two, &three}) v->truth();

  std::map<std::uint64_t, std::uint64_t> sleeps;
  auto by_pid = pids.stop();
  for (auto& line : by_pid.body)
    if (!line["runnable"].boolean() && in_known_chain(line))
      sleeps[line["pid"].u64()] += line["count"].u64();
  std::map<std::uint64_t, std::uint64_t> expected{{one.pid(), 10}, {two.pid(), 10}};
  EXPECT_EQ(sleeps, expected);
  for (auto& line : by_pid.body) EXPECT_NE(line["pid"].i64(), three.pid());

  sleeps.clear();
  for (auto& line : tids.stop().body)
    if (!line["runnable"].boolean() && in_known_chain(line))
      sleeps[line["tid"].u64()] += line["count"].u64();
  expected = {{tid(one, 1), 5}, {tid(three, 0), 5}};
  EXPECT_EQ(sleeps, expected);
}

TOOL_TEST(Offcputime, KernelThreadsOnlyOrNone) {
  require_tool("offcputime");
  Workload workload("sleeper", {"--sleeps", "10", "--ms", "20"}, kLinger);
  Tracer kernel("offcputime", {"--json", "-k"}), user("offcputime", {"--json", "-u"});
  workload.release();
  workload.truth();
  auto kernel_threads = kernel.stop(), user_threads = user.stop();
  EXPECT_FALSE(kernel_threads.body.empty());
  for (auto& line : kernel_threads.body) {
    EXPECT_TRUE(line["user_stack"].items().empty());
    EXPECT_NE(line["pid"].i64(), workload.pid());
    EXPECT_NE(line["tid"].u64(), 0u) << "idle tasks do not block";
  }
  EXPECT_GT(blocked_in_chain(user_threads).count, 0u);
  std::set<std::uint64_t> both;
  for (auto& line : user_threads.body) both.insert(line["tid"].u64());
  for (auto& line : kernel_threads.body) EXPECT_FALSE(both.contains(line["tid"].u64()));
}

TOOL_TEST(Offcputime, ThousandsOfStacksAreKept) {
  require_tool("offcputime");
  Process child({.argv = {"/usr/bin/env", std::string(kChildVariable) + "=1",
                          std::filesystem::read_symlink("/proc/self/exe").string()},
                 .stdin_pipe = true});
  ASSERT_TRUE(child.await([](auto& out, auto&) { return out == "ready\n"; })) << child.err();
  Tracer tracer("offcputime",
                {"--json", "--strict", "--state", "1", "-p", std::to_string(child.pid())});
  child.write_stdin("x");
  ASSERT_EQ(child.wait(), 0);
  auto report = tracer.stop();
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
  std::uint64_t stacks = 0, count = 0;
  for (auto& line : report.body) {
    auto frames = line["user_stack"].strings();
    EXPECT_FALSE(has_frame(frames, "[Missed")) << "a stack was lost";
    EXPECT_FALSE(has_frame(line["kernel_stack"].strings(), "[Missed")) << "a stack was lost";
    if (std::count_if(frames.begin(), frames.end(),
                      [](auto& f) { return contains(f, "many_ways"); }) != kLevels + 1)
      continue;
    stacks++;
    count += line["count"].u64();
  }
  // A sleep that is over before the switch is none: the kernel's number of switches is the truth.
  auto lines = child.out_lines();
  ASSERT_EQ(lines.size(), 2u);
  auto blocked = std::stoull(lines[1]);
  EXPECT_GT(blocked, 1u << (kLevels - 1)) << "too few of the sleeps were any";
  EXPECT_EQ(stacks, count) << "each sleep has its own stack";
  EXPECT_LE(stacks, blocked);
  // A tool whose stacks push each other out loses hundreds; a kernel that leaves out switches, few.
  EXPECT_GE(stacks, blocked * 97 / 100);
}

// Children live for 400 ms: in an emulated guest the tool needs some to read what they have mapped.
TOOL_TEST(Offcputime, FollowsACommandsChildren) {
  require_tool("offcputime");
  Tracer tracer("offcputime",
                {"--json", "--strict", "--", workload_path("forker"), "--children", "20", "--depth",
                 "2", "--sleeps", "2", "--ms", "200"},
                {.attached = false});
  auto report = tracer.finish();
  ASSERT_TRUE(report.truth);
  auto asleep = [](const Json& line) {
    return !line["runnable"].boolean() && has_frame(line["kernel_stack"].strings(), "nanosleep");
  };
  std::map<std::uint64_t, std::uint64_t> sleeps, named, expected;
  for (auto& process : (*report.truth)["processes"].items()) expected[process["pid"].u64()] = 2;
  for (auto& line : report.body) {
    if (asleep(line)) sleeps[line["pid"].u64()] += line["count"].u64();
    if (asleep(line) && in_known_chain(line)) named[line["pid"].u64()] += line["count"].u64();
  }
  EXPECT_EQ(sleeps, expected) << "children are followed";
  EXPECT_EQ(named, expected) << "and their symbols are known when they are gone";
  EXPECT_LE(blocked_in_chain(report).ns, (*report.truth)["slept_ns"].u64());
}

TOOL_TEST(Offcputime, RefusesContradictions) {
  for (auto& words : std::vector<Strings>{
           {"-u", "-k"}, {"-U", "-K"}, {"-f", "--json"}, {"-m", "10", "-M", "5"}}) {
    Strings argv{tool_path("offcputime")};
    argv.insert(argv.end(), words.begin(), words.end());
    EXPECT_EQ(run(argv).status, 2) << words[0] << " " << words[1];
  }
}

const DeclareTests kOffcputime{{
    .name = "offcputime",
    .reports = {{ReportKind::stacks}},
    .events = {{}, "sleeper --sleeps 3"},
    .stress = {.workload = stress::sleeps(),
               .events = 3000,
               .shown = "count",
               .truth = stress::all_leaves,
               .tiny = "--stack-storage-size 1"},
    .long_run = {{.arguments = "-m 1000", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
