#include "row.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "tools/machine.hpp"
#include "tools/text.hpp"

namespace coretap::stress {

using namespace std::chrono_literals;

namespace {

std::optional<Rest> look(pid_t pid) {
  Rest rest;
  std::error_code gone;
  for (auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task", gone)) {
    Rest::Thread t;
    bool asleep = false;
    std::istringstream status(tooltest::slurp(entry.path() / "status"));
    for (std::string line; std::getline(status, line);) {
      std::istringstream words(line);
      std::string key, value;
      words >> key >> value;
      if (key == "State:") asleep = value == "S";
      if (key == "voluntary_ctxt_switches:") t.voluntary = std::stoull(value);
      if (key == "nonvoluntary_ctxt_switches:") t.preempted = std::stoull(value);
    }
    if (!asleep) return std::nullopt;
    std::istringstream schedstat(tooltest::slurp(entry.path() / "schedstat"));
    schedstat >> t.on_cpu_ns >> t.run_delay_ns >> t.slices;
    auto stat = tooltest::slurp(entry.path() / "stat");
    if (auto fields = tooltest::words(stat.substr(stat.rfind(')') + 1)); fields.size() > 12)
      t.ticks_ns = (std::stoull(fields[11]) + std::stoull(fields[12])) *
                   (1'000'000'000 / static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK)));
    rest.threads[entry.path().filename()] = t;
  }
  return rest;
}

bool same(const Rest& a, const Rest& b) {
  auto equal = [](auto& x, auto& y) {
    return x.first == y.first && x.second.voluntary == y.second.voluntary &&
           x.second.preempted == y.second.preempted && x.second.on_cpu_ns == y.second.on_cpu_ns;
  };
  return std::equal(a.threads.begin(), a.threads.end(), b.threads.begin(), b.threads.end(), equal);
}

}  // namespace

// A thread's state shows a sleep shortly before it leaves its CPU.
Rest Rest::of(pid_t pid) {
  std::optional<Rest> last;
  for (int i = 0; i < 2000; i++) {
    auto now = look(pid);
    if (now && last && same(*now, *last)) return *now;
    last = now;
    std::this_thread::sleep_for(10ms);
  }
  throw std::runtime_error("a workload does not come to rest");
}

Load::Load(const std::string& name, const Strings& arguments, int cpu)
    : workload_(name, arguments,
                {.linger = true,
                 .in_child =
                     [cpu] {
                       cpu_set_t one;
                       CPU_ZERO(&one);
                       CPU_SET(cpu, &one);
                       ::sched_setaffinity(0, sizeof one, &one);
                     },
                 // In an emulated guest, many copies of a tool take minutes.
                 .patience = std::chrono::seconds(900)}) {
  before_ = Rest::of(workload_.pid());
}

void Load::finish() {
  workload_.truth();
  after_ = Rest::of(workload_.pid());
}

std::uint64_t Load::grown(const std::function<std::uint64_t(const Rest::Thread&)>& count) const {
  std::uint64_t sum = 0;
  for (auto& [tid, after] : after_.threads) {
    auto known = before_.threads.find(tid);
    auto before = known == before_.threads.end() ? Rest::Thread{} : known->second;
    sum += count({.voluntary = after.voluntary - before.voluntary,
                  .preempted = after.preempted - before.preempted,
                  .slices = after.slices - before.slices,
                  .on_cpu_ns = after.on_cpu_ns - before.on_cpu_ns});
  }
  return sum;
}

namespace {

Strings keys_of(std::string keys) {
  std::replace(keys.begin(), keys.end(), '+', ' ');
  return keys;
}

}  // namespace

Shown::Shown(const char* keys)
    : function([keys = keys_of(keys)](const Json& line) {
        std::uint64_t sum = keys.empty();
        for (auto& key : keys) sum += line[key.c_str()].u64();
        return sum;
      }) {}

Truth::Truth(const char* keys)
    : function([keys = keys_of(keys)](Load& load) {
        std::uint64_t sum = 0;
        for (auto& key : keys) sum += load.truth(key.c_str());
        return sum;
      }) {}

Strings wanted_pids(const Row& row, Load& load) {
  if (row.pids.empty()) return {load.workload().id()};
  Strings all;
  for (auto& key : row.pids) {
    auto said =
        key == "pid" ? Json::parse(load.workload().id()) : load.workload().ready()[key.c_str()];
    if (said.is_count())
      all.push_back(said.text());
    else
      for (auto& pid : said.items()) all.push_back(pid.text());
  }
  return all;
}

Strings arguments(const Row& row, std::uint64_t events) {
  Strings words(row.workload.begin() + 1, row.workload.end());
  for (auto& word : words) {
    if (!word.starts_with("{n")) continue;
    std::uint64_t part = 1, more = 0;
    ::sscanf(word.c_str(), "{n/%lu+%lu", &part, &more);
    word = std::to_string(events / part + more);
  }
  return words;
}

// Under emulation, a timer of zero has often expired before its task sleeps.
Strings sleeps() {
  return std::string("sleeper --sleeps {n} --ms ") + (tooltest::in_guest() ? "1" : "0");
}

// A thread rests before and after: the start of its first wait was not traced, and its last wait is
// in progress when tracing ends, and is shown.
std::uint64_t all_leaves(Load& load) {
  return load.grown([](const Rest::Thread& t) { return t.voluntary + t.preempted; });
}
std::uint64_t waits(Load& load) {
  return load.grown([](const Rest::Thread& t) { return t.voluntary; });
}

}  // namespace coretap::stress
