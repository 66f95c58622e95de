// profile against a process that burns a known time of CPU in a known function.
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "../harness.hpp"

namespace coretap::tooltest {
namespace {

struct Run {
  Report report;
  double cpu_seconds;
};

Run profile(Strings options, Strings workload_options = {}) {
  require_tool("profile");
  Strings arguments{"--sleeps", "1", "--spin", "800"};
  arguments.insert(arguments.end(), workload_options.begin(), workload_options.end());
  Workload workload("sleeper", arguments, kLinger);
  options.insert(options.end(), {"--json", "--strict", "-p", workload.id()});
  Tracer tracer("profile", options);
  workload.release();
  auto truth = workload.truth();
  auto report = tracer.stop();
  workload.end_lingering();
  return {std::move(report),
          static_cast<double>(truth["threads"].items().at(0)["spun_cpu_ns"].u64()) / 1e9};
}

bool has_frame(const Json& line, const char* stack, std::string_view part) {
  auto frames = line[stack].strings();
  return std::any_of(frames.begin(), frames.end(), [&](auto& f) { return contains(f, part); });
}

template <class Condition>
double samples(const Run& run, Condition condition) {
  std::uint64_t n = 0;
  for (auto& line : run.report.body)
    if (condition(line)) n += line["count"].u64();
  return static_cast<double>(n);
}

/// Of all CPUs, in hundredths of a second.
/// The samples of a folded report, and those of idle CPUs.
struct Folded {
  explicit Folded(const std::string& text) {
    for (auto& line : lines(text)) {
      auto count = std::stoull(line.substr(line.rfind(' ') + 1));
      all += count;
      if (line.starts_with("swapper")) idle += count;
    }
  }
  std::uint64_t all = 0, idle = 0;
};

TOOL_TEST(Profile, SamplesAreCpuTime) {
  auto run = profile({"-F", "199"});
  auto expected = run.cpu_seconds * 199;
  auto all = samples(run, [](auto&) { return true; });
  auto in_spin =
      samples(run, [](auto& line) { return has_frame(line, "user_stack", "workload_spin"); });
  EXPECT_GT(all, expected * 0.75);
  EXPECT_LT(all, expected * 1.25 + 10);
  // Where the clock needs a system call its library function hides the caller.
  EXPECT_GT(in_spin, 0);
  for (auto& line : run.report.body) {
    EXPECT_EQ(line["comm"].str(), "sleeper");
    EXPECT_FALSE(line.has("total_ns"));
    for (auto& frame : line["kernel_stack"].strings())
      EXPECT_FALSE(frame.starts_with("bpf_") || contains(frame, "perf_event_overflow")) << frame;
  }
}

// Code with frame pointers is followed to its end; of code without them it is said that it is not.
TOOL_TEST(Profile, TruncatedStacksAreMarked) {
  auto whole = profile({"-F", "199", "-U"});
  auto in_main = [](const Json& line) { return has_frame(line, "user_stack", "main"); };
  auto cut = [](const Json& line) { return !line["user_stack_truncated"].is_null(); };
  EXPECT_GT(samples(whole, in_main), 0);
  EXPECT_EQ(samples(whole, [&](auto& line) { return in_main(line) && cut(line); }), 0);
  EXPECT_EQ(samples(whole, cut),
            static_cast<double>(whole.report.ledger["stacks_truncated"].u64()));

  auto text = run({tool_path("profile"), "-F", "199", "-f", "-U", "--perf-max-stack-depth", "1",
                   "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"});
  EXPECT_TRUE(contains(text.out, "sh;[truncated: stack depth];")) << text.out << text.err;
  EXPECT_TRUE(contains(text.err, "truncated user stack")) << text.err;
}

TOOL_TEST(Profile, PeriodAndParts) {
  // A sample each 5 ms, by time that the CPU's clock has run.
  auto kernel = profile({"--period", "5000000", "-K"});
  for (auto& line : kernel.report.body) EXPECT_TRUE(line["user_stack"].strings().empty());
  auto all = samples(kernel, [](auto&) { return true; });
  EXPECT_GT(all, kernel.cpu_seconds * 200 * 0.75);
  EXPECT_LT(all, kernel.cpu_seconds * 200 * 1.5 + 10);
  auto user = profile({"-U"});
  for (auto& line : user.report.body) EXPECT_TRUE(line["kernel_stack"].strings().empty());
}

TOOL_TEST(Profile, OneCpu) {
  auto here = profile({"-F", "199", "-C", "0"}, {"--cpu", "0"});
  EXPECT_GT(samples(here, [](auto&) { return true; }), here.cpu_seconds * 199 * 0.75);
  if (sysconf(_SC_NPROCESSORS_ONLN) > 1) {
    auto elsewhere = profile({"-F", "199", "-C", "1"}, {"--cpu", "0"});
    EXPECT_LE(samples(elsewhere, [](auto&) { return true; }), 3);
  }
  EXPECT_EQ(run({tool_path("profile"), "-C", "4095"}).status, 2);
  EXPECT_EQ(run({tool_path("profile"), "-F", "0"}).status, 2);
}

// A clock that rings all the time leaves the CPU to nothing else: neither the duration nor Ctrl-C
// would end it.
TOOL_TEST(Profile, RatesThatWouldHoldACpu) {
  for (auto* bad : {"0", "1", "49999", "10000000001"}) {
    auto refused = run({tool_path("profile"), "--period", bad, "1"});
    EXPECT_EQ(refused.status, 2) << bad;
    EXPECT_TRUE(contains(refused.err, "is not a number from 50000 to 10000000000")) << refused.err;
  }
  auto refused = run({tool_path("profile"), "-F", "20001", "1"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_TRUE(contains(refused.err, "--frequency: '20001' is not a number from 1 to "))
      << refused.err;
  require_tool("profile");
  auto fastest = run({tool_path("profile"), "--period", "50000", "--json", "0.5"});
  EXPECT_EQ(fastest.status, 0) << fastest.err;
}

TOOL_TEST(Profile, IdleAndFolded) {
  require_tool("profile");
  auto idle = run({tool_path("profile"), "-I", "-f", "-a", "-F", "199", "1"});
  EXPECT_EQ(idle.status, 0) << idle.err;
  EXPECT_TRUE(contains(idle.out, "_[k] ")) << idle.out;
  // Every CPU all the time, whether it is busy or not: what others leave is idle. Emulated ones
  // miss ticks, and an idle one's clock may stand still.
  EXPECT_GE(Folded(idle.out).all,
            static_cast<std::uint64_t>(sysconf(_SC_NPROCESSORS_ONLN)) * 199 / 3)
      << idle.out;
  auto busy = run({tool_path("profile"), "-f", "1"});
  EXPECT_EQ(busy.status, 0) << busy.err;
  EXPECT_EQ(Folded(busy.out).idle, 0u) << busy.out;
}

TOOL_TEST(Profile, CpuThatGoesAndComesBack) {
  require_tool("profile");
  const std::string online = "/sys/devices/system/cpu/cpu1/online";
  if (!in_guest() || ::access(online.c_str(), W_OK))
    throw Skip("takes a CPU away: only in guests that have a second one");
  // With more the right is not kept that a clock would need.
  Setting paranoid("/proc/sys/kernel/perf_event_paranoid", "2");
  Tracer tracer("profile", {"--json", "-F", "199", "-C", "1"});
  {
    Setting away(online, "0");
    std::this_thread::sleep_for(std::chrono::seconds(2));
  }
  std::this_thread::sleep_for(std::chrono::seconds(2));
  Workload workload("sleeper", {"--sleeps", "1", "--spin", "1500", "--cpu", "1"}, kLinger);
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  std::uint64_t samples = 0;
  for (auto& line : report.of_process(static_cast<std::uint64_t>(workload.pid())))
    samples += line["count"].u64();
  EXPECT_GT(samples, 20u) << report.err;
  workload.end_lingering();
}

constexpr std::uint64_t kStressPeriodNs = 5'000'000;

const DeclareTests kProfile{{
    .name = "profile",
    .reports = {{ReportKind::stacks}},
    .events = {"-F 999", "sleeper --sleeps 1 --spin 200"},
    .stress = {.workload = "sleeper --sleeps 1 --spin {n}",
               .events = 1000,
               .options = {"--period", std::to_string(kStressPeriodNs)},
               .shown = "count",
               .truth =
                   [](stress::Load& load) {
                     return load.grown([](const stress::Rest::Thread& t) { return t.on_cpu_ns; }) /
                            kStressPeriodNs;
                   },
               .tiny = "--stack-storage-size 1",
               .tolerance = 0.25},
    .long_run = {{.arguments = "-F 20", .holds_results = true}},
}};

}  // namespace
}  // namespace coretap::tooltest
