// In each run of a tool one system call fails (by strace): the tool does without it or says what
// failed; it neither hangs nor crashes, and leaves nothing out silently.
#include <atomic>
#include <iostream>
#include <mutex>

#include "harness.hpp"

namespace coretap::tooltest {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMost = 12, kMostOthers = 6;  ///< CORETAP_ALL_CALLS=1: no such limits
constexpr auto kHang = 60s;  ///< runs take up to 2 s, and 10 on a busy machine
constexpr char kLedger[] = "\"type\":\"ledger\"";

struct Kind {
  const char* name;
  Strings command;
  Strings whole;          ///< words that a complete answer contains
  bool children = false;  ///< also in child processes
};

std::vector<Kind> kinds() {
  const auto hits = workload_path("hits"), hit = hits + ":hit", leaker = workload_path("leaker");
  const Strings cat = "-- cat /etc/hostname";
  return {
      {"events", Strings("opensnoop --json") + cat, {"\"/etc/hostname\"", kLedger}},
      {"text", Strings("opensnoop") + cat, {"/etc/hostname\n"}},
      {"keys", Strings("syscount --json --interval 0.1") + cat, {"\"openat\"", kLedger}},
      {"histogram", "cpudist --json --interval 0.1 --duration 0.25", {"\"histogram\"", kLedger}},
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
      {"iterator", "loads --json --duration 0.05", {"\"state\"", kLedger}},
      {"screen", Strings("filetop --json --interval 0.1") + cat, {"hostname", kLedger}},
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

/// The errors that these calls can return in practice.
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

/// Arguments of each call, in order, by name.
using Calls = std::map<std::string, Strings>;

/// The part that is the same in all runs: no numbers, and no data read or written.
std::string place_of(const std::string& line) {
  static const std::regex number("0x[0-9a-f]+|[0-9]+"), text("\"[^\"]*\"");
  auto all = std::regex_replace(line.substr(0, line.rfind(" = ")), number, "");
  const bool moves =
      all.starts_with("read") || all.starts_with("pread") || all.starts_with("write");
  return moves ? std::regex_replace(all, text, "") : all;
}

Strings traced(Strings options, Strings command, bool children) {
  if (children) options.push_back("-f");
  command[0] = tool_path(command[0]);
  return Strings("strace -qq") + options + "--" + command;
}

/// The calls of the process that makes the most.
Calls calls_of(const Strings& command, bool children = false) {
  TemporaryDirectory dir;
  const auto log = dir.path() + "/log";
  auto result = run(traced({"-o", log}, command, children));
  if (result.err.starts_with("strace:") || contains(result.err, "exec strace"))
    throw Skip(result.err);
  if (result.status) throw std::runtime_error(join(command) + ": " + result.err);
  std::map<std::string, Calls> processes;
  for (auto& line : lines(slurp(log))) {
    auto call = line.find_first_not_of("0123456789 ");
    processes[line.substr(0, call)][line.substr(call, line.find('(') - call)].push_back(
        place_of(line.substr(call)));
  }
  Calls most;
  for (auto& [process, calls] : processes)
    for (auto& [call, places] : calls)
      if (places.size() > most[call].size()) most[call] = places;
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

/// Describes the fault of a run with this failure; empty: no fault.
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
  const auto log = slurp(dir.path() + "/log");  // "= -1 EIO (Input/output error) (INJECTED)"
  const auto end = log.find(") (INJECTED)"), begin = log.rfind('(', end) + 1;
  if (end == log.npos) return {};
  if (status > 128) return "ends by signal " + std::to_string(status - 128);
  const bool whole =
      std::ranges::all_of(f.kind->whole, [&](auto& part) { return contains(out, part); });
  // libbpf and the dynamic linker do not give the reasons of all failures.
  const bool told = contains(err, log.substr(begin, end - begin)) ||
                    (f.call == "bpf" && status && contains(err, "type information (BTF)")) ||
                    contains(err, ": libdw.so.1: ");
  if (f.error == "EMFILE" && status && !contains(err, "ulimit -n")) return "no hint: " + err;
  if (f.error == "EINTR" ? status == 0 && whole : status == 0 ? whole || told : told) return {};
  return "status " + std::to_string(status) + (whole ? "" : ", not whole") + ": " + err;
}

struct Failures {
  std::map<std::string, std::vector<Failure>> first;  ///< one list for each call and error
  std::vector<Failure> others;
};

Failures all_failures(const std::vector<Kind>& kinds) {
  // Excludes the dynamic linker's calls.
  auto linker = calls_of("coretap version");
  linker.erase("write");
  Failures all;
  std::set<std::string> known;
  for (auto& kind : kinds) {
    auto calls = calls_of(kind.command, kind.children);
    for (auto& call : kCalls)
      for (auto& error : call.errors)
        for (auto n = linker[call.name].size(); n < calls[call.name].size(); n++) {
          // Calls with the same arguments, such as those for timers, may come from several places.
          const bool few = calls[call.name].size() < 3;
          auto place = few ? kind.name + std::to_string(n) : calls[call.name][n];
          const bool fresh = known.insert(call.name + error + place).second;
          auto& to = fresh ? all.first[call.name + error] : all.others;
          to.push_back({&kind, call.name, error, n + 1});
        }
  }
  return all;
}

/// As many as time allows.
std::vector<Failure> some_of(const std::vector<Failure>& all, std::size_t most) {
  const auto step = ::getenv("CORETAP_ALL_CALLS") ? 1 : all.size() / most + 1;
  std::vector<Failure> some;
  for (std::size_t i = 0; i < all.size(); i += step) some.push_back(all[i]);
  return some;
}

TOOL_TEST(FailingCalls, AreToldOrDoneWithout) {
  for (auto& kind : kinds())
    if (kind.command[0] != "coretap") require_tool(kind.command[0]);
  const auto used = kinds();
  const auto all = all_failures(used);
  auto some = some_of(all.others, kMostOthers);
  std::size_t places = 0;
  for (auto& [call, first] : all.first) {
    places += first.size();
    for (auto& one : some_of(first, kMost)) some.push_back(one);
  }
  std::cout << "tries " << some.size() << " of " << places << " + " << all.others.size()
            << " failures\n";
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

TOOL_TEST(FailingCalls, SayWhatFailed) {
  TemporaryDirectory dir;
  const auto hits = workload_path("hits"), cut = dir.path() + "/cut";
  const auto of_hits = "-P " + hits + " -e inject=";
  std::ofstream(cut) << slurp(hits).substr(0, 20'000);
  const auto calls = calls_of("opensnoop --json -- true")["bpf"];
  auto types = calls.size();  // the last ones that the kernel gets are those of the program
  while (!contains(calls.at(types - 1), "BPF_BTF_LOAD")) types--;
  const std::vector<std::array<std::string, 3>> cases = {
      {of_hits + "pread64:error=EIO", "funccount " + hits + ":hit", "hits: Input/output error"},
      {of_hits + "openat:error=EMFILE", "tplist -f -l " + hits, "ulimit -n"},
      {"-e trace=none", "funccount u:" + cut + ":hit", "cut: it is damaged, or not whole"},
      {"-e inject=bpf:error=E2BIG:when=" + std::to_string(types) + "+", "opensnoop",
       "(BTF): Argument list too long"},
      {"-P /proc/self/timens_offsets -e inject=openat:error=EMFILE", "opensnoop -- true",
       "timens_offsets: Too many open files"}};
  for (auto& [failing, command, words] : cases)
    EXPECT_PRED2(contains, run(traced("-o /dev/null " + failing, command, true)).err, words);
}

}  // namespace
}  // namespace coretap::tooltest
