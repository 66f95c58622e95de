#include "kernel/perf_events.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "base/recall.hpp"
#include "coretap/fd.hpp"
#include "coretap/nearest.hpp"
#include "coretap/parse.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

struct NamedEvent {
  std::string name;
  PerfEvent event;
};

constexpr std::uint64_t kCgroupSwitches = 11;  // since Linux 5.13

std::vector<NamedEvent> single_events() {
  return {{"cycles", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}},
          {"cpu-cycles", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES}},
          {"instructions", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS}},
          {"cache-references", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES}},
          {"cache-misses", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES}},
          {"branches", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS}},
          {"branch-instructions", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS}},
          {"branch-misses", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES}},
          {"bus-cycles", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES}},
          {"stalled-cycles-frontend", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND}},
          {"stalled-cycles-backend", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND}},
          {"ref-cycles", {PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES}},
          {"cpu-clock", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK}},
          {"task-clock", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK}},
          {"cgroup-switches", {PERF_TYPE_SOFTWARE, kCgroupSwitches}},
          {"cs", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES}},
          {"migrations", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS}},
          {"faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}},
          {"page-faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS}},
          {"minor-faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN}},
          {"major-faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ}},
          {"context-switches", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES}},
          {"cpu-migrations", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS}},
          {"alignment-faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS}},
          {"emulation-faults", {PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS}}};
}

/// Operations that can be counted for a cache; instruction caches have no stores.
enum Operations { loads, loads_prefetches, all };
struct Cache {
  std::string_view name;
  std::uint64_t id;
  Operations operations;
};
constexpr Cache kCaches[] = {
    {"L1-dcache", PERF_COUNT_HW_CACHE_L1D, all},
    {"L1-icache", PERF_COUNT_HW_CACHE_L1I, loads_prefetches},
    {"LLC", PERF_COUNT_HW_CACHE_LL, all},
    {"dTLB", PERF_COUNT_HW_CACHE_DTLB, all},
    {"iTLB", PERF_COUNT_HW_CACHE_ITLB, loads},
    {"branch", PERF_COUNT_HW_CACHE_BPU, loads},
    {"node", PERF_COUNT_HW_CACHE_NODE, all},
};
struct Count {
  std::string_view name;
  std::uint64_t operation, result;
  bool of(Operations operations) const {
    return operations == all || operation == PERF_COUNT_HW_CACHE_OP_READ ||
           (operations == loads_prefetches && operation == PERF_COUNT_HW_CACHE_OP_PREFETCH);
  }
};
constexpr Count kCounts[] = {
    {"-loads", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
    {"-load-misses", PERF_COUNT_HW_CACHE_OP_READ, PERF_COUNT_HW_CACHE_RESULT_MISS},
    {"-stores", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
    {"-store-misses", PERF_COUNT_HW_CACHE_OP_WRITE, PERF_COUNT_HW_CACHE_RESULT_MISS},
    {"-prefetches", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_ACCESS},
    {"-prefetch-misses", PERF_COUNT_HW_CACHE_OP_PREFETCH, PERF_COUNT_HW_CACHE_RESULT_MISS},
};

const std::vector<NamedEvent>& all_events() {
  static const auto known = [] {
    auto list = single_events();
    for (auto& cache : kCaches)
      for (auto& count : kCounts)
        if (count.of(cache.operations))
          list.push_back(
              {fmt::format("{}{}", cache.name, count.name),
               {PERF_TYPE_HW_CACHE, cache.id | count.operation << 8 | count.result << 16}});
    return list;
  }();
  return known;
}

}  // namespace

bool PerfEvent::is_clock() const {
  return type == PERF_TYPE_SOFTWARE &&
         (config == PERF_COUNT_SW_CPU_CLOCK || config == PERF_COUNT_SW_TASK_CLOCK);
}

bool PerfEvent::is_tracepoint() const { return type == PERF_TYPE_TRACEPOINT; }

bool PerfEvent::is_hardware() const { return type != PERF_TYPE_SOFTWARE && !is_tracepoint(); }

std::vector<std::string> perf_event_names() {
  std::vector<std::string> names;
  for (auto& e : all_events()) names.push_back(e.name);
  return names;
}

namespace {

/// "sched:sched_switch".
Result<PerfEvent> tracepoint_event(std::string_view name) {
  auto rest = name;
  const auto category = take_until(rest, ':');
  if (category.empty() || rest.empty() || name.find('/') != name.npos)
    return usage(fmt::format("there is no perf event '{}'", name));
  auto id = tracepoint_id(category, rest);
  if (!id) return id.error();
  return PerfEvent{PERF_TYPE_TRACEPOINT, static_cast<std::uint64_t>(*id)};
}

Result<PerfEvent> of_pmu(Result<PmuEvent> event) {
  if (!event) return event.error();
  PerfEvent all{event->type, event->config[0]};
  all.of_pmu = std::move(*event);
  return all;
}

/// Not looked up.
PerfEvent some_pmu_event() { return {.type = PERF_TYPE_MAX, .of_pmu = PmuEvent{}}; }

Result<PerfEvent> plain_event(std::string_view name, const Pmus& pmus) {
  std::vector<std::string_view> known;
  for (auto& e : all_events()) {
    if (e.name == name) return e.event;
    known.push_back(e.name);
  }
  if (name.find(':') != name.npos) return tracepoint_event(name);
  if (name.starts_with('r'))
    if (auto config = parse_hexadecimal(name.substr(1))) return PerfEvent{PERF_TYPE_RAW, *config};
  if (replaying()) return some_pmu_event();  // of that machine
  const auto aliases = pmus.all_aliases();
  if (std::ranges::count(aliases, name)) return of_pmu(pmus.alias(name));
  if (name == "mem-loads" || name == "mem-stores")
    return Error{fmt::format("this machine has no event {}", name),
                 fmt::format("a PMU of the CPU has it; PMUs here: {}", pmus.list()),
                 "perf list shows the events of this machine", kUnsupported};
  known.insert(known.end(), aliases.begin(), aliases.end());
  return Error{
      fmt::format("there is no perf event '{}'", name), {}, did_you_mean(name, known), kUsage};
}

/// False: there are other letters.
bool take_modifiers(std::string_view letters, PerfEvent& event) {
  constexpr int kMost = 3;
  const auto count = [&](char letter) { return std::ranges::count(letters, letter); };
  const auto user = count('u'), kernel = count('k'), precise = count('p'), most = count('P');
  if (user > 1 || kernel > 1 || precise > kMost || most + (precise > 0) > 1) return false;
  event.not_kernel = user && !kernel;
  event.not_user = kernel && !user;
  event.most_precise = most;
  event.precise = most ? kMost : static_cast<int>(precise);
  return std::ssize(letters) == user + kernel + precise + most;
}

Error wrong_modifiers(std::string_view name) {
  return usage(fmt::format("'{}': the modifiers are wrong", name),
               "u: in user mode, k: in the kernel, p, pp, ppp: precise, P: as precise as possible");
}

/// `look_up`: in /sys.
Result<PerfEvent> event_of(std::string_view name, const Pmus& pmus, bool look_up) {
  Result<PerfEvent> event = PerfEvent();
  std::string_view letters;
  if (name.find('/') != name.npos) {
    auto word = pmu_word(name);
    if (!word) return word.error();
    letters = word->modifiers;
    if (letters.starts_with(':')) letters.remove_prefix(1);
    event = look_up ? of_pmu(pmus.event(word->pmu, word->terms)) : some_pmu_event();
    if (!event) {
      event.error().what = fmt::format("{}: {}", name, event.error().what);
      if (event.error().hint.empty()) event.error().hint = "perf list shows events";
    }
  } else {
    // There is also a colon within the names of tracepoints.
    const auto colon = name.rfind(':');
    const auto last = colon == name.npos ? std::string_view() : name.substr(colon + 1);
    const bool modified = !last.empty() && last.find_first_not_of("ukpP") == last.npos;
    if (modified) letters = last;
    event = plain_event(modified ? name.substr(0, colon) : name, pmus);
  }
  if (!event) return event;
  if (!take_modifiers(letters, *event)) return wrong_modifiers(name);
  if (event->precise && !event->is_hardware())
    return usage(fmt::format("'{}': only hardware events can be sampled precisely", name));
  if (event->most_precise && look_up)
    event->precise = pmus.most_precise(event->of_pmu ? event->of_pmu->pmu : "cpu");
  return event;
}

}  // namespace

Result<PerfEvent> perf_event(std::string_view name, const Pmus& pmus) {
  return event_of(name, pmus, true);
}

Result<PerfEvent> perf_event_word(std::string_view name) { return event_of(name, Pmus(), false); }

std::uint64_t least_period(const PerfEvent& event) {
  return event.is_clock() ? kLeastClockPeriod : event.is_hardware() ? kLeastHardwarePeriod : 1;
}

namespace {

/// perf_event_attr as it is since 09519ec3b19e (6.3), whichever headers there are.
union Attributes {
  explicit Attributes(const PerfEvent& event) {
    memset(this, 0, sizeof *this);
    attr.type = event.type;
    attr.config = event.config;
    attr.exclude_user = event.not_user;
    attr.exclude_kernel = attr.exclude_hv = event.not_kernel;
    attr.size = kConfig3;
    if (!event.of_pmu) return;
    auto& config = event.of_pmu->config;
    attr.config1 = config[1];
    attr.config2 = config[2];
    if (!config[3]) return;
    memcpy(bytes + kConfig3, &config[3], sizeof config[3]);
    attr.size = kConfig3 + sizeof config[3];  // refused by older kernels
  }
  int open(pid_t task, int cpu, int group, unsigned long flags) {
    return static_cast<int>(
        syscall(SYS_perf_event_open, this, task, cpu, group, flags | PERF_FLAG_FD_CLOEXEC));
  }

  static constexpr std::uint32_t kConfig3 = 128;  ///< its offset
  perf_event_attr attr;
  char bytes[kConfig3 + sizeof(std::uint64_t)];
};

/// ENOENT comes from PMUs that do not know the event as it is.
bool may_be_too_precise(int error) {
  return error == EINVAL || error == EOPNOTSUPP || error == ENOENT;
}

/// `precise`: gets how precise samples are.
int open_sampled(const PerfEvent& event, const Sampling& sampling, int cpu, int& precise) {
  Attributes all(event);
  if (sampling.period) {
    all.attr.sample_period = sampling.period;
  } else if (sampling.hz) {
    all.attr.freq = 1;
    all.attr.sample_freq = sampling.hz;
  }
  const bool samples = sampling.period || sampling.hz;
  for (precise = samples ? event.precise : 0;; precise--) {
    all.attr.precise_ip = static_cast<unsigned>(precise) & 3;
    const int fd = all.open(-1, cpu, -1, 0);
    if (fd >= 0 || !precise || !may_be_too_precise(errno)) return fd;
  }
}

}  // namespace

int open_perf_event(const PerfEvent& event, const Sampling& sampling, int cpu) {
  int precise = 0;
  return open_sampled(event, sampling, cpu, precise);
}

int open_counter(const PerfEvent& event, const Counted& whose) {
  Attributes all(event);
  auto& attr = all.attr;
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.inherit = whose.children != Counted::none;
  attr.inherit_thread = whose.children == Counted::threads;
  attr.disabled = whose.group == -1;
  attr.enable_on_exec = whose.from_exec && whose.group == -1;
  const bool in_cgroup = whose.cgroup != -1;
  auto opened = [&] {
    return all.open(in_cgroup ? whose.cgroup : whose.task, whose.cpu, whose.group,
                    in_cgroup ? PERF_FLAG_PID_CGROUP : 0);
  };
  const int fd = opened();
  if (fd >= 0 || errno != EINVAL || !attr.inherit_thread) return fd;
  attr.inherit_thread = 0;  // since 2b26f0aa0037 (5.13)
  return opened();
}

void enable_counter(int fd) { ioctl(fd, PERF_EVENT_IOC_ENABLE, 0); }

std::optional<CounterValue> read_counter(int fd) {
  CounterValue count;
  if (read(fd, &count, sizeof count) != sizeof count) return {};
  return count;
}

std::string refusal_words(const PerfEvent& event, std::string_view name, int error) {
  // For cache events, EINVAL means that this CPU does not support the combination.
  const bool missing = error == ENOENT || error == ENODEV || error == EOPNOTSUPP || error == EINVAL;
  if (!missing || event.is_tracepoint())
    return fmt::format("cannot open {}: {}", name, strerror(error));
  if (!event.is_hardware()) return fmt::format("this kernel has no software event {}", name);
  if (event.of_pmu)
    return fmt::format("the PMU {} does not count it: {}", event.of_pmu->pmu, strerror(error));
  return fmt::format(
      "this machine has no hardware counter for {}; virtual machines often have none", name);
}

std::string perf_event_refusal(std::string_view name, int* precise) {
  auto event = perf_event(name);
  if (!event) {
    auto& e = event.error();
    return e.hint.empty() ? e.what : fmt::format("{}; {}", e.what, e.hint);
  }
  // A period too long to elapse before the descriptor is closed.
  constexpr std::uint64_t kLong = 1'000'000'000'000;
  const auto online = online_cpus();
  const auto cpu = std::ranges::find_if(
      online, [&](int one) { return !event->of_pmu || event->of_pmu->counts_on(one); });
  if (cpu == online.end())
    return fmt::format("none of the CPUs of the PMU {} is online", event->of_pmu->pmu);
  int got = 0;
  const Fd fd(open_sampled(*event, every(kLong), *cpu, got));
  const int error = errno;
  if (precise) *precise = got;
  if (fd || error == EACCES || error == EPERM || lacks_descriptors(error)) return {};
  if (event->of_pmu && error == ENODATA)
    return fmt::format("this CPU has {} only in a group with the event mem-loads-aux", name);
  if (event->of_pmu && Fd(open_perf_event(*event, {}, *cpu)))
    return fmt::format("the PMU {} counts, but cannot sample; perfcount -e '{}' counts it",
                       event->of_pmu->pmu, name);
  return refusal_words(*event, name, error);
}

}  // namespace coretap
