// offcputime against processes that sleep a known number of times in known functions.
#include <time.h>

#include "shared.hpp"

namespace coretap::tooltest {
namespace {

// ---- a child of this process: a different stack for each sleep ----

constexpr int kLevels = 11;  // 2^11 call paths

/// Raw system call, always inlined: C library functions lack frame pointers, or are too small.
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

void go_all_ways() {
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

// ---- contents of reports ----

/// A sleep of the workload.
bool is_sleep(const Json& line) {
  auto frames = line["user_stack"].strings();
  return !line["runnable"].boolean() && frames.size() >= 3 && frames[0] == "workload_sleep" &&
         frames[1] == "workload_middle" && frames[2] == "workload_outer";
}
bool in_nanosleep(const Json& line) {
  return !line["runnable"].boolean() && has_frame(line, "kernel_stack", "nanosleep");
}

/// Counts of these lines, by task.
using ByTask = std::map<std::uint64_t, std::uint64_t>;
template <class Condition>
ByTask counts_by_task(const Report& report, const char* key, Condition condition) {
  ByTask all;
  for (auto& line : lines_where(report, condition)) all[line[key].u64()] += line["count"].u64();
  return all;
}

/// Each sleep of the workload is one voluntary switch, off CPU nearly all of the time: the timer
/// starts before the switch. A tenth is tolerance for emulated CPUs, which are slow to switch.
void expect_sleeps(const Report& report, const Json& truth, std::uint64_t ms) {
  auto sleeps = lines_where(report, is_sleep);
  expect_sums(sleeps, truth, {{"count", "voluntary"}});
  EXPECT_LE(sum(sleeps, "total_ns"), truth["slept_ns"].u64());
  EXPECT_GE(sum(sleeps, "total_ns"), sum(sleeps, "count") * ms * 900'000);
}

TOOL_TEST(Offcputime, TotalOfKnownSleeps) {
  auto seen =  // it has exited at the end
      observe("offcputime --json --strict -p {pid}", "sleeper --sleeps 20 --ms 10", {});
  expect_sleeps(seen.report(), seen.truth, 10);
  for (auto& line : seen.report().body) {
    expect_fields(line, {{"pid", seen.pid}, {"comm", "sleeper"}});
    EXPECT_FALSE(line["kernel_stack"].items().empty());
    if (is_sleep(line)) {
      EXPECT_TRUE(in_nanosleep(line));
    }
    for (auto& frame : line["kernel_stack"].strings())
      EXPECT_FALSE(frame.starts_with("bpf_") || contains(frame, "__traceiter")) << frame;
  }
}

TOOL_TEST(Offcputime, WhileTheProcessLives) {
  auto seen =
      observe("offcputime --json --strict -s -p {pid}", "sleeper --sleeps 10 --ms 10 --threads 3");
  for (auto& thread : seen.truth["threads"].items()) {
    auto sleeps = lines_where(seen.report(), [&](auto& line) {
      auto frames = line["user_stack"].strings();
      return line["tid"].u64() == thread["tid"].u64() && !line["runnable"].boolean() &&
             frames.size() > 2 && frames[0].starts_with("workload_sleep+0x") &&
             frames[1].starts_with("workload_middle+0x") &&
             frames[2].starts_with("workload_outer+0x");
    });
    expect_sums(sleeps, thread, {{"count", "voluntary"}});
    EXPECT_LE(sum(sleeps, "total_ns"), thread["slept_ns"].u64());
  }
}

TOOL_TEST(Offcputime, ThresholdsStatesAndParts) {
  std::vector<Strings> tools;
  enum { above, far_above, below, interruptible, uninterruptible, runnable, kernel, user };
  for (auto* options : {"-m 5000", "-m 60000000", "-M 1000", "--state 1", "--state 2", "--state 0",
                        "-K", "-U --state 1"})
    tools.push_back(Strings("offcputime --json -p {pid}") + options);
  auto seen = observe_all(tools, "sleeper --sleeps 10 --ms 10", {});
  for (auto tool : {above, interruptible, user}) expect_sleeps(seen.report(tool), seen.truth, 10);
  EXPECT_TRUE(seen.report(far_above).body.empty());
  for (auto tool : {below, uninterruptible})
    EXPECT_TRUE(lines_where(seen.report(tool), is_sleep).empty());
  for (auto& line : seen.report(runnable).body) EXPECT_TRUE(line["runnable"].boolean());
  auto kernel_only = seen.report(kernel);
  expect_sums(lines_where(kernel_only, in_nanosleep), seen.truth, {{"count", "voluntary"}});
  for (auto& line : kernel_only.body) EXPECT_TRUE(line["user_stack"].items().empty());
  for (auto& line : seen.report(user).body) EXPECT_TRUE(line["kernel_stack"].items().empty());
}

// One thread reads from a pipe what another writes, which sleeps between.
TOOL_TEST(Offcputime, ReasonsOfSleepsAndReads) {
  auto seen =
      observe_all({"offcputime --json --reasons -p {pid}", "offwaketime --json --reasons -p {pid}",
                   "chaintrace --json --reasons -p {pid}", "offcputime --json -p {pid}",
                   "offcputime --folded --reasons -K -p {pid}"},
                  "sleeper --sleeps 10 --ms 5 --block-on pipe", {});
  auto thread = seen.truth["threads"].items().at(0);
  for (auto tool : {0, 1, 2}) {
    for (auto [id, reason] : {std::pair{"tid", "pipe_read"}, {"waker_tid", "sleep"}}) {
      auto waits = lines_with(seen.report(tool).body,
                              {{"tid", thread[id].u64()}, {"reason", std::string(reason)}});
      expect_between(static_cast<double>(sum(waits, "count")), 10, 11);
      EXPECT_GE(sum(waits, "total_ns"), 10 * 4'000'000u) << tool << id;
    }
  }
  for (auto& line : seen.report(3).body) EXPECT_TRUE(line["reason"].is_null());
  expect_contains(seen.text(4), {";[pipe_read] ", "hrtimer_nanosleep;[sleep] "});
}

TOOL_TEST(Offcputime, FoldedAndDelimited) {
  auto seen = observe_all({"offcputime -f -d -p {pid}", "offcputime -d -p {pid}"},
                          "sleeper --sleeps 10 --ms 10", {});
  auto pid = std::to_string(seen.pid);

  static const std::regex shape("([^ ].*) ([0-9]+)");
  std::uint64_t sleeps_us = 0;
  for (auto& line : lines(seen.text(0))) {
    std::smatch parts;
    ASSERT_TRUE(std::regex_match(line, parts, shape)) << line;
    auto frames = parts[1].str();
    EXPECT_TRUE(frames.starts_with("sleeper;")) << line;
    if (!contains(frames, ";workload_outer;workload_middle;workload_sleep;-;")) continue;
    if (frames.ends_with(";[runnable]")) continue;  // preempted during exit
    EXPECT_TRUE(contains(frames, "nanosleep")) << line;
    sleeps_us += std::stoull(parts[2]);
  }
  EXPECT_LE(sleeps_us * 1000, seen.truth["slept_ns"].u64());
  EXPECT_GE(sleeps_us * 1000, seen.truth["voluntary"].u64() * 9'000'000);

  auto& shown = seen.text(1);
  expect_contains(shown, {"    --\n    workload_sleep\n    workload_middle\n    workload_outer\n"});
  EXPECT_TRUE(std::regex_search(
      shown, std::regex("\n    -                sleeper \\(" + pid + "\\)\n        [0-9]+\n")))
      << shown;
}

// Two tasks that never block share a CPU: each is off CPU only because of the other.
TOOL_TEST(Offcputime, PreemptionIsNotBlocking) {
  Strings spin = "--sleeps 0 --spin 200 --cpu 0";
  Workload one("sleeper", spin, kLinger), two("sleeper", spin, kLinger);
  auto both = "-p " + one.id() + "," + two.id();
  Tracer tracer("offcputime", "--json --strict" + Strings(both));
  Tracer folded("offcputime", "-f" + Strings(both));
  one.release();
  two.release();
  auto first = one.truth(), second = two.truth();
  if (!(first["nonvoluntary"].u64() + second["nonvoluntary"].u64()))
    throw Skip("neither was preempted");
  auto report = tracer.stop();
  for (auto* truth : {&first, &second}) {
    auto own = lines_with(report.body, {{"pid", (*truth)["pid"].u64()}});
    auto preempted = (*truth)["nonvoluntary"].u64();
    EXPECT_GE(sum(lines_with(own, {{"runnable", true}}), "count") + report.unreported, preempted);
    if (preempted > 2) {
      EXPECT_GT(sum_with_frame(own, "user_stack", "workload_spin", "total_ns"), 0u);
    }
    auto blocked = lines_with(own, {{"runnable", false}});
    EXPECT_EQ(sum_with_frame(blocked, "user_stack", "workload_spin"), 0u)
        << "a spinning task never blocks";
  }
  expect_contains(folded.stop_text(), {";[runnable] "});
}

TOOL_TEST(Offcputime, ListsOfProcessesAndThreads) {
  Strings some = "--sleeps 5 --ms 5 --threads 2";
  Workload one("sleeper", some), two("sleeper", some), three("sleeper", some);
  auto tid = [](const Workload& v, std::size_t i) { return v.ready()["tids"].items().at(i).u64(); };
  auto second = tid(one, 1), fifth = tid(three, 0);
  Tracer pids("offcputime", "--json -p " + one.id() + "," + two.id());
  Tracer tids("offcputime", "--json -t " + std::to_string(second) + "," + std::to_string(fifth));
  for (auto* v : {&one, &two, &three}) v->release();
  for (auto* v : {&one, &two, &three}) v->truth();
  auto by_pid = pids.stop();
  EXPECT_EQ(counts_by_task(by_pid, "pid", is_sleep), (ByTask{{one.pid(), 10}, {two.pid(), 10}}));
  for (auto& line : by_pid.body) EXPECT_NE(line["pid"].i64(), three.pid());
  EXPECT_EQ(counts_by_task(tids.stop(), "tid", is_sleep), (ByTask{{second, 5}, {fifth, 5}}));
}

TOOL_TEST(Offcputime, KernelThreadsOnlyOrNone) {
  auto seen = observe_all(
      {"offcputime --json -k", "offcputime --json -u", "offcputime --json -k --state 2"},
      "sleeper --sleeps 10 --ms 20");
  auto kernel_threads = seen.report(0), user_threads = seen.report(1);
  std::set<std::uint64_t> users;
  for (auto& line : user_threads.body) users.insert(line["tid"].u64());
  EXPECT_FALSE(kernel_threads.body.empty());
  for (auto& line : kernel_threads.body) {
    EXPECT_TRUE(line["user_stack"].items().empty());
    EXPECT_NE(line["pid"].u64(), seen.pid);
    EXPECT_NE(line["tid"].u64(), 0u) << "idle tasks do not block";
    EXPECT_FALSE(users.contains(line["tid"].u64()));
  }
  EXPECT_GT(sum(lines_where(user_threads, is_sleep), "count"), 0u);
  // The thread of RCU's grace periods waits in a separate state (idle).
  auto of_rcu = [](const Json& line) {
    return line["comm"].str() == "rcu_preempt" || line["comm"].str() == "rcu_sched";
  };
  EXPECT_FALSE(lines_where(kernel_threads, of_rcu).empty());
  EXPECT_TRUE(lines_where(seen.report(2), of_rcu).empty());
}

TOOL_TEST(Offcputime, ThousandsOfStacksAreKept) {
  Process child({.argv = {"/bin/true"}, .stdin_pipe = true, .in_child = go_all_ways});
  ASSERT_TRUE(child.await([](auto& out, auto&) { return out == "ready\n"; })) << child.err();
  Tracer tracer("offcputime", "--json --strict --state 1 -p " + std::to_string(child.pid()));
  child.write_stdin("x");
  ASSERT_EQ(child.wait(), 0);
  auto report = tracer.stop();
  EXPECT_EQ(report.lost("stacks_failed"), 0u);
  for (auto& line : report.body)
    for (auto* stack : {"user_stack", "kernel_stack"})
      EXPECT_FALSE(has_frame(line, stack, "[Missed")) << "a stack was lost";
  auto whole = lines_where(report, [](auto& line) {
    return std::ranges::count_if(line["user_stack"].strings(), [](auto& frame) {
             return contains(frame, "many_ways");
           }) == kLevels + 1;
  });
  // A sleep that ends before the switch does not count: the truth is the kernel's number of
  // switches.
  auto said = child.out_lines();
  ASSERT_EQ(said.size(), 2u);
  auto blocked = std::stoull(said[1]);
  EXPECT_GT(blocked, 1u << (kLevels - 1)) << "too few of the sleeps were any";
  EXPECT_EQ(whole.size(), sum(whole, "count")) << "each sleep has its own stack";
  expect_switches(report, whole.size(), blocked);
  EXPECT_GE(whole.size(), blocked / 2);
}

// Children run for 400 ms: in an emulated guest the tool needs time to read their mappings.
TOOL_TEST(Offcputime, FollowsACommandsChildren) {
  auto report = report_of("offcputime --json --strict" +
                          as_command("forker --children 20 --depth 2 --sleeps 2 --ms 200"));
  auto truth = report.truth.value();
  ByTask expected;
  for (auto& process : truth["processes"].items()) expected[process["pid"].u64()] = 2;
  auto sleeps = counts_by_task(report, "pid", in_nanosleep);
  std::uint64_t all = 0;
  for (auto& [pid, n] : sleeps) {
    all += n;
    ASSERT_TRUE(expected.contains(pid)) << pid;
    EXPECT_LE(n, expected[pid]);
  }
  expect_switches(report, all, 2 * expected.size());
  auto named = [](auto& line) { return in_nanosleep(line) && is_sleep(line); };
  EXPECT_EQ(counts_by_task(report, "pid", named), sleeps)
      << "their symbols are known when they are gone";
  EXPECT_LE(sum(lines_where(report, is_sleep), "total_ns"), truth["slept_ns"].u64());
}

TESTS_OF(offcputime, .events = {{}, "sleeper --sleeps 3"}, .alone = true,
         .stress = stack_row(stress::sleeps(), 3000, stress::all_leaves),
         .long_run = {{.arguments = "-m 1000", .holds_results = true}});

}  // namespace
}  // namespace coretap::tooltest
