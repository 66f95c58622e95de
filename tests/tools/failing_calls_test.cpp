// Of each kind of tool the first, second, ... n-th call of each system call fails, one in each run:
// the tool does without it or says what failed; it neither hangs nor crashes, and what it leaves
// out it does not leave out silently. strace makes the calls fail.
#include <atomic>
#include <iostream>
#include <mutex>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 600;  ///< failures in all; CORETAP_ALL_CALLS=1: no such bound
constexpr auto kHang = 15s;         ///< runs take less than one
constexpr char kLedger[] = "\"type\":\"ledger\"";

struct Kind {
  const char* name;
  Strings command;
  Strings whole;          ///< what the whole answer holds
  bool children = false;  ///< their calls fail, too
};

std::vector<Kind> kinds() {
  const auto hits = workload_path("hits"), hit = hits + ":hit", leaker = workload_path("leaker");
  const Strings cat = "-- cat /etc/hostname";
  return {
      {"events", Strings("opensnoop --json") + cat, {"\"/etc/hostname\"", kLedger}},
      {"text", Strings("opensnoop") + cat, {"/etc/hostname\n"}},
      {"keys", Strings("syscount --json -i 0.1") + cat, {"\"openat\"", kLedger}},
      {"histogram", "cpudist --json -i 0.1 -d 0.25", {"\"histogram\"", kLedger}},
      {"samples",
       "profile --json -F 997 -- " + workload_path("load") + " --blocked 0 --ms 100",
       {"\"load\"", kLedger}},
      {"stacks", "offcputime --json -- sleep 0.05", {"\"sleep\"", kLedger}},
      {"user functions",
       "funccount --json " + hit + " -- " + hits + " --count 77",
       {"\"count\":77", kLedger}},
      {"expressions",
       Strings{"trace", "--json", hit + " \"%d\", number", "--", hits, "--count", "3"},
       {"\"message\":\"2\"", kLedger}},
      {"values",
       Strings{"argdist", "--json", "-C", "p:" + hit + "(u64 number):u64:number", "--", hits},
       {"number = 99", kLedger}},
      {"allocations",
       "memleak --json -o 0 -i 1000 -- " + leaker + " --blocks 50",
       {"leak_malloc", kLedger}},
      {"recorder", Strings("traceloop --json --dump-on-exit") + cat, {"/etc/hostname", kLedger}},
      {"iterator", "loads --json -d 0.05", {"\"state\"", kLedger}},
      {"screen", Strings("filetop --json -i 0.1") + cat, {"hostname", kLedger}},
      {"metrics",
       "coretap serve --once --every 0.1 --run syscount",
       {"coretap_tool_up{tool=\"syscount\"} 1"},
       true},
  };
}

struct Call {
  const char* name;
  Strings errors;
};

/// The errors that these calls can have in earnest.
const std::vector<Call> kCalls = {
    {"bpf", "ENOMEM"},           {"clone", "EAGAIN"},          {"dup3", "EMFILE"},
    {"epoll_create1", "EMFILE"}, {"epoll_ctl", "ENOSPC"},      {"epoll_wait", "EINTR"},
    {"fcntl", "EMFILE"},         {"fstat", "ENOMEM"},          {"getdents64", "ENOMEM"},
    {"ioctl", "ENOMEM"},         {"memfd_create", "EMFILE"},   {"mmap", "ENOMEM"},
    {"newfstatat", "ENOMEM"},    {"openat", "EMFILE"},         {"perf_event_open", "EMFILE"},
    {"pidfd_open", "EMFILE"},    {"pipe2", "EMFILE"},          {"poll", "EINTR"},
    {"pread64", "EIO"},          {"prlimit64", "EPERM"},       {"read", "EIO"},
    {"sendto", "EINTR"},         {"signalfd4", "EMFILE"},      {"socket", "EMFILE"},
    {"socketpair", "EMFILE"},    {"timerfd_create", "EMFILE"}, {"timerfd_settime", "ENOMEM"},
    {"wait4", "EINTR"},          {"write", "ENOSPC EINTR"},
};

using Counts = std::map<std::string, std::size_t>;

Strings traced(Strings options, Strings command, bool children) {
  if (children) options.push_back("-f");
  command[0] = tool_path(command[0]);
  return Strings("strace -qq") + options + "--" + command;
}

/// How often each call is made by one process.
Counts counts_of(const Strings& command, bool children = false) {
  TemporaryDirectory dir;
  const auto log = dir.path() + "/log";
  auto result = run(traced({"-o", log}, command, children));
  if (result.status) throw Skip("strace: " + result.err);
  std::map<std::string, Counts> processes;
  for (auto& line : lines(slurp(log))) {
    auto call = line.find_first_not_of("0123456789 ");
    processes[line.substr(0, call)][line.substr(call, line.find('(') - call)]++;
  }
  Counts most;
  for (auto& [process, counts] : processes)
    for (auto& [call, n] : counts) most[call] = std::max(most[call], n);
  return most;
}

struct Failure {
  const Kind* kind;
  std::string call, error;
  std::size_t n;

  std::string text() const {
    return std::string(kind->name) + ": " + call + " #" + std::to_string(n) + " " + error;
  }
};

/// What is wrong with a run in which that fails; empty: nothing.
std::string wrong(const Failure& f) {
  TemporaryDirectory dir;
  auto inject = "inject=" + f.call + ":error=" + f.error + ":when=" + std::to_string(f.n);
  Strings options{"-o", dir.path() + "/log", "-e", "trace=" + f.call, "-e", inject};
  Process process({.argv = traced(options, f.kind->command, f.kind->children)});
  int status = 0;
  try {
    status = process.wait(kHang);
  } catch (const std::exception&) {
    return "hangs";
  }
  const auto out = process.out(), err = process.err();
  if (!contains(slurp(dir.path() + "/log"), "(INJECTED)")) return {};
  if (status > 128) return "ends by signal " + std::to_string(status - 128);
  const bool whole =
      std::ranges::all_of(f.kind->whole, [&](auto& part) { return contains(out, part); });
  static const std::map<std::string, int> numbers = {
      {"EAGAIN", EAGAIN}, {"EINTR", EINTR},   {"EIO", EIO},    {"EMFILE", EMFILE},
      {"ENOMEM", ENOMEM}, {"ENOSPC", ENOSPC}, {"EPERM", EPERM}};
  // libelf and libdw do not say why they cannot read a file, whose place is named then; libbpf
  // takes some failures for what the kernel does not have.
  const bool told = contains(err, strerror(numbers.at(f.error))) || contains(err, "/hits:hit") ||
                    (f.call == "bpf" && contains(err, "the kernel refuses the program"));
  if (f.error == "EINTR" ? status == 0 && whole : status == 0 ? whole || told : told) return {};
  return "status " + std::to_string(status) + (whole ? "" : ", not whole") + ": " + err;
}

std::vector<Failure> all_failures(const std::vector<Kind>& kinds) {
  // What the dynamic linker does is not ours.
  auto linker = counts_of("coretap version");
  linker["write"] = 0;
  std::vector<Failure> all;
  for (auto& kind : kinds) {
    auto counts = counts_of(kind.command, kind.children);
    for (auto& call : kCalls)
      for (auto& error : call.errors)
        for (auto n = linker[call.name] + 1; n <= counts[call.name]; n++)
          all.push_back({&kind, call.name, error, n});
  }
  return all;
}

/// The first of each call and error, and as many of the others as there is time for.
std::vector<Failure> chosen(const std::vector<Failure>& all) {
  if (::getenv("CORETAP_ALL_CALLS")) return all;
  std::vector<Failure> some, others;
  for (std::size_t i = 0; i < all.size(); i++)
    (i && all[i - 1].n + 1 == all[i].n ? others : some).push_back(all[i]);
  const auto room = std::max(kMost, some.size() + 1) - some.size();
  const auto step = others.size() / room + 1;
  for (std::size_t i = 0; i < others.size(); i += step) some.push_back(others[i]);
  return some;
}

TOOL_TEST(FailingCalls, AreToldOrDoneWithout) {
  for (auto& kind : kinds())
    if (kind.command[0] != "coretap") require_tool(kind.command[0]);
  const auto used = kinds();
  const auto all = all_failures(used);
  const auto some = chosen(all);
  std::cout << "tries " << some.size() << " of " << all.size() << " failures\n";
  ASSERT_GT(some.size(), 100U);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  auto work = [&] {
    for (std::size_t at; (at = next++) < some.size();) {
      auto what = wrong(some[at]);
      const std::lock_guard lock(mutex);
      if (!what.empty()) ADD_FAILURE() << some[at].text() << " " << what;
    }
  };
  std::vector<std::jthread> workers;
  for (long i = 0; i < 2 * ::sysconf(_SC_NPROCESSORS_ONLN); i++) workers.emplace_back(work);
}

}  // namespace
}  // namespace coretap::tooltest
