#include "program/attach.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/fd.hpp"
#include "cli/config.hpp"
#include "kernel/capabilities.hpp"
#include "kernel/kernel.hpp"
#include "program/probe.hpp"
#include "program/section.hpp"

namespace coretap {

namespace {

Error attach_error(const Section& section, int error) {
  return {fmt::format("cannot attach {}{}{}", section.kind, section.target.empty() ? "" : "/",
                      section.target),
          strerror(error),
          {},
          kUnsupported};
}

Result<Link> attach_event(bpf_program* program, const Section& section, perf_event_attr attr,
                          pid_t pid, int cpu) {
  attr.size = sizeof attr;
  Fd event(
      static_cast<int>(syscall(SYS_perf_event_open, &attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
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

/// A tick of each CPU's clock.
Result<Links> attach_clock(bpf_program* program, const Section& section, const Config& config,
                           const std::vector<int>& cpus) {
  perf_event_attr attr{};
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_CPU_CLOCK;
  if (config.sample_period) {
    attr.sample_period = config.sample_period;
  } else {
    attr.freq = 1;
    attr.sample_freq = config.sample_hz;
  }
  Links links;
  for (int cpu : cpus) {
    if (config.cpu && static_cast<int>(*config.cpu) != cpu) continue;
    auto link = attach_event(program, section, attr, -1, cpu);
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  return links;
}

/// libbpf wants tracefs at its usual place; the ids may come from a private mount.
Result<Links> attach_tracepoints(bpf_program* program, const Section& section) {
  Links links;
  auto names = listed_tracepoints(section.target);
  for (auto& name : names) {
    auto id = listed_tracepoint_id(name);
    if (!id && names.size() > 1) continue;  // a call that this architecture does not have
    if (!id) return id.error();
    perf_event_attr attr{};
    attr.type = PERF_TYPE_TRACEPOINT;
    attr.config = static_cast<__u64>(*id);
    auto link = attach_event(program, section, attr, -1, 0);
    if (!link) return link.error();
    links.push_back(std::move(*link));
  }
  if (links.empty()) return attach_error(section, ENOENT);
  return links;
}

}  // namespace

Result<Links> attach_program(bpf_program* program, const Config& config, const Plan& plan) {
  auto section = split_section(bpf_program__section_name(program));
  if (auto* places = plan.places(bpf_program__name(program)))
    return attach_probes(program, config.pids, *places);
  if (section.kind == "tracepoint" || section.kind == "tp")
    return attach_tracepoints(program, section);
  if (section.kind == "iter") return Links();  // runs when it is read
  if (is_clock(program)) {
    auto links = attach_clock(program, section, config, online_cpus());
    if (links && links->empty()) return attach_error(section, ENODEV);
    return links;
  }
  auto* link = bpf_program__type(program) == BPF_PROG_TYPE_TRACING
                   ? bpf_program__attach_trace(program)  // load() has made it one
                   : bpf_program__attach(program);
  if (!link) return attach_error(section, errno);
  Links links;
  links.emplace_back(link);
  return links;
}

bool is_clock(const bpf_program* program) {
  return split_section(bpf_program__section_name(program)).kind == "perf_event";
}

Result<Links> attach_clocks(bpf_object* object, const Config& config,
                            const std::vector<int>& cpus) {
  Links all;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, object) {
    if (!bpf_program__autoload(program) || !is_clock(program)) continue;
    auto links =
        attach_clock(program, split_section(bpf_program__section_name(program)), config, cpus);
    if (!links) return links.error();
    for (auto& link : *links) all.push_back(std::move(link));
  }
  return all;
}

}  // namespace coretap
