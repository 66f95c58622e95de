#include "machine.hpp"

#include <bpf/bpf.h>
#include <linux/perf_event.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "text.hpp"
#include "tracer.hpp"

namespace coretap::tooltest {

using Clock = std::chrono::steady_clock;
using namespace std::chrono_literals;

bool has_32_bit_calls() {
#ifdef __x86_64__
  const auto child = ::fork();
  if (child == 0) {
    const rlimit no_core{};
    ::setrlimit(RLIMIT_CORE, &no_core);
    long call = 20;  // getpid
    asm volatile("int $0x80" : "+a"(call) : : "r8", "r9", "r10", "r11", "memory");
    ::_exit(call > 0 ? 0 : 1);
  }
  int status = 1;
  ::waitpid(child, &status, 0);
  return status == 0;
#else
  return true;
#endif
}

// ---- directories and mounts of the test ----

TemporaryDirectory::TemporaryDirectory() {
  char name[] = "/tmp/coretap-test-XXXXXX";
  if (!::mkdtemp(name)) throw std::runtime_error("mkdtemp");
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code error;
  std::filesystem::remove_all(path_, error);
}

Cgroup::Cgroup(const std::string& suffix) {
  std::ifstream mounts("/proc/self/mounts");
  std::string root;
  for (std::string line; std::getline(mounts, line);) {
    std::istringstream words(line);
    std::string source, where, type;
    words >> source >> where >> type;
    if (type == "cgroup2") root = where;
  }
  if (root.empty()) {
    char name[] = "/tmp/coretap-cgroup-XXXXXX";
    if (!::mkdtemp(name) || ::mount("none", name, "cgroup2", 0, nullptr))
      throw Skip(std::string("no cgroup version 2 here: ") + strerror(errno));
    root = mounted_ = name;
  }
  static int serial = 0;
  path_ = root + "/coretap-test-" + std::to_string(::getpid()) + "-" + std::to_string(serial++) +
          suffix;
  if (::mkdir(path_.c_str(), 0755))
    throw Skip("cannot make a cgroup: " + path_ + ": " + strerror(errno));
}

Cgroup::~Cgroup() {
  // Busy until its last process has ended; remaining processes move back to their previous cgroup.
  for (auto& pid : complete_lines(slurp(path_ + "/cgroup.procs"))) {
    std::ofstream parent(std::filesystem::path(path_).parent_path() / "cgroup.procs");
    parent << pid << std::flush;
  }
  for (int i = 0; i < 100 && ::rmdir(path_.c_str()) && errno == EBUSY; i++) nap(20ms);
  if (!mounted_.empty()) {
    ::umount2(mounted_.c_str(), MNT_DETACH);
    ::rmdir(mounted_.c_str());
  }
}

void Cgroup::add(pid_t pid) const {
  std::ofstream file(path_ + "/cgroup.procs");
  file << pid << std::flush;
  if (!file) throw Skip("cannot move a process to " + path_);
}

// ---- the kernel's own files ----

Mounted::Mounted(const char* type, const char* options) {
  char name[] = "/tmp/coretap-mount-XXXXXX";
  if (!::mkdtemp(name)) throw std::runtime_error("mkdtemp");
  path_ = name;
  if (::mount(type, name, type, 0, options)) {
    ::rmdir(name);
    throw Skip(std::string("cannot mount ") + type);
  }
}

Mounted::~Mounted() {
  ::umount2(path_.c_str(), MNT_DETACH);
  ::rmdir(path_.c_str());
}

Trace::Trace(Strings events) : events_(std::move(events)) {
  static int serial = 0;
  instance_ = tracefs_.path() + "/instances/coretap-" + std::to_string(::getpid()) + "-" +
              std::to_string(serial++);
  if (!std::filesystem::create_directory(instance_)) throw Skip("no trace instances here");
  // For each CPU; 1.4 MB otherwise, which a busy machine fills within a second.
  std::ofstream(instance_ + "/buffer_size_kb") << "8192";
  turn("1");
}

Trace::~Trace() {
  turn("0");
  std::error_code ignored;
  std::filesystem::remove(instance_, ignored);
}

void Trace::turn(const char* value) const {
  for (auto& event : events_) std::ofstream(instance_ + "/events/" + event + "/enable") << value;
}

bool kernel_before(int major, int minor) {
  utsname name{};
  int of[2] = {};
  if (uname(&name) || sscanf(name.release, "%d.%d", &of[0], &of[1]) != 2) return false;
  return of[0] < major || (of[0] == major && of[1] < minor);
}

void Trace::expect_whole() const {
  for (auto& cpu : std::filesystem::directory_iterator(instance_ + "/per_cpu")) {
    auto stats = slurp(cpu.path() / "stats");
    auto lost = std::stoull(stats.substr(stats.find("overrun: ") + 9));
    if (lost)
      throw std::runtime_error("the kernel's own trace lost events: " + std::to_string(lost));
  }
}

std::vector<Trace::Event> Trace::events(std::optional<pid_t> task) const {
  expect_whole();
  std::vector<Event> all;
  std::istringstream text(slurp(instance_ + "/trace"));
  // "            bash-1234    [001] d.h1.  5678.901234: irq_handler_exit: irq=24 ret=handled"
  for (std::string line; std::getline(text, line);) {
    auto cpu = line.find(" [");
    auto dash = line.rfind('-', cpu), colon = line.find(": ", cpu);
    if (line.starts_with('#') || colon == std::string::npos || dash == std::string::npos) continue;
    auto time = line.rfind(' ', colon) + 1, name = colon + 2, end = line.find(':', name);
    if (end == std::string::npos) continue;
    Event e{.cpu = std::stoi(line.substr(cpu + 2)),
            .task = std::stoi(line.substr(dash + 1)),
            .name = line.substr(name, end - name),
            .words = line.substr(std::min(end + 2, line.size()))};
    auto dot = line.find('.', time);
    e.ns = std::stoull(line.substr(time, dot - time)) * 1'000'000'000 +
           std::stoull(line.substr(dot + 1, colon - dot - 1)) * 1'000;
    if (!task || e.task == *task) all.push_back(std::move(e));
  }
  return all;
}

Strings Trace::lines(std::optional<pid_t> task) const {
  Strings all;
  for (auto& e : events(task)) all.push_back(e.name + ": " + e.words);
  return all;
}

std::string Trace::Event::value(const std::string& key) const {
  auto at = words.find(key + "=");
  if (at == std::string::npos) return {};
  at += key.size() + 1;
  return words.substr(at, words.find_first_of(" ,", at) - at);
}

// ---- switches that the kernel does not report ----

namespace {

/// How often threads of process 1 have left a CPU.
std::uint64_t switches_of_first() {
  std::uint64_t sum = 0;
  for (auto& thread : std::filesystem::directory_iterator("/proc/1/task")) {
    std::istringstream lines(slurp(thread.path() / "status"));
    for (std::string line; std::getline(lines, line);)
      if (contains(line, "voluntary_ctxt_switches:"))
        sum += std::stoull(line.substr(line.find(':') + 1));
  }
  return sum;
}

/// They switch, but the trace does not have it.
bool first_is_hidden() {
  try {
    Trace trace("sched/sched_switch");
    auto before = switches_of_first();
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1);
    while (switches_of_first() == before) {
      if (std::chrono::steady_clock::now() > end) return false;
      nap(std::chrono::milliseconds(10));
    }
    nap(std::chrono::milliseconds(10));  // they count before they trace
    trace.stop();
    auto events = trace.events();
    return !events.empty() && std::ranges::none_of(events, [](auto& e) {
      return std::filesystem::exists("/proc/1/task/" + std::to_string(e.task));
    });
  } catch (const Skip&) {
    return false;
  }
}

}  // namespace

Unreported::Unreported() : before_(switches_of_first()) {}

std::uint64_t Unreported::switches() const {
  auto grown = switches_of_first() - before_;
  static const bool hidden = first_is_hidden();
  return hidden ? grown : 0;
}

// ---- small things ----

std::optional<DiskNumbers> diskstats(const std::string& disk) {
  std::istringstream lines(slurp("/proc/diskstats"));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string major, minor, name;
    words >> major >> minor >> name;
    if (name != disk) continue;
    DiskNumbers value{};
    for (auto& v : value)
      if (!(words >> v)) v = 0;
    return value;
  }
  return {};
}

bool in_guest() {
  auto* guest = ::getenv("CORETAP_GUEST");
  return guest && std::string_view(guest) == "1";
}

Setting::Setting(std::string path, const std::string& value)
    : path_(std::move(path)), was_(slurp(path_)) {
  if (!set(value)) throw Skip(path_ + " cannot be set to " + value);
}

bool Setting::set(const std::string& value) const {
  std::ofstream file(path_);
  file << value << std::flush;
  return file.good();
}

std::string slurp(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

Counters::Counters(std::string path) : path_(std::move(path)), before_(slurp(path_)) {}

std::uint64_t Counters::growth(std::string_view key) const {
  return sum(slurp(path_), key) - sum(before_, key);
}

std::uint64_t Counters::sum(const std::string& text, std::string_view key) const {
  bool any = key.ends_with('*');
  if (any) key.remove_suffix(1);
  std::uint64_t total = 0;
  std::istringstream lines(text);
  std::string name;
  for (std::uint64_t value; lines >> name >> value;)
    if (any ? name.starts_with(key) : name == key) total += value;
  return total;
}

// ---- BPF objects ----

BpfIds bpf_ids(pid_t pid) {
  BpfIds ids;
  std::error_code error;
  auto directory = "/proc/" + std::to_string(pid) + "/fdinfo";
  // The process may open and close files, or exit, meanwhile.
  for (std::filesystem::directory_iterator at(directory, error), end; at != end;
       at.increment(error)) {
    std::istringstream lines(slurp(at->path().string()));
    std::uint32_t program = 0, link = 0, map = 0;
    for (std::string line; std::getline(lines, line);) {
      auto number = [&](std::string_view key) {
        return line.starts_with(key)
                   ? static_cast<std::uint32_t>(std::stoul(line.substr(key.size())))
                   : 0;
      };
      program = std::max(program, number("prog_id:"));
      link = std::max(link, number("link_id:"));
      map = std::max(map, number("map_id:"));
    }
    if (link)
      ids.links.push_back(link);
    else if (map)
      ids.maps.push_back(map);
    else if (program)
      ids.programs.push_back(program);
  }
  return ids;
}

Strings bpf_left(const BpfIds& ids) {
  Strings left;
  // Ids are listed, not opened: each close of a map's last descriptor makes the kernel clear a
  // program array by a work item with another reference, which it loses if that item is still
  // queued (prog_array_map_clear), so that tests that open the map may keep it for ever.
  auto look = [&](const std::string& kind, const std::vector<std::uint32_t>& held, auto next_id) {
    std::set<std::uint32_t> there;
    for (std::uint32_t id = 0; next_id(id, &id) == 0;) there.insert(id);
    for (auto id : held)
      if (there.contains(id)) left.push_back(kind + " " + std::to_string(id));
  };
  // Freed after grace periods and by kernel workers, which run late on a busy machine.
  auto until = Clock::now() + std::chrono::seconds(static_cast<int>(5 * slowness()));
  while (true) {
    left.clear();
    look("program", ids.programs, bpf_prog_get_next_id);
    look("link", ids.links, bpf_link_get_next_id);
    look("map", ids.maps, bpf_map_get_next_id);
    if (left.empty() || Clock::now() > until) return left;
    nap(20ms);
  }
}

bool has_hardware_counters() {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_HARDWARE;
  attr.config = PERF_COUNT_HW_CPU_CYCLES;
  auto fd = static_cast<int>(::syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0));
  if (fd >= 0) ::close(fd);
  return fd >= 0;
}

}  // namespace coretap::tooltest
