#include "program/attach.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <iterator>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/config.hpp"
#include "coretap/fd.hpp"
#include "coretap/sanitize.hpp"
#include "kernel/bpf_links.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "kernel/perf_events.hpp"
#include "program/each_cpu.hpp"
#include "program/section.hpp"

namespace coretap {

namespace {

std::string cannot_attach(const Section& section) { return "cannot attach " + section.text(); }

Error attach_error(const Section& section, int error) {
  return system_error(cannot_attach(section), error, kUnsupported);
}

Result<void> add(Links& links, Result<Link> link) {
  if (!link) return link.error();
  links.push_back(std::move(*link));
  return {};
}

/// `event`: the result of perf_event_open().
Result<Link> attach_event(bpf_program* program, const Section& section, Fd event) {
  if (!event) return event_refused(cannot_attach(section), errno);
  auto* link = bpf_program__attach_perf_event(program, event.get());
  if (!link) return attach_error(section, errno);
  event.release();  // the link closes it
  return Link(link);
}

/// Attaches to a kernel function, or to a tracepoint with or without BTF types.
bpf_link* attach_function(bpf_program* program, const Section& section) {
  const std::string target(section.target);
  if (bpf_program__type(program) == BPF_PROG_TYPE_TRACING)
    return bpf_program__attach_trace(program);  // load() has set this type
  if (section.kind == "raw_tp") return bpf_program__attach_raw_tracepoint(program, target.c_str());
  return bpf_program__attach_kprobe(program, section.kind == "kretprobe", target.c_str());
}

/// libbpf expects tracefs at its usual mount point; here the ids may come from a private mount.
Result<Links> attach_tracepoints(bpf_program* program, const Section& section) {
  Links links;
  auto names = listed_tracepoints(section.target);
  for (auto& name : names) {
    auto id = listed_tracepoint_id(name);
    // This architecture does not have that system call.
    if (!id && names.size() > 1 && id.error().status == kUnsupported) continue;
    if (!id) return id.error();
    PerfEvent event{PERF_TYPE_TRACEPOINT, static_cast<std::uint64_t>(*id)};
    // One event serves all CPUs; it must be opened on a CPU that is online.
    Fd opened(open_perf_event(event, {}, online_cpus().front()));
    if (auto r = add(links, attach_event(program, section, std::move(opened))); !r)
      return r.error();
  }
  if (links.empty()) return attach_error(section, ENOENT);
  return links;
}

/// Attaches with one link, or with a perf event for each place.
Result<void> attach_places(bpf_program* program, const FileProbes& probes, pid_t pid,
                           Links& links) {
  if (bpf_program__expected_attach_type(program) == kUprobeMulti)
    return add(links, attach_file(bpf_program__fd(program), probes, pid));
  LIBBPF_OPTS(bpf_uprobe_opts, options);
  options.retprobe = probes.at_return;
  for (auto offset : probes.offsets) {
    auto* link =
        bpf_program__attach_uprobe_opts(program, pid, probes.path.c_str(), offset, &options);
    if (!link) return event_refused({}, errno, true);
    links.emplace_back(link);
  }
  return {};
}

/// Attaches to all places of a user function or fails: which of several files is left out must
/// depend on the files alone.
Result<Links> attach_probes(bpf_program* program, const Config& config, const ProbePoints& places) {
  const bool returns = section_of(program).kind == "uretprobe";
  Links links;
  for (auto& point : places.points) {
    const bool by_trampoline = returns && point.returns.empty();
    const FileProbes probes{
        point.open_path(), by_trampoline,
        returns && !by_trampoline ? point.returns : std::vector{point.probed.offset}};
    for (auto pid : probed_processes(config))
      if (auto r = attach_places(program, probes, pid, links); !r) {
        r.error().what = fmt::format("cannot probe {} in {}", point.symbol, printable(point.path));
        return r.error();
      }
  }
  return links;
}

/// Samples only on the requested CPUs among `cpus`.
Result<Links> attach_sampled(const Session& s, bpf_program* program, std::vector<int> cpus) {
  if (s.plan.sampling(bpf_program__name(program)).one_cpu)
    std::erase_if(cpus, [first = online_cpus().front()](int cpu) { return cpu != first; });
  if (auto only = s.config.places.cpu)
    std::erase_if(cpus, [&](int cpu) { return cpu != static_cast<int>(*only); });
  return attach_perf_event(program, event_of(s, program), sampling_of(s, program), cpus);
}

}  // namespace

std::string event_of(const Session& s, const bpf_program* program) {
  auto& asked = s.config.sampling.events;
  auto* hook = s.plan.hook_of(bpf_program__name(program));
  const auto event = hook ? hook->hook->event : 0;
  return event < asked.size() ? asked[event] : std::string(section_of(program).target);
}

Result<Links> attach_program(const Session& s, bpf_program* program) {
  auto section = section_of(program);
  if (auto places = s.plan.places(bpf_program__name(program)))
    return attach_probes(program, s.config, *places);
  if (section.kind == "tracepoint") return attach_tracepoints(program, section);
  if (section.kind == "iter") return Links();  // runs when it is read
  if (section.kind == kRun) return Links();    // the loader runs it
  if (samples(program)) {
    auto links = attach_sampled(s, program, online_cpus());
    if (links && links->empty()) return attach_error(section, ENODEV);
    return links;
  }
  auto* link = attach_function(program, section);
  if (!link) return attach_error(section, errno);
  Links links;
  links.emplace_back(link);
  return links;
}

std::set<pid_t> probed_processes(const Config& config) {
  auto& pids = config.tasks.pids;
  return pids.empty() ? std::set<pid_t>{-1} : std::set<pid_t>(pids.begin(), pids.end());
}

Result<Link> attach_file(int program, const FileProbes& probes, pid_t pid) {
  auto address = [](const std::vector<std::uint64_t>& list) {
    return list.empty() ? 0 : reinterpret_cast<std::uintptr_t>(list.data());
  };
  UprobeMulti wish{};
  wish.program = static_cast<std::uint32_t>(program);
  wish.attach_type = kUprobeMulti;
  wish.path = reinterpret_cast<std::uintptr_t>(probes.path.c_str());
  wish.offsets = address(probes.offsets);
  wish.reference_counters = address(probes.semaphores);
  wish.cookies = address(probes.cookies);
  wish.count = static_cast<std::uint32_t>(probes.offsets.size());
  wish.flags = probes.at_return ? kUprobeMultiReturn : 0;
  wish.pid = pid > 0 ? static_cast<std::uint32_t>(pid) : 0;
  return link_of(static_cast<int>(syscall(SYS_bpf, BPF_LINK_CREATE, &wish, sizeof wish)));
}

Error event_refused(std::string what, int error, bool user_function) {
  auto refused = system_error(std::move(what), error, kUnsupported);
  refused.why += perf_capability_missing(error, user_function);
  return refused;
}

bool samples(const bpf_program* program) { return section_of(program).kind == kPerfEvent; }

Sampling sampling_of(const Session& s, const bpf_program* program) {
  auto& asked = s.config.sampling;
  if (asked.hz || asked.period) return asked;
  auto event = perf_event(event_of(s, program));
  // Each of them, as they are rare, and a rate would have to be found by trying.
  if (!asked.events.empty() && event && !event->is_clock() && !event->is_hardware())
    return every(1);
  return s.plan.sampling(bpf_program__name(program));
}

Result<Links> attach_perf_event(bpf_program* program, std::string_view name,
                                const Sampling& sampling, const std::vector<int>& cpus) {
  auto event = perf_event(name);
  if (!event) return event.error();
  auto least = least_period(*event);
  auto most_hz = event->is_clock() ? kMostClockHz : UINT64_MAX;
  if (sampling.period ? sampling.period < least : !sampling.hz || sampling.hz > most_hz)
    return Error{fmt::format("cannot sample {}", name),
                 sampling.period ? fmt::format("a period of {} is below {}", sampling.period, least)
                 : sampling.hz   ? fmt::format("{} Hz are above {}", sampling.hz, most_hz)
                                 : "neither its hook nor an option says how often"};
  Links links;
  for (int cpu : cpus) {
    if (event->of_pmu && !event->of_pmu->counts_on(cpu)) continue;
    Fd opened(open_perf_event(*event, sampling, cpu));
    if (auto r = add(links, attach_event(program, {kPerfEvent, name}, std::move(opened))); !r)
      return r.error();
  }
  return links;
}

Result<Links> attach_perf_events(const Session& s, const std::vector<int>& cpus) {
  Links all;
  for (auto* program : programs_of(s.object.get())) {
    if (!bpf_program__autoload(program) || !samples(program)) continue;
    auto links = attach_sampled(s, program, cpus);
    if (!links) return links.error();
    std::ranges::move(*links, std::back_inserter(all));
  }
  return all;
}

}  // namespace coretap
