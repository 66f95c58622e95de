#include "program/attach.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/descriptors.hpp"
#include "coretap/config.hpp"
#include "coretap/fd.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "program/each_cpu.hpp"
#include "program/perf_events.hpp"
#include "program/probe.hpp"
#include "program/section.hpp"

namespace coretap {

namespace {

Error attach_error(const Section& section, int error) {
  return system_error(fmt::format("cannot attach {}{}{}", section.kind,
                                  section.target.empty() ? "" : "/", section.target),
                      error, kUnsupported);
}

/// `event`: the result of perf_event_open().
Result<Link> attach_event(bpf_program* program, const Section& section, Fd event) {
  if (!event) {
    auto error = attach_error(section, errno);
    error.why += perf_capability_missing(errno);
    return error;
  }
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
    auto link =
        attach_event(program, section, Fd(open_perf_event(event, {}, online_cpus().front())));
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  if (links.empty()) return attach_error(section, ENOENT);
  return links;
}

/// Samples only on the requested CPUs among `cpus`.
Result<Links> attach_sampled(bpf_program* program, const Config& config, const Plan& plan,
                             std::vector<int> cpus) {
  auto sampling = sampling_of(program, config, plan);
  if (plan.sampling(bpf_program__name(program)).one_cpu)
    std::erase_if(cpus, [first = online_cpus().front()](int cpu) { return cpu != first; });
  if (config.places.cpu)
    std::erase_if(cpus, [&](int cpu) { return cpu != static_cast<int>(*config.places.cpu); });
  auto section = split_section(bpf_program__section_name(program));
  return attach_perf_event(program, section.target, sampling, cpus);
}

}  // namespace

Result<Links> attach_program(bpf_program* program, const Config& config, const Plan& plan) {
  auto section = split_section(bpf_program__section_name(program));
  if (auto* places = plan.places(bpf_program__name(program)))
    return attach_probes(program, config.tasks.pids, *places);
  if (section.kind == "tracepoint" || section.kind == "tp")
    return attach_tracepoints(program, section);
  if (section.kind == "iter") return Links();  // runs when it is read
  if (section.kind == kRun) return Links();    // the loader runs it
  if (samples(program)) {
    auto links = attach_sampled(program, config, plan, online_cpus());
    if (links && links->empty()) return attach_error(section, ENODEV);
    return links;
  }
  auto* link = attach_function(program, section);
  if (!link) return attach_error(section, errno);
  Links links;
  links.emplace_back(link);
  return links;
}

bool samples(const bpf_program* program) {
  return split_section(bpf_program__section_name(program)).kind == kPerfEvent;
}

Sampling sampling_of(const bpf_program* program, const Config& config, const Plan& plan) {
  auto& asked = config.sampling;
  return asked.hz || asked.period ? asked : plan.sampling(bpf_program__name(program));
}

Result<Links> attach_perf_event(bpf_program* program, std::string_view name,
                                const Sampling& sampling, const std::vector<int>& cpus) {
  const Section section{kPerfEvent, name};
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
    auto link = attach_event(program, section, Fd(open_perf_event(*event, sampling, cpu)));
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  return links;
}

Result<Links> attach_perf_events(bpf_object* object, const Config& config, const Plan& plan,
                                 const std::vector<int>& cpus) {
  Links all;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    if (!bpf_program__autoload(program) || !samples(program)) continue;
    auto links = attach_sampled(program, config, plan, cpus);
    if (!links) return links.error();
    for (auto& link : *links) all.push_back(std::move(link));
  }
  return all;
}

}  // namespace coretap
