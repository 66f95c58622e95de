// Shared by the tests of several of these tools.
#pragma once
#include <sys/resource.h>

#include <cctype>

#include "../harness.hpp"

namespace coretap::tooltest {
inline namespace cpu {

// ---- lines ----

/// Maximum and sum of these lines.
inline void expect_longest_of_all(const Json& line) {
  auto count = line["count"].u64(), total = line["total_ns"].u64(), most = line["max_ns"].u64();
  EXPECT_LE(most, total);
  EXPECT_GE(most * count, total);
  EXPECT_GT(most, 0u);
}

// ---- time on a CPU, and waiting for one ----

/// If the tool reads the kernel's accounting, it adds the same numbers: any difference is an error.
/// Otherwise it takes timestamps slightly later than the kernel, and before a task is queued; 3%
/// covers that in emulated guests, whose waits are long.
inline bool has_accounting(const Report& report) {
  return report.header["hooks"].items().at(0)["attached"].items().size() == 1;
}
inline void expect_run_delay(const Report& report, std::uint64_t waited_ns, const Json& truth,
                             Location where = Location::current()) {
  auto delay = truth["run_delay_ns"].real(), slack = has_accounting(report) ? 0 : 0.03;
  expect_between(waited_ns, delay * (1 - slack), delay * (1 + slack), where);
}

// For Row::truth.
inline std::uint64_t slices(stress::Load& load) {
  return load.grown([](auto& thread) { return thread.slices; });
}
inline auto samples_each(std::uint64_t period_ns) {
  return [period_ns](stress::Load& load) {
    return load.grown([](auto& thread) { return thread.on_cpu_ns; }) / period_ns;
  };
}

// ---- interrupts ----

inline std::string lower(std::string name) {
  for (char& c : name) c = static_cast<char>(std::tolower(c));
  return name;
}

/// Counts of /proc/interrupts or /proc/softirqs so far, over all CPUs, by the start of the line
/// ("24", "loc", "net_rx").
inline Counts counts_in(const std::string& path) {
  Counts all;
  for (auto& line : lines(slurp(path))) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (!name.ends_with(':')) continue;
    name.pop_back();
    for (std::uint64_t n; words >> n;) all[lower(name)] += n;
  }
  return all;
}

/// A tool, and the kernel's counts meanwhile.
struct Counted {
  Report report;
  Counts at[4];  ///< before its start, when it traces, before its end, after its end

  /// At most the difference over the whole run, at least the difference while it certainly traced.
  void expect(const std::string& name, std::uint64_t shown) const {
    SCOPED_TRACE(name);
    ASSERT_TRUE(at[0].contains(name));
    EXPECT_GE(shown, at[2].at(name) - at[1].at(name));
    EXPECT_LE(shown, at[3].at(name) - at[0].at(name));
  }
};
inline Counted count(const Strings& tool, const char* path, const std::function<void()>& work) {
  require_tool(tool.at(0));
  Counted counted;
  counted.at[0] = counts_in(path);
  Tracer tracer(tool[0], Strings(tool.begin() + 1, tool.end()) + "--json --strict");
  counted.at[1] = counts_in(path);
  work();
  counted.at[2] = counts_in(path);
  counted.report = tracer.stop();
  counted.at[3] = counts_in(path);
  return counted;
}

/// If files are on a disk with interrupts.
inline void write_to_disk() {
  run({"sh", "-c",
       "for i in $(seq 30); do dd if=/dev/zero of=interrupts.$$ bs=64k count=1 "
       "conv=fsync 2>/dev/null; done; rm interrupts.$$"});
}

/// By name, softirqs that interrupted a task: "softirq_exit: vec=9 [action=RCU]".
inline Counts softirqs_of(const Trace& trace, pid_t task) {
  Counts all;
  for (auto& event : trace.events(task)) {
    auto name = event.value("action");
    all[lower(name.substr(0, name.find(']')))]++;
  }
  if (all.empty()) throw Skip("no softirq interrupted the process");
  return all;
}

// ---- children ----

/// Waits until it is released, then runs `body` and exits with 0 if that returns.
class Child {
 public:
  explicit Child(const std::function<void()>& body) {
    if (::pipe2(gate_, O_CLOEXEC)) throw std::runtime_error("pipe");
    pid_ = ::fork();
    if (pid_) {
      ::close(gate_[0]);
      return;
    }
    ::close(gate_[1]);
    char byte;
    while (::read(gate_[0], &byte, 1) < 0) {
    }
    body();
    ::_exit(0);
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    if (status >= 0) return;
    ::kill(pid_, SIGKILL);
    ::close(gate_[1]);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }
  std::string id() const { return std::to_string(pid_); }
  void end() {
    if (::write(gate_[1], "x", 1) != 1) throw std::runtime_error("write");
    ::close(gate_[1]);
    if (::wait4(pid_, &status, 0, &usage) != pid_) throw std::runtime_error("wait4");
  }

  int status = -1;
  rusage usage{};

 private:
  int gate_[2];
  pid_t pid_;
};

/// `task`: 0: this one.
inline bool stay_on(int cpu, pid_t task = 0) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(cpu), &one);
  return ::sched_setaffinity(task, sizeof one, &one) == 0;
}

}  // namespace cpu
}  // namespace coretap::tooltest
