#include "tools/cpu/perfcount/counters.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/descriptors.hpp"
#include "base/recall.hpp"
#include "coretap/clock.hpp"
#include "coretap/config.hpp"
#include "coretap/cpu_times.hpp"
#include "coretap/fd.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "program/session.hpp"

namespace coretap::perfcount {

namespace {

Result<Wanted> wanted(std::string_view name, int group) {
  auto event = perf_event_word(name);
  if (!event) {
    auto error = event.error();
    error.what = fmt::format("--perf-events: {}", error.what);
    return error;
  }
  return Wanted{std::string(name), event_title(name), *event, group};
}

Result<void> take_one(Settings& s, std::string_view name, int group) {
  auto one = wanted(name, group);
  if (!one) return one.error();
  if (std::ranges::find(s.events, one->name, &Wanted::name) != s.events.end())
    return usage(fmt::format("--perf-events: {} is given twice", name));
  s.events.push_back(std::move(*one));
  return {};
}

}  // namespace

Result<void> take_events(Settings& s, const std::string_view given) {
  auto unpaired = [&] {
    return usage(fmt::format("--perf-events: '{}' has a brace without its other", given),
                 "a group is {branches,branch-misses}");
  };
  if (given.empty()) return usage("--perf-events: needs an event", "perf list shows them");
  for (auto text = given; !text.empty();) {
    const bool group = text.front() == '{';
    auto part = text.substr(group);
    if (group) {
      const auto end = part.find('}');
      if (end == part.npos) return unpaired();
      text = part.substr(end + 1);
      part = part.substr(0, end);
      if (!text.empty() && text.front() != ',') return unpaired();
      if (!text.empty()) text.remove_prefix(1);
      s.groups++;
    } else {
      text = part;
      part = take_event_word(text);
    }
    do {
      const auto name = group ? take_event_word(part) : std::exchange(part, {});
      if (name.find_first_of("{}") != name.npos) return unpaired();
      if (auto r = take_one(s, name, group ? s.groups : 0); !r) return r;
    } while (!part.empty());
  }
  return {};
}

namespace {

/// The first word's events per event of the second. Modifiers of both are the same.
struct Ratio {
  std::string_view event, of, unit;
};
constexpr Ratio kRatios[] = {
    {"instructions", "cycles", "per cycle"},
    {"stalled-cycles-frontend", "cycles", "of cycles"},
    {"stalled-cycles-backend", "cycles", "of cycles"},
    {"branch-misses", "branches", "of branches"},
    {"cache-misses", "cache-references", "of references"},
    {"L1-dcache-load-misses", "L1-dcache-loads", "of loads"},
    {"L1-icache-load-misses", "L1-icache-loads", "of loads"},
    {"LLC-load-misses", "LLC-loads", "of loads"},
    {"dTLB-load-misses", "dTLB-loads", "of loads"},
    {"iTLB-load-misses", "iTLB-loads", "of loads"},
};

}  // namespace

void add_ratios(std::vector<Line>& lines, std::size_t from) {
  auto value_of = [&](const std::string& name) -> double {
    for (auto i = from; i < lines.size(); i++)
      if (lines[i].event == name) return static_cast<double>(lines[i].count.value_or(0));
    return 0;
  };
  const auto clock = std::max(value_of("task-clock"), value_of("cpu-clock"));
  for (auto i = from; i < lines.size(); i++) {
    auto& line = lines[i];
    if (!line.count) continue;
    const auto count = static_cast<double>(*line.count);
    auto set = [&](double of, std::string_view unit) {
      if (of <= 0) return;
      line.ratio = count / of;
      line.ratio_unit = unit;
    };
    const std::string_view event = line.event;
    const auto colon = std::min(event.find(':'), event.size());
    if (line.is_clock) set(line.seconds * 1e9, "CPUs");
    if (event == "cycles" || event == "cpu-cycles") set(clock, "GHz");
    for (auto& ratio : kRatios)
      if (event.substr(0, colon) == ratio.event)
        set(value_of(fmt::format("{}{}", ratio.of, event.substr(colon))), ratio.unit);
  }
}

namespace {
constexpr std::size_t kMostEvents = 1024;  // of a recording
}  // namespace

std::string packed(const std::vector<EventNames>& events) {
  std::vector<std::string> all;
  for (auto& event : events) {
    std::string numbers;
    put_varint(numbers, event.is_clock | event.snapshot << 1 | event.shared << 2);
    put_varint(numbers, std::bit_cast<std::uint64_t>(event.scale));
    all.push_back(coretap::packed({event.name, event.unit, numbers}));
  }
  return coretap::packed(all);
}

std::vector<EventNames> names_from(std::string_view bytes) {
  std::vector<EventNames> all;
  for (auto& one : unpacked(bytes)) {
    const auto parts = unpacked(one);
    if (parts.size() != 3 || all.size() >= kMostEvents) break;
    std::string_view numbers = parts[2];
    std::uint64_t flags = 0, scale = 0;
    if (!take_varint(numbers, flags) || !take_varint(numbers, scale)) break;
    all.push_back({.name = parts[0],
                   .unit = parts[1],
                   .scale = std::bit_cast<double>(scale),
                   .is_clock = (flags & 1) != 0,
                   .snapshot = (flags & 2) != 0,
                   .shared = (flags & 4) != 0});
    if (!std::isfinite(all.back().scale)) all.back().scale = 1;
  }
  return all;
}

std::string packed(const Counts& counts) {
  std::string bytes;
  put_varint(bytes, counts.values.size());
  for (auto& [key, value] : counts.values)
    for (auto number : {static_cast<std::uint64_t>(key.first + 1), std::uint64_t{key.second},
                        value.value, value.enabled_ns, value.running_ns})
      put_varint(bytes, number);
  for (auto& [id, time] : counts.times)
    for (auto number : {std::uint64_t{id}, time.user, time.system}) put_varint(bytes, number);
  return bytes;
}

Counts counts_from(std::string_view bytes, std::size_t events) {
  Counts all;
  std::uint64_t rows = 0;
  take_varint(bytes, rows);
  for (; rows && !bytes.empty(); rows--) {
    std::uint64_t cpu = 0, event = 0;
    CounterValue value{};
    if (!take_varint(bytes, cpu) || !take_varint(bytes, event) ||
        !take_varint(bytes, value.value) || !take_varint(bytes, value.enabled_ns) ||
        !take_varint(bytes, value.running_ns) || cpu > INT32_MAX || event >= events)
      return all;
    all.values[{static_cast<int>(cpu) - 1, static_cast<std::size_t>(event)}] = value;
  }
  std::uint64_t id = 0;
  CpuTime time;
  while (take_varint(bytes, id) && take_varint(bytes, time.user) && take_varint(bytes, time.system))
    all.times[static_cast<std::uint32_t>(id)] = time;
  return all;
}

namespace {

/// Of a recording that may be anyone's.
std::uint64_t to_count(double count) {
  constexpr double kMost = 0x1p63;
  return count < kMost ? static_cast<std::uint64_t>(count) : static_cast<std::uint64_t>(kMost);
}

constexpr std::uint64_t kMicroseconds = 1'000'000;  // in a second

std::uint64_t in_us(std::uint64_t ticks) {
  static const auto hz = static_cast<std::uint64_t>(sysconf(_SC_CLK_TCK));
  return ticks * (kMicroseconds / hz);
}
std::uint64_t in_us(const timeval& t) {
  return static_cast<std::uint64_t>(t.tv_sec) * kMicroseconds +
         static_cast<std::uint64_t>(t.tv_usec);
}

/// utime and stime (and those of children that have been waited for) of a "stat" file.
std::optional<CpuTime> time_of_task(const std::string& file, bool children) {
  constexpr std::size_t kUser = 14, kSystem = 15, kChildren = 2;
  const auto text = read_file(file).value_or("");
  const auto fields = stat_fields(text);
  if (fields.size() <= kSystem + kChildren) return {};
  auto time = [&](std::size_t field) { return in_us(parse_unsigned(fields[field]).value_or(0)); };
  CpuTime all{time(kUser), time(kSystem)};
  if (children) {
    all.user += time(kUser + kChildren);
    all.system += time(kSystem + kChildren);
  }
  return all;
}

/// The CPU time of the machine or of one CPU.
std::optional<CpuTime> time_of_machine(std::optional<std::uint32_t> cpu) {
  auto all = cpu_times();
  if (!all) return {};
  auto found = std::ranges::find(*all, cpu ? static_cast<int>(*cpu) : -1, &CpuTimes::cpu);
  if (found == all->end()) return {};
  return CpuTime{in_us(found->user + found->nice),
                 in_us(found->system + found->irq + found->softirq)};
}

std::optional<CpuTime> time_of_cgroup(const std::string& directory) {
  const auto text = read_file(directory + "/cpu.stat").value_or("");
  const auto user = named_number(text, "user_usec"), system = named_number(text, "system_usec");
  if (!user || !system) return {};
  return CpuTime{*user, *system};
}

/// The command and those of its descendants that have been waited for.
std::optional<CpuTime> time_of_command(pid_t command) {
  // Until the command itself is waited for; it is this process's only child.
  if (auto time = time_of_task(fmt::format("/proc/{}/stat", command), true)) return time;
  rusage usage{};
  if (getrusage(RUSAGE_CHILDREN, &usage)) return {};
  return CpuTime{in_us(usage.ru_utime), in_us(usage.ru_stime)};
}

std::vector<pid_t> threads_of(std::uint32_t pid) {
  std::vector<pid_t> all;
  std::error_code failed;
  for (std::filesystem::directory_iterator it(fmt::format("/proc/{}/task", pid), failed), end;
       !failed && it != end; it.increment(failed))
    if (auto tid = parse_unsigned(it->path().filename().string()))
      all.push_back(static_cast<pid_t>(*tid));
  return all;
}

class Counters : public Counting {
 public:
  Result<void> start(Session& s) override {
    session_ = &s;
    each_cpu_ = s.config.given("each-cpu");
    if (!replaying())
      if (auto r = open_all(); !r) return r;
    const auto events = recalled(Ask::counts, "events", [&] { return packed(names()); });
    names_ = replaying() ? names_from(events) : names();
    began_ns_ = monotonic_ns();
    before_ = measure();
    return {};
  }

  Result<Since> next() override {
    if (!of_tasks_ && !replaying()) open_new_cpus();
    const auto now = monotonic_ns();
    Elapsed elapsed{static_cast<double>(now - began_ns_) / 1e9};
    began_ns_ = now;
    auto counts = measure();
    add_times(elapsed, counts);
    auto rows = reading(lines(elapsed.seconds, counts));
    counts.times.merge(std::move(before_.times));  // of tasks that have ended
    before_ = std::move(counts);
    return Since{std::move(rows), std::make_shared<const Elapsed>(elapsed)};
  }

 private:
  struct Counter {
    Fd fd;
    std::size_t event = 0;
    int cpu = -1;
    CounterValue last = {};
  };

  /// Looks up the events, and opens their counters.
  Result<void> open_all() {
    auto& s = *session_;
    auto& config = s.config;
    command_ = s.command;
    events_ = config.own<Settings>().events;
    if (auto r = find_cgroup(); !r) return r;
    of_tasks_ = command_ > 0 || !config.tasks.pids.empty() || !config.tasks.tids.empty();
    if (events_.empty()) default_events();
    for (auto& wanted : events_) {
      auto event = perf_event(wanted.word);
      if (!event) return event.error();
      wanted.event = std::move(*event);
    }
    for (auto& event : events_)
      event.shared = std::ranges::any_of(events_, [&](auto& other) {
        return other.event.is_hardware() &&
               (&other == &event || (event.group && other.group == event.group));
      });
    if (auto r = of_tasks_ ? open_tasks() : open_cpus(wanted_cpus()); !r) return r;
    if (auto r = check_opened(); !r) return r;
    s.retained.add(Capability::perfmon);  // for CPUs that come online
    if (perf_events_for_admin()) s.retained.add(Capability::sys_admin);
    return {};
  }

  /// Properties of each event that reports need.
  std::vector<EventNames> names() const {
    std::vector<EventNames> all;
    for (auto& event : events_) {
      auto& one = all.emplace_back(EventNames{.name = event.name});
      one.is_clock = event.event.is_clock();
      one.shared = event.shared;
      if (auto& pmu = event.event.of_pmu) {
        one.snapshot = pmu->snapshot;
        one.scale = pmu->scale;
        one.unit = pmu->unit;
      }
    }
    return all;
  }

  static bool is_there(const PerfEvent& event) {
    const Fd fd(open_counter(event, {.task = getpid()}));
    return fd || (errno != ENOENT && errno != ENODEV && errno != EOPNOTSUPP && errno != EINVAL);
  }

  /// Those of `perf stat`.
  void default_events() {
    std::vector<std::string> missing;
    auto add = [&](std::string_view name) {
      auto event = perf_event(name);
      if (!event) return;
      if (event->is_hardware() && !is_there(*event))
        missing.emplace_back(name);
      else
        events_.push_back({std::string(name), std::string(name), *event});
    };
    for (auto* name : {of_tasks_ ? "task-clock" : "cpu-clock", "context-switches", "cpu-migrations",
                       "page-faults", "cycles", "instructions", "branches", "branch-misses"})
      add(name);
    if (!missing.empty())
      session_->say(
          fmt::format("note: this machine does not count {}: it has no hardware "
                      "counters for them, as most virtual machines",
                      fmt::join(missing, ", ")));
  }

  Result<void> find_cgroup() {
    auto& given = session_->config.tasks.cgroup;
    if (given.empty()) return {};
    auto id = cgroup_id(given);
    if (!id) return id.error();
    auto mount = cgroup2_mount();
    if (!mount) return mount.error();
    cgroup_ = *mount + session_->names.context.cgroup_name(*id, CgroupName::path);
    cgroup_fd_.reset(open(cgroup_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (!cgroup_fd_) return system_error(fmt::format("cannot open the cgroup {}", cgroup_), errno);
    return {};
  }

  std::vector<int> wanted_cpus() const {
    auto& only = session_->config.places.cpu;
    return only ? std::vector<int>{static_cast<int>(*only)} : online_cpus();
  }

  Result<void> refused(const Wanted& event, int error) const {
    const auto what = fmt::format("cannot count {}", event.name);
    if (lacks_descriptors(error))
      return Error{what, "too many open files", "raise the limit (ulimit -n), or count less"};
    if (error == EACCES || error == EPERM)
      return Error{
          what,
          fmt::format("missing {}{}", name_of(Capability::perfmon), perf_capability_missing(error)),
          "run as root (sudo), or grant that capability", kUnsupported};
    if (error == ENOENT && cgroup_fd_)
      return Error{what, fmt::format("the kernel does not count in the cgroup {}", cgroup_),
                   "it does once the cgroup above has a controller for those below it: write "
                   "+pids to its cgroup.subtree_control",
                   kUnsupported};
    if (auto& pmu = event.event.of_pmu; pmu && pmu->for_others && (of_tasks_ || cgroup_fd_))
      return Error{
          what, fmt::format("the PMU {} counts what all tasks of some CPUs do together", pmu->pmu),
          "leave out processes, cgroup and command", kUnsupported};
    return Error{what, refusal_words(event.event, event.name, error),
                 "software events are everywhere: task-clock, context-switches, page-faults",
                 kUnsupported};
  }

  /// A counter for each event.
  Result<void> open_events(Counted whose) {
    int leader = -1, group = 0;
    std::vector<int> leaders;
    for (std::size_t i = 0; i < events_.size(); i++) {
      auto& event = events_[i];
      if (whose.cpu >= 0 && event.event.of_pmu && !event.event.of_pmu->counts_on(whose.cpu))
        continue;
      if (event.group != group) leader = -1;
      group = event.group;
      whose.group = group ? leader : -1;
      Fd fd(open_counter(event.event, whose));
      if (!fd && errno == ESRCH) return {};  // the thread has ended
      if (!fd) return refused(event, errno);
      if (whose.group < 0) leaders.push_back(fd.get());
      if (group && leader < 0) leader = fd.get();
      counters_.push_back({std::move(fd), i, whose.cpu});
    }
    if (!whose.from_exec) std::ranges::for_each(leaders, enable_counter);
    return {};
  }

  Result<void> open_tasks() {
    auto& config = session_->config;
    Counted whose{.cpu = config.places.cpu ? static_cast<int>(*config.places.cpu) : -1};
    std::vector<pid_t> tasks(config.tasks.tids.begin(), config.tasks.tids.end());
    for (auto pid : config.tasks.pids)
      for (auto tid : threads_of(pid)) tasks.push_back(tid);
    whose.children = config.tasks.tids.empty() ? Counted::threads : Counted::none;
    if (command_ > 0) {
      tasks = {command_};
      whose.from_exec = true;
      whose.children = Counted::all;
    }
    for (auto task : tasks) {
      whose.task = task;
      if (auto r = open_events(whose); !r) return r;
    }
    if (counters_.empty()) return Error{"nothing to count", "the threads have ended", {}, kUsage};
    return {};
  }

  Result<void> open_cpus(const std::vector<int>& cpus) {
    for (int cpu : cpus) {
      if (auto r = open_events({.cpu = cpu, .cgroup = cgroup_fd_.get()}); !r) return r;
      cpus_.push_back(cpu);
    }
    return {};
  }

  /// PMUs count on some CPUs only.
  Result<void> check_opened() const {
    for (std::size_t i = 0; i < events_.size(); i++) {
      auto& pmu = events_[i].event.of_pmu;
      if (pmu && std::ranges::find(counters_, i, &Counter::event) == counters_.end())
        return Error{fmt::format("cannot count {}", events_[i].name),
                     fmt::format("the PMU {} counts on CPU {}, which is not counted here", pmu->pmu,
                                 fmt::join(pmu->cpus, ",")),
                     {},
                     kUnsupported};
    }
    return {};
  }

  void open_new_cpus() {
    auto now = wanted_cpus();
    // A CPU that goes offline ends its counters; it needs new ones when it is back.
    std::erase_if(cpus_, [&](int cpu) { return std::ranges::find(now, cpu) == now.end(); });
    std::erase_if(now, [&](int cpu) { return std::ranges::find(cpus_, cpu) != cpus_.end(); });
    if (now.empty()) return;
    AllPermitted with_capabilities;
    if (auto r = open_cpus(now); !r)
      session_->note(fmt::format("CPU {} came online and is not counted", fmt::join(now, ", ")),
                     r.error());
  }

  /// Adds the count since the last reading.
  void read(Counter& counter) {
    auto& sum = counts_[{each_cpu_ ? counter.cpu : -1, counter.event}];
    auto now = read_counter(counter.fd.get());
    if (!now) return;
    sum.value += now->value - (names_[counter.event].snapshot ? 0 : counter.last.value);
    sum.enabled_ns += now->enabled_ns - counter.last.enabled_ns;
    sum.running_ns += now->running_ns - counter.last.running_ns;
    counter.last = *now;
  }

  Counts measure() {
    const auto bytes = recalled(Ask::counts, "", [&] {
      for (auto& [key, sum] : counts_)
        if (names_[key.second].snapshot) sum.value = 0;
      for (auto& counter : counters_) read(counter);
      return packed({counts_, cpu_time()});
    });
    return counts_from(bytes, names_.size());
  }

  std::vector<Line> lines(double seconds, const Counts& counts) const {
    std::vector<Line> all;
    std::size_t begin = 0;
    int cpu = -1;
    for (auto& [key, now] : counts.values) {
      if (key.first != cpu) {
        add_ratios(all, begin);
        begin = all.size();
        cpu = key.first;
      }
      auto& event = names_[key.second];
      auto sum = now;
      if (auto before = before_.values.find(key); before != before_.values.end()) {
        if (!event.snapshot) sum.value -= before->second.value;
        sum.enabled_ns -= before->second.enabled_ns;
        sum.running_ns -= before->second.running_ns;
      }
      Line line{.event = event.name, .cpu = key.first, .seconds = seconds, .ratio = {}};
      line.is_clock = event.is_clock;
      line.snapshot = event.snapshot;
      line.scale = event.scale;
      line.unit = event.unit;
      const auto enabled = static_cast<double>(sum.enabled_ns),
                 running = static_cast<double>(sum.running_ns);
      if (!event.shared || sum.running_ns >= sum.enabled_ns) {
        line.count = sum.value;
        line.counted = 1;
      } else if (sum.running_ns) {
        line.count = to_count(static_cast<double>(sum.value) * enabled / running);
        line.counted = running / enabled;
      }
      all.push_back(std::move(line));
    }
    add_ratios(all, begin);
    return all;
  }

  /// By what is counted: since it began to exist.
  std::map<std::uint32_t, CpuTime> cpu_time() const {
    std::map<std::uint32_t, CpuTime> all;
    auto add = [&](std::uint32_t id, std::optional<CpuTime> time) {
      if (time) all[id] = *time;
    };
    auto& config = session_->config;
    if (command_ > 0)
      add(0, time_of_command(command_));
    else if (!cgroup_.empty())
      add(0, config.places.cpu ? std::nullopt : time_of_cgroup(cgroup_));
    else if (!of_tasks_)
      add(0, time_of_machine(config.places.cpu));
    else if (config.places.cpu)
      return all;
    for (auto pid : config.tasks.pids)
      add(pid, time_of_task(fmt::format("/proc/{}/stat", pid), false));
    for (auto tid : config.tasks.tids)
      add(tid, time_of_task(fmt::format("/proc/{0}/task/{0}/stat", tid), false));
    return all;
  }

  void add_times(Elapsed& elapsed, const Counts& counts) const {
    std::uint64_t user = 0, system = 0;
    for (auto& [id, time] : counts.times) {
      auto known = before_.times.find(id);
      const auto last = known == before_.times.end() ? CpuTime() : known->second;
      user += time.user - std::min(time.user, last.user);
      system += time.system - std::min(time.system, last.system);
    }
    elapsed.user_s.reset();
    elapsed.system_s.reset();
    if (counts.times.empty()) return;
    elapsed.user_s = static_cast<double>(user) / kMicroseconds;
    elapsed.system_s = static_cast<double>(system) / kMicroseconds;
  }

  Session* session_ = nullptr;
  std::vector<Wanted> events_;
  std::vector<Counter> counters_;
  std::vector<int> cpus_;
  std::string cgroup_;
  Fd cgroup_fd_;
  pid_t command_ = 0;
  bool each_cpu_ = false, of_tasks_ = false;
  std::uint64_t began_ns_ = 0;
  std::vector<EventNames> names_;    ///< as events_
  Counts before_;                    ///< at the last report
  decltype(Counts::values) counts_;  ///< until now
};

}  // namespace

std::unique_ptr<Counting> make_counting(const Config&) { return std::make_unique<Counters>(); }

}  // namespace coretap::perfcount
