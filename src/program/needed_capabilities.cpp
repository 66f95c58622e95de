#include "program/needed_capabilities.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include <algorithm>
#include <cerrno>
#include <variant>

#include <fmt/format.h>

#include "kernel/capabilities.hpp"
#include "program/load.hpp"
#include "program/section.hpp"
#include "program/session.hpp"

namespace coretap {

namespace {

bool reads_kernel_symbols(const Tool& tool) {
  return tool.report->kernel_symbols() || std::ranges::any_of(tool.other_reports, [](auto& other) {
           return other.report->kernel_symbols();
         });
}

/// True if a required hook has only candidates with such a program.
bool always_attaches(const Tool& tool, const KernelParts& parts, std::string_view kind) {
  auto by_such = [&](auto& way) {
    return std::ranges::any_of(way.programs,
                               [&](auto name) { return parts.section(name).starts_with(kind); });
  };
  return std::ranges::any_of(tool.hooks, [&](auto& hook) {
    return hook.when.empty() && hook.optional.empty() &&
           std::ranges::all_of(hook.candidates, by_such);
  });
}

bool attaches_in_modules(const Tool& tool) {
  return std::ranges::any_of(tool.hooks, [](auto& hook) {
    return std::ranges::any_of(hook.candidates,
                               [](auto& way) { return way.function_of != nullptr; });
  });
}

/// True if reading a map needs CAP_BPF. Before 5.19 it did if kernel.unprivileged_bpf_disabled
/// is set (c8644cd0efe7).
bool maps_need_bpf(const Session& s) {
  auto maps = maps_of(s.object.get());
  auto made = std::ranges::find_if(maps, [](auto* map) { return bpf_map__fd(map) >= 0; });
  return made != maps.end() && bpf_map_get_next_key(bpf_map__fd(*made), nullptr, nullptr) &&
         errno == EPERM;
}

}  // namespace

std::vector<NeededCapability> needed_capabilities(const Tool& tool) {
  std::vector<NeededCapability> needed;
  const NeededCapability admin{
      Capability::sys_admin,
      "where kernel.perf_event_paranoid is above 2, as Debian has it, for perf events", true};
  if (tool.report->opens_perf_events()) {
    needed.push_back({Capability::perfmon, "to open perf events", true});
    needed.push_back(admin);
  }
  bool loads = tool.report->has_program();
  for (auto& other : tool.other_reports) loads |= other.report->has_program();
  if (tool.object.compressed.empty() || !loads) return needed;
  auto parts = kernel_parts(tool);
  auto attaches = [&](std::string_view kind) {
    return std::ranges::any_of(parts.programs,
                               [&](auto& program) { return program.section.starts_with(kind); });
  };
  auto always = [&](std::string_view kind) { return always_attaches(tool, parts, kind); };
  const bool user_stacks = std::ranges::find(parts.maps, "unwind_rows") != parts.maps.end();
  const bool targets = attaches("target/");  // of any kind; the command line decides
  const bool user_functions = attaches("uprobe") || attaches("uretprobe") || targets;
  const bool user_files = user_stacks || user_functions;
  const bool symbols = reads_kernel_symbols(tool);
  const bool zones = std::ranges::find(tool.options, "zone", &Option::name) != tool.options.end();
  bool always_perf = false, perf = user_stacks || targets;  // for mappings of user stacks
  for (auto kind : {"tracepoint", "perf_event", "kprobe", "kretprobe"}) {
    perf |= attaches(kind);
    always_perf |= always(kind);
  }
  const std::pair<bool, NeededCapability> all[] = {
      {true, {Capability::bpf, "to load its program", true}},
      {true, {Capability::perfmon, "to attach it and let it read the kernel's memory", true}},
      {user_functions,
       {Capability::sys_admin,
        "before Linux 6.10 where kernel.perf_event_paranoid is above 2, and on its stable kernels "
        "since 2025, to probe user functions",
        always("uprobe")}},
      {perf, {admin.capability, admin.purpose, always_perf}},
      {attaches_in_modules(tool), {Capability::sys_admin, "functions of modules", false}},
      {true,
       {Capability::sys_resource,
        "before Linux 5.11, where maps count as locked memory (ulimit -l)", true}},
      {targets,
       {Capability::dac_read_search,
        "names of tracepoints and of kernel functions that can be traced, in tracefs", false}},
      {targets && !symbols, {Capability::syslog, "addresses of kernel functions", false}},
      {attaches("tracepoint"),
       {Capability::dac_read_search, "to find tracepoints in tracefs", always("tracepoint")}},
      {zones, {Capability::dac_read_search, "to read /proc/pagetypeinfo", true}},
      {user_files, {Capability::dac_read_search, "files that only their users may read", false}},
      {user_files,
       {Capability::sys_ptrace,
        user_functions ? "the programs and libraries of other users' processes"
                       : "user stacks of other users' processes",
        false}},
      {user_files,
       {Capability::checkpoint_restore, "files that were replaced while processes run them",
        false}},
      {tool.report->argument_names(),
       {Capability::dac_read_search, "names of arguments, which tracefs has", false}},
      {symbols, {Capability::syslog, "names of kernel functions", false}}};
  for (auto& [applies, need] : all)
    if (applies) needed.push_back(need);
  if (!tool.report->has_program())  // other reports load
    for (auto& need : needed) need.always = false;
  return needed;
}

void drop_capabilities(Session& s) {
  auto keep = s.retained;
  bool needed = false;
  {
    EffectiveOnly attempt(keep);
    needed = maps_need_bpf(s);
  }
  if (needed) keep.add(Capability::bpf);
  retain_capabilities(keep, s.reserve);
  auto left = own_capabilities().names();
  s.verbose(fmt::format("capabilities kept: {}{}", left.empty() ? "none" : left,
                        s.reserve.empty() ? "" : ", in reserve: " + s.reserve.names()));
}

}  // namespace coretap
