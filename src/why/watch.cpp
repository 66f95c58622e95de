#include "why/watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "base/own_process.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "coretap/sanitize.hpp"
#include "coretap/small_files.hpp"
#include "why/calls.hpp"
#include "why/counters.hpp"
#include "why/holders.hpp"
#include "why/lines.hpp"
#include "why/members.hpp"
#include "why/processes.hpp"

namespace coretap::why {

namespace {

constexpr int kParts = 3;
// The tools that run as processes: one accounts for all time; then others show the holders of
// locks, and what the kernel is called for, if these cost time.
constexpr char kAccounts[] = "walltime", kHolders[] = "blockedby", kCalls[] = "syscount";
constexpr double kAccountsPart = 0.6;  // of the run

/// The tool as a process: its lines, until it ends.
class Child {
 public:
  ~Child() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

  Result<void> start(std::vector<std::string> words) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC)) return system_error("cannot make a pipe", errno);
    output_ = Fd(ends[0]);
    Fd to(ends[1]);
    errors_ = Fd(memfd_create("errors", MFD_CLOEXEC));
    if (!errors_) return system_error("cannot keep messages", errno);
    auto pid = start_own_process(std::move(words), to.get(), errors_.get());
    if (!pid) return pid.error();
    pid_ = *pid;
    return {};
  }

  pid_t pid() const { return pid_; }
  /// A signal has ended it early.
  bool told() const { return told_; }
  void end() {
    if (pid_ > 0) ::kill(pid_, SIGINT);
  }

  /// Calls `take` with each line, and looks at queries. A signal ends the tool, which then prints
  /// what it has.
  template <class Take>
  Result<void> read_lines(int signals, Take&& take, NameQueries* queries = nullptr) {
    std::string pending;
    while (true) {
      pollfd wait[] = {{output_.get(), POLLIN, 0}, {signals, POLLIN, 0}};
      const auto interval = queries ? queries->interval() : std::chrono::milliseconds(0);
      const int ready = ::poll(wait, 2, interval.count() ? static_cast<int>(interval.count()) : -1);
      if (ready < 0 && errno != EINTR) return system_error("cannot wait", errno);
      if (ready <= 0) {
        if (queries) queries->look();
        continue;
      }
      if (wait[1].revents) {
        signalfd_siginfo info{};
        (void)!::read(signals, &info, sizeof info);
        ::kill(pid_, SIGINT);
        told_ = true;
      }
      if (!wait[0].revents) continue;
      char bytes[1 << 16];
      auto got = ::read(output_.get(), bytes, sizeof bytes);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) break;
      pending.append(bytes, static_cast<std::size_t>(got));
      std::size_t begin = 0;
      for (auto end = pending.find('\n'); end != pending.npos; end = pending.find('\n', begin)) {
        take(std::string_view(pending).substr(begin, end - begin));
        begin = end + 1;
      }
      pending.erase(0, begin);
    }
    return ended();
  }

 private:
  Result<void> ended() {
    int status = 0;
    while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
    pid_ = 0;
    if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == kDataLost))
      return {};
    return Error{"cannot account for the time of threads",
                 text_of_child(errors_.get()),
                 {},
                 WIFEXITED(status) ? WEXITSTATUS(status) : kFailed};
  }

  pid_t pid_ = 0;
  bool told_ = false;
  Fd output_, errors_;
};

/// SIGINT and SIGTERM as a descriptor, for as long as it exists.
class Signals {
 public:
  Signals() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGINT);
    sigaddset(&set_, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &set_, &before_);
    fd_ = Fd(::signalfd(-1, &set_, SFD_CLOEXEC | SFD_NONBLOCK));
  }
  ~Signals() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_.get(); }

 private:
  sigset_t set_{}, before_{};
  Fd fd_;
};

/// The flags, nice value and policy of a process in /proc/PID/stat.
void look_at(Account& account) {
  auto fields = stat_of(account.pid);
  if (fields.size() < 42) return;
  constexpr unsigned long kKernelThread = 0x00200000;
  constexpr std::string_view kLeastNice = "19", kIdlePolicy = "5";
  account.kernel = parse_unsigned(fields[9]).value_or(0) & kKernelThread;
  account.background = fields[19] == kLeastNice || fields[41] == kIdlePolicy;
}

/// The accounts of the tool's lines, by report.
class Accounts {
 public:
  Accounts(const Target& target, pid_t child)
      : target_(target), child_(static_cast<std::uint32_t>(child)) {}

  void take(std::string_view text) {
    rapidjson::Document line;
    if (!read_object(line, text)) return;
    const auto type = text_of(line, "type");
    if (type == "account") account(line);
    if (type == "ledger") ledger(line);
  }

  std::vector<Part> parts() && { return std::move(parts_); }
  bool certain() const { return certain_; }

 private:
  void account(const rapidjson::Value& line) {
    const auto time = text_of(line, "time");
    if (parts_.empty() || time != time_) parts_.emplace_back();
    time_ = time;
    Account a{.pid = static_cast<std::uint32_t>(number_of(line, "pid")),
              .comm = text_of(line, "comm"),
              .cgroup = text_of(line, "cgroup"),
              .threads = number_of(line, "threads"),
              .time_ns = number_of(line, "time_ns")};
    for (auto& state : line.GetObject()) {
      const std::string_view key = state.name.GetString();
      auto& value = state.value;
      if (key.ends_with("_ns") && key != "time_ns" && key != "longest_ns" && value.IsUint64() &&
          value.GetUint64())
        a.ns[std::string(key.substr(0, key.size() - 3))] = value.GetUint64();
    }
    look_at(a);
    a.own = a.pid == static_cast<std::uint32_t>(::getpid()) || a.pid == child_;
    a.target = !a.own && target_.has(a);
    parts_.back().accounts.push_back(std::move(a));
  }

  void ledger(const rapidjson::Value& line) {
    certain_ = !number_of(line, "lost") && !number_of(line, "untracked");
  }

  const Target& target_;
  std::uint32_t child_;
  std::vector<Part> parts_;
  std::string time_;
  bool certain_ = true;
};

/// The process of the target that lost most: its settings stand for the target's.
std::uint32_t loser(const Facts& facts) {
  std::map<std::uint32_t, std::uint64_t> lost;
  for (auto& part : facts.parts)
    for (auto& a : part.accounts)
      if (facts.target.empty() ? !a.kernel : a.target)
        lost[a.pid] += a.in("queue_limit") + a.in("queue_busy") + a.in("queue_idle");
  auto most = std::ranges::max_element(lost, {}, [](auto& one) { return one.second; });
  return most == lost.end() ? 0 : most->first;
}

std::string allowed_cpus(std::uint32_t pid) {
  std::string allowed;
  each_line(fmt::format("/proc/{}/status", pid), [&](auto& words) {
    if (words.size() == 2 && words[0] == "Cpus_allowed_list:") allowed = words[1];
  });
  return allowed;
}

}  // namespace

std::string Target::options() const {
  if (!pids.empty()) return fmt::format("-p {}", fmt::join(pids, ","));
  if (!cgroup.empty()) return fmt::format("-c {}", cgroup);
  return comms.empty() ? std::string() : fmt::format("--comm {}", fmt::join(comms, ","));
}

Result<std::string> Target::subject() const {
  std::string words;
  for (auto pid : pids) {
    auto comm = first_line_of(fmt::format("/proc/{}/comm", pid));
    if (comm.empty())
      return Error{fmt::format("there is no process {}", pid), {}, "see ps -e", kFailed};
    words += fmt::format("{}process {} ({})", words.empty() ? "" : ", ", pid, printable(comm));
  }
  if (!pids.empty()) return words;
  if (!cgroup.empty()) return fmt::format("cgroup {}", printable(cgroup));
  if (!comms.empty()) return fmt::format("processes named {}", fmt::join(comms, ", "));
  return std::string("this machine");
}

bool Target::has(const Account& a) const {
  if (!named()) return true;
  if (!pids.empty()) return std::ranges::find(pids, a.pid) != pids.end();
  if (!comms.empty()) return std::ranges::find(comms, a.comm) != comms.end();
  return a.cgroup == cgroup || a.cgroup.starts_with(cgroup + '/') || cgroup == "/";
}

namespace {

/// Time that the target may have lost by locks: a finding, if it is.
bool suspects_locks(const Facts& facts) {
  constexpr double kLeast = 0.05;  // of a thread
  std::uint64_t ns = 0;
  for (auto& part : facts.parts)
    for (auto& a : part.accounts)
      for (auto state : {"wait_futex", "wait_lock", "wait_mmap_lock", "wait_file_lock"})
        if (a.target && !a.kernel) ns += a.in(state);
  return static_cast<double>(ns) >= kLeast * facts.seconds * 1e9;
}

/// Most of the target's CPU time is the kernel's: what is it called for?
bool suspects_calls(const Facts& facts) {
  constexpr double kLeast = 0.1;  // of a CPU
  auto system = facts.counter("target.system_s");
  return system >= kLeast * facts.seconds && system >= kLeastSystemShare * facts.cpu_s();
}

std::vector<std::string> of_target(std::initializer_list<const char*> command,
                                   const Target& target) {
  std::vector<std::string> words(command.begin(), command.end());
  const auto options = target.options();
  for (auto word : words_in(options)) words.emplace_back(word);
  return words;
}

/// Looks closer at what may cost time. A failure here is no error: the findings then have less
/// evidence.
void confirm(const Target& target, double seconds, int signals, Facts& facts) {
  const auto duration = fmt::format("{:.3f}", seconds);
  const bool locks = suspects_locks(facts), calls = suspects_calls(facts);
  Child holding, calling, failing;  // at the same time
  if (locks) {
    auto words = of_target({"coretap", kHolders, "--json"}, target);
    words.insert(words.end(), {duration, "1"});
    (void)holding.start(std::move(words));
  }
  if (calls) {
    auto words = of_target({"coretap", kCalls, "--json"}, target);
    words.insert(words.end(), {"--duration", duration});
    (void)calling.start(words);
    words.emplace_back("--failures");
    (void)failing.start(std::move(words));
  }
  if (Holders holders(target);
      holding.pid() && holding.read_lines(signals, [&](auto line) { holders.take(line); }))
    holders.add_to(facts, seconds);
  if (holding.told())
    for (auto* other : {&calling, &failing}) other->end();
  Calls counted;
  if (calling.pid() && failing.pid() &&
      calling.read_lines(signals, [&](auto line) { counted.take(line, false); }) &&
      failing.read_lines(signals, [&](auto line) { counted.take(line, true); }))
    counted.add_to(facts, seconds);
}

/// The CPU time of processes that ended within a tenth of a second, in us.
double short_lived_us(const Facts& facts) {
  constexpr double kShort = 1e8;  // ns
  double ns = 0;
  for (auto& part : facts.parts)
    for (auto& a : part.accounts)
      if (!a.own && !a.kernel && static_cast<double>(a.time_ns) < kShort)
        ns += static_cast<double>(a.in("cpu"));
  return ns / 1e3;
}

/// The kernel's time of stalls for memory, if pages come from swap, and for the target.
double stalled_by_swap_us(const Facts& facts) {
  constexpr double kLeast = 10, kReadAhead = 8;  // a second; pages that one fault brings
  auto pages = facts.counter("vmstat.pswpin"), faults = facts.counter("target.major_faults");
  const bool of_target = facts.target.empty() || faults * kReadAhead * 2 >= pages;
  return pages >= kLeast * facts.seconds && of_target ? facts.counter("psi.memory.some_us") : 0;
}

void add_derived(Facts& facts) {
  facts.counters["short_lived.cpu_us"] =
      facts.target.empty() ? short_lived_us(facts) : facts.counter("target.children_s") * 1e6;
  facts.counters["swap.stalled_us"] = stalled_by_swap_us(facts);
}

}  // namespace

Result<Facts> watch(const Target& target, double seconds) {
  auto subject = target.subject();
  if (!subject) return subject.error();
  const Signals signals;
  auto files = !target.pids.empty()     ? CgroupFiles::of_process(target.pids[0])
               : !target.cgroup.empty() ? CgroupFiles::of_path(target.cgroup)
                                        : CgroupFiles();
  const auto pids = processes_of(target);
  auto read_all = [&] {
    auto all = read_counters(files, pids.empty() ? 0 : pids[0]);
    read_processes(all, pids);
    return all;
  };
  auto before = read_all();
  NameQueries queries(pids);
  Child child;
  if (auto started = child.start({"coretap", kAccounts, "--json", "--include-self",
                                  fmt::format("{:.3f}", kAccountsPart * seconds / kParts),
                                  std::to_string(kParts)});
      !started)
    return started.error();
  Accounts accounts(target, child.pid());
  auto read = child.read_lines(
      signals.fd(), [&](auto line) { accounts.take(line); }, &queries);
  if (!read) return read.error();
  Facts facts{.target = target.options(), .subject = *subject, .certain = accounts.certain()};
  facts.counters = growth(before, read_all());
  add_up_processes(facts.counters);
  queries.add_to(facts);
  facts.parts = std::move(accounts).parts();
  for (auto& part : facts.parts) {
    // All threads that lived throughout have the same time.
    for (auto& a : part.accounts)
      if (a.threads)
        part.seconds = std::max(
            part.seconds, static_cast<double>(a.time_ns) / 1e9 / static_cast<double>(a.threads));
    facts.seconds += part.seconds;
  }
  facts.cpus = static_cast<unsigned>(::sysconf(_SC_NPROCESSORS_ONLN));
  add_derived(facts);
  if (!child.told()) confirm(target, (1 - kAccountsPart) * seconds, signals.fd(), facts);
  const auto of = loser(facts);
  if (!target.named()) files = CgroupFiles::of_process(of);
  facts.texts.merge(read_settings(files));
  facts.texts["online"] = first_line_of("/sys/devices/system/cpu/online");
  if (auto allowed = allowed_cpus(of); !allowed.empty()) facts.texts["allowed"] = allowed;
  if (facts.parts.empty() || facts.seconds <= 0)
    return Error{"no time was accounted for", {}, "give it more time", kFailed};
  return facts;
}

}  // namespace coretap::why
