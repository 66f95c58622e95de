// profile against a process that uses a known CPU time in a known function.
#include <sys/mman.h>
#include <sys/prctl.h>

#include "../profile_reader.hpp"
#include "shared.hpp"

namespace coretap::tooltest {
namespace {

struct Profiled {
  Report report;
  double cpu_seconds, samples;
};

Profiled profile(const Strings& options, const Strings& more_of_workload = {}) {
  auto seen = observe("profile --json --strict -p {pid}" + options,
                      "sleeper --sleeps 1 --spin 800" + more_of_workload);
  return {seen.report(), seen.truth["threads"].items().at(0)["spun_cpu_ns"].real() / 1e9,
          static_cast<double>(seen.report().sum("count"))};
}

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
  auto seen = profile("-F 199");
  auto expected = seen.cpu_seconds * 199;
  EXPECT_GT(seen.samples, expected * 0.75);
  EXPECT_LT(seen.samples, expected * 1.25 + 10);
  // Where the clock needs a system call, the library function hides the caller.
  EXPECT_GT(sum_with_frame(seen.report.body, "user_stack", "workload_spin"), 0u);
  for (auto& line : seen.report.body) {
    expect_fields(line, {{"comm", "sleeper"}});
    EXPECT_FALSE(line.has("total_ns"));
    for (auto& frame : line["kernel_stack"].strings())
      EXPECT_FALSE(frame.starts_with("bpf_") || contains(frame, "perf_event_overflow")) << frame;
  }
}

// Stacks of code with frame pointers are complete; others are marked as truncated.
TOOL_TEST(Profile, TruncatedStacksAreMarked) {
  auto report = profile("-F 199 -U").report;
  auto cut =
      lines_where(report, [](auto& line) { return !line["user_stack_truncated"].is_null(); });
  EXPECT_GT(sum_with_frame(report.body, "user_stack", "main"), 0u);
  EXPECT_EQ(sum_with_frame(cut, "user_stack", "main"), 0u);
  EXPECT_EQ(sum(cut, "count"), report.lost("stacks_truncated"));

  auto text = run({tool_path("profile"), "-F", "199", "-f", "-U", "--perf-max-stack-depth", "1",
                   "--", "sh", "-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"});
  expect_contains(text.out, {"sh;[truncated: stack depth];"});
  expect_contains(text.err, {"truncated user stack"});
}

TOOL_TEST(Profile, PeriodAndParts) {
  // A sample every 5 ms of the CPU clock.
  auto kernel = profile("--period 5000000 -K");
  for (auto& line : kernel.report.body) EXPECT_TRUE(line["user_stack"].strings().empty());
  EXPECT_GT(kernel.samples, kernel.cpu_seconds * 200 * 0.75);
  EXPECT_LT(kernel.samples, kernel.cpu_seconds * 200 * 1.5 + 10);
  for (auto& line : profile("-U").report.body) EXPECT_TRUE(line["kernel_stack"].strings().empty());
}

TOOL_TEST(Profile, OneCpu) {
  auto here = profile("-F 199 -C 0", "--cpu 0");
  EXPECT_GT(here.samples, here.cpu_seconds * 199 * 0.75);
  if (::sysconf(_SC_NPROCESSORS_ONLN) > 1) {
    EXPECT_LE(profile("-F 199 -C 1", "--cpu 0").samples, 3);
  }
}

// A timer that fires permanently leaves no CPU time for other tasks: neither the duration nor
// Ctrl-C would end it.
TOOL_TEST(Profile, TheShortestPeriod) { output_of("profile --period 50000 --json 0.5"); }

TOOL_TEST(Profile, IdleAndFolded) {
  auto idle = output_of("profile -I -f -a -F 199 1");
  expect_contains(idle, {"_[k] "});
  // Every CPU all the time, busy or not: the rest is idle. Emulated CPUs miss ticks, and the clock
  // of an idle one may stop.
  EXPECT_GE(Folded(idle).all, static_cast<std::uint64_t>(::sysconf(_SC_NPROCESSORS_ONLN)) * 199 / 3)
      << idle;
  auto busy = output_of("profile -f 1");
  EXPECT_EQ(Folded(busy).idle, 0u) << busy;
}

/// Page faults of a process, as the kernel counts them for it.
std::uint64_t faults_of(const std::string& pid) {
  auto stat = slurp("/proc/" + pid + "/stat");
  auto fields = words(stat.substr(stat.rfind(')') + 1));
  return std::stoull(fields.at(7)) + std::stoull(fields.at(9));
}

double cpu_seconds_of(const std::string& pid) {
  auto stat = slurp("/proc/" + pid + "/stat");
  auto fields = words(stat.substr(stat.rfind(')') + 1));
  return static_cast<double>(std::stoull(fields.at(11)) + std::stoull(fields.at(12))) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

// One run, two events: each has its own samples, by the kernel's count of faults and CPU time.
TOOL_TEST(Profile, SeveralEvents) {
  for (std::string how : {"-e cpu-clock -e page-faults", "--event page-faults,cpu-clock"}) {
    auto faulter = Workload::of("faulter --anon 30000", kLinger);
    auto before = faults_of(faulter.id());
    Tracer tracer("profile", "--json --strict " + how + " -p " + faulter.id());
    faulter.release();
    auto touched = faulter.truth()["anon"]["minor"].u64();
    usleep(100'000);
    auto most = faults_of(faulter.id()) - before;
    auto report = tracer.stop();
    std::map<std::string, std::uint64_t> sums;
    for (auto& line : report.body) sums[line["event"].str()] += line["count"].u64();
    EXPECT_GE(sums["page-faults"], touched) << how;
    EXPECT_LE(sums["page-faults"], most) << how;
    auto ticks = cpu_seconds_of(faulter.id()) * 49;
    expect_between(static_cast<double>(sums["cpu-clock"]), ticks * 0.5 - 5, ticks * 1.25 + 10);
    EXPECT_LE(sums.size(), 2u);
  }
}

TOOL_TEST(Profile, EventsInEachForm) {
  TemporaryDirectory directory;
  const auto pprof = directory.path() + "/profile.pb.gz", svg = directory.path() + "/a.svg";
  auto of = [](const std::string& options) {
    return output_of(Strings("profile -e cpu-clock,page-faults " + options + " -- sh -c") +
                     Strings{"for i in 1 2 3 4 5 6; do ls / >/dev/null; done; i=0; while [ $i -lt "
                             "300000 ]; do i=$((i+1)); done"});
  };
  auto folded = of("--folded");
  for (auto& line : complete_lines(folded))
    EXPECT_TRUE(line.starts_with("cpu-clock;") || line.starts_with("page-faults;")) << line;
  expect_contains(folded, {"cpu-clock;sh;", "page-faults;ls;", "page-faults;sh;"});
  auto text = of("");
  auto second = text.find("event: page-faults\n");
  EXPECT_TRUE(text.starts_with("event: cpu-clock\n")) << text;
  ASSERT_NE(second, text.npos) << text;
  auto functions = of("--functions");
  expect_contains(functions, {"event: cpu-clock\n", "event: page-faults\n"});
  expect_contains(of("--by comm --csv"), {"event,comm,total", "page-faults,ls,"});
  of("--pprof " + pprof + " --svg " + svg);
  auto profile = read_profile(pprof);
  EXPECT_EQ(profile["types"].strings(), (Strings{"cpu-clock/count", "page-faults/count"}));
  std::uint64_t ticks = 0, faults = 0;
  for (auto& sample : profile["samples"].items()) {
    auto values = sample["values"].items();
    ticks += values[0].u64();
    faults += values[1].u64();
    for (auto& frame : sample["frames"].items()) EXPECT_NE(frame["name"].str(), "page-faults");
  }
  EXPECT_GT(ticks, 0u);
  EXPECT_GT(faults, 100u);
  expect_contains(slurp(svg), {"<title>page-faults\n", "<title>cpu-clock\n"});

  expect_refused("profile -e a-b,page-faults", {"a-b"});
  expect_refused("profile -e cs,faults,migrations,minor-faults,cpu-clock", {"at most 4"}, 2);
  expect_refused("profile -e cs,faults --dot x.dot", {"--dot"}, 2);
}

// CPU time for each page fault of the function that touches the pages.
TOOL_TEST(Profile, RatioOfTwoEvents) {
  TemporaryDirectory directory;
  auto svg = directory.path() + "/a.svg";
  auto faulter = Workload::of("faulter --anon 60000", kLinger);
  const auto with = "-U --json --strict --ratio cpu-clock/page-faults -p " + faulter.id();
  auto before = faults_of(faulter.id());
  Tracer tracer("profile", with), draws("profile", with + " --svg " + svg);
  faulter.release();
  auto touched = faulter.truth()["anon"]["minor"].u64();
  usleep(100'000);
  auto most = faults_of(faulter.id()) - before;
  auto report = tracer.stop();
  draws.stop();
  double faults = 0;
  for (auto& row : report.body)
    if (!row["ratio"].is_null() && row["ratio"].real() > 0)
      faults += row["self"].real() / row["ratio"].real();
  EXPECT_GE(faults, static_cast<double>(touched) * 0.999) << report.err;
  EXPECT_LE(faults, static_cast<double>(most) * 1.001);
  // Each sample of the clock stands for its period.
  EXPECT_EQ(report.body.at(0)["self"].u64() % (1'000'000'000 / 49), 0u);
  expect_contains(slurp(svg), {"cpu-clock for each of page-faults", " page-faults: ", "\"low1\""});
  auto table = complete_lines(output_of("profile --ratio cpu-clock/page-faults 0.3"));
  EXPECT_EQ(words(table.at(0)), words("SELF % TOTAL % RATIO OBJECT FUNCTION"));
  for (auto* other : {"-e cs", "--folded", "--by comm", "--tree", "--cpi"})
    expect_refused("profile --ratio cpu-clock/page-faults " + std::string(other), {"--ratio"}, 2);
  expect_refused("profile --ratio page-faults", {"two events"}, 2);
  expect_refused("profile --ratio cs/cs", {"two events"}, 2);
  auto cpi = result_of(Strings("profile --cpi 0.1"));
  if (cpi.status) {
    EXPECT_EQ(cpi.status, 3) << cpi.err;
    expect_contains(cpi.err, {"cannot sample cycles", "no hardware counter"});
  } else {
    expect_contains(cpi.out, {" CPI "});
  }
}

/// A process that runs code which it has written into its memory, with a map as Java agents write
/// it.
class CompiledCode {
 public:
  CompiledCode() {
    pid_ = fork();
    if (!pid_) work();
  }
  ~CompiledCode() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    unlink(map().c_str());
  }
  CompiledCode(const CompiledCode&) = delete;
  CompiledCode& operator=(const CompiledCode&) = delete;
  pid_t pid() const { return pid_; }

 private:
  std::string map() const { return "/tmp/perf-" + std::to_string(pid_ ? pid_ : getpid()) + ".map"; }
  [[noreturn]] void work() const {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    // Counts 16 million down, with a frame pointer.
#ifdef __aarch64__
    constexpr std::uint32_t kCode[] = {0xa9bf7bfd, 0x910003fd, 0xd2a02000, 0xf1000400,
                                       0x54ffffe1, 0xa8c17bfd, 0xd65f03c0};
#else
    constexpr unsigned char kCode[] = {0x55, 0x48, 0x89, 0xe5, 0xb9, 0x00, 0x00, 0x00,
                                       0x01, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3};
#endif
    auto* memory = static_cast<char*>(mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                           MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    if (memory == MAP_FAILED) _exit(1);
    memcpy(memory, kCode, sizeof kCode);
    __builtin___clear_cache(memory, memory + sizeof kCode);
    std::ofstream(map()) << std::hex << reinterpret_cast<std::uint64_t>(memory)
                         << " 40 Server::run->Map::<get>\n";
    for (;;) reinterpret_cast<void (*)()>(memory)();
  }
  pid_t pid_ = 0;
};

/// The style of a function's frames in a flame graph, without the shade; "": there is none.
std::string style_of(const std::string& picture, const std::string& name) {
  constexpr std::string_view kBegin = "<rect class=\"";
  auto at = picture.find("<title>" + name + "\n");
  if (at == picture.npos) return {};
  at = picture.find(kBegin, at) + kBegin.size();
  return picture.substr(at, picture.find_first_of("0123456789\"", at) - at);
}

TOOL_TEST(Profile, ColoursTellTheKindOfCode) {
  CompiledCode process;
  TemporaryDirectory scratch;
  const auto svg = scratch.path() + "/p.svg";
  auto seen = run({tool_path("profile"), "-F", "199", "-p", std::to_string(process.pid()), "-a",
                   "-f", "--svg", svg, "1"});
  expect_contains(seen.out, {"Server::run_[j];Map::<get>_[i]"});
  auto picture = slurp(svg);
  EXPECT_EQ(style_of(picture, "Server::run"), "j");
  EXPECT_EQ(style_of(picture, "Map::&lt;get&gt;"), "i");
  EXPECT_EQ(style_of(picture, "main"), "p") << "of this test's executable";
  EXPECT_EQ(style_of(picture, "__libc_start_main"), "l");
  expect_contains(picture, {">JIT-compiled</text>", ">inlined</text>", ">program</text>"});
  auto plain = run({tool_path("profile"), "-F", "199", "-p", std::to_string(process.pid()), "-f",
                    "--svg", svg, "--colour-by", "object", "1"});
  expect_contains(plain.out, {"Server::run;Map::<get>"});
  EXPECT_EQ(plain.out.find("_["), plain.out.npos);
  expect_contains(slurp(svg), {">[anon]</text>", ">tool_tests</text>"});
}

TOOL_TEST(Profile, CpuThatGoesAndComesBack) {
  const std::string online = "/sys/devices/system/cpu/cpu1/online";
  if (!in_guest() || ::access(online.c_str(), W_OK))
    throw Skip("takes a CPU away: only in guests that have a second one");
  // At a higher value the tool would drop the capability that a clock needs.
  Setting paranoid("/proc/sys/kernel/perf_event_paranoid", "2");
  Tracer tracer("profile", "--json -F 199 -C 1");
  {
    Setting away(online, "0");
    nap(std::chrono::seconds(2));
  }
  nap(std::chrono::seconds(2));
  Workload workload("sleeper", "--sleeps 1 --spin 1500 --cpu 1", kLinger);
  workload.release();
  workload.truth();
  auto report = tracer.stop();
  auto own = report.of_process(static_cast<std::uint64_t>(workload.pid()));
  EXPECT_GT(sum(own, "count"), 20u) << report.err;
}

// A tracer that costs much is seen: its program is where the CPU is, not a part of this one.
TEST(Profile, ProgramsOfOtherTracers) {
  require_tool("profile");
  require_tool("stackcount");
  Process calls({.argv = {"dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=1000000000"}});
  Tracer traces("stackcount",
                "--json -p " + std::to_string(calls.pid()) + " t:raw_syscalls:sys_enter");
  Tracer tracer("profile", "--json -F 999 -K -p " + std::to_string(calls.pid()));
  nap(std::chrono::seconds(1));
  auto report = tracer.stop();
  std::uint64_t all = 0, in_program = 0;
  for (auto& line : report.body) {
    if (!line.has("kernel_stack") || line["kernel_stack"].items().empty()) continue;
    all += line["count"].u64();
    if (line["kernel_stack"].items()[0].str().starts_with("bpf_prog_"))
      in_program += line["count"].u64();
  }
  EXPECT_GT(all, 100u) << report.err;
  EXPECT_GT(in_program, all / 50) << report.err;
}

TESTS_OF(profile, .events = {"-F 999", "sleeper --sleeps 1 --spin 200"}, .alone = true,
         .stress = stack_row("sleeper --sleeps 1 --spin {n}", 1000, samples_each(5'000'000),
                             "--period 5000000")
                       .sampled(0.25),
         .long_run = {{.arguments = "-F 20", .holds_results = true}});

}  // namespace
}  // namespace coretap::tooltest
