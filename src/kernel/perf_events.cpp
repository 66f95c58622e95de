#include "kernel/perf_events.hpp"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.hpp"
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

Result<PerfEvent> plain_event(std::string_view name) {
  std::vector<std::string_view> known;
  for (auto& e : all_events()) {
    if (e.name == name) return e.event;
    known.push_back(e.name);
  }
  if (name.find(':') != name.npos) return tracepoint_event(name);
  if (name.starts_with('r'))
    if (auto config = parse_hexadecimal(name.substr(1))) return PerfEvent{PERF_TYPE_RAW, *config};
  return Error{
      fmt::format("there is no perf event '{}'", name), {}, did_you_mean(name, known), kUsage};
}

}  // namespace

Result<PerfEvent> perf_event(std::string_view name) {
  const bool user = name.ends_with(":u"), kernel = name.ends_with(":k");
  auto event = plain_event(user || kernel ? name.substr(0, name.size() - 2) : name);
  if (event && (user || kernel)) (user ? event->not_kernel : event->not_user) = true;
  return event;
}

std::uint64_t least_period(const PerfEvent& event) {
  return event.is_clock() ? kLeastClockPeriod : event.is_hardware() ? kLeastHardwarePeriod : 1;
}

namespace {

perf_event_attr attributes_of(const PerfEvent& event) {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = event.type;
  attr.config = event.config;
  attr.exclude_user = event.not_user;
  attr.exclude_kernel = attr.exclude_hv = event.not_kernel;
  return attr;
}

}  // namespace

int open_perf_event(const PerfEvent& event, const Sampling& sampling, int cpu) {
  auto attr = attributes_of(event);
  if (sampling.period) {
    attr.sample_period = sampling.period;
  } else if (sampling.hz) {
    attr.freq = 1;
    attr.sample_freq = sampling.hz;
  }
  return static_cast<int>(syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC));
}

int open_counter(const PerfEvent& event, const Counted& whose) {
  auto attr = attributes_of(event);
  attr.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  attr.inherit = whose.children != Counted::none;
  attr.inherit_thread = whose.children == Counted::threads;
  attr.disabled = whose.group == -1;
  attr.enable_on_exec = whose.from_exec && whose.group == -1;
  unsigned long flags = PERF_FLAG_FD_CLOEXEC;
  if (whose.cgroup != -1) flags |= PERF_FLAG_PID_CGROUP;
  auto opened = [&] {
    return static_cast<int>(syscall(SYS_perf_event_open, &attr,
                                    whose.cgroup != -1 ? whose.cgroup : whose.task, whose.cpu,
                                    whose.group, flags));
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
  return fmt::format(
      "this machine has no hardware counter for {}; virtual machines often have none", name);
}

std::string perf_event_refusal(std::string_view name) {
  auto event = perf_event(name);
  if (!event) {
    auto& e = event.error();
    return e.hint.empty() ? e.what : fmt::format("{}; {}", e.what, e.hint);
  }
  // A period too long to elapse before the descriptor is closed.
  constexpr std::uint64_t kLong = 1'000'000'000'000;
  Fd fd(open_perf_event(*event, every(kLong), online_cpus().front()));
  if (fd || errno == EACCES || errno == EPERM || lacks_descriptors(errno)) return {};
  return refusal_words(*event, name, errno);
}

}  // namespace coretap
