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
  return tool.report->kernel_symbols() ||
         std::any_of(tool.other_reports.begin(), tool.other_reports.end(),
                     [](auto& other) { return other.report->kernel_symbols(); });
}

/// True if a required hook has only candidates with such a program.
bool always_attaches(const Tool& tool, const KernelParts& parts, std::string_view kind) {
  auto of_kind = [&](auto name) { return parts.section(name).starts_with(kind); };
  auto by_such = [&](auto& way) {
    return std::any_of(way.programs.begin(), way.programs.end(), of_kind);
  };
  return std::any_of(tool.hooks.begin(), tool.hooks.end(), [&](auto& hook) {
    return hook.when.empty() && hook.optional.empty() &&
           std::all_of(hook.candidates.begin(), hook.candidates.end(), by_such);
  });
}

bool has_option(const Tool& tool, std::string_view name) {
  return std::any_of(tool.options.begin(), tool.options.end(),
                     [&](auto& option) { return option.name == name; });
}

bool attaches_in_modules(const Tool& tool) {
  return std::any_of(tool.hooks.begin(), tool.hooks.end(), [](auto& hook) {
    return std::any_of(hook.candidates.begin(), hook.candidates.end(),
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
  if (tool.object.compressed.empty() || !tool.report->has_program()) return needed;
  auto parts = kernel_parts(tool);
  auto attaches = [&](std::string_view kind) {
    return std::any_of(parts.programs.begin(), parts.programs.end(), [&](auto& program) {
      return std::string_view(program.section).starts_with(kind);
    });
  };
  bool user_stacks =
      std::find(parts.maps.begin(), parts.maps.end(), "unwind_rows") != parts.maps.end();
  const bool targets = attaches("target/");  // of any kind; the command line decides
  bool user_functions = attaches("uprobe") || attaches("uretprobe") || targets;
  needed.push_back({Capability::bpf, "to load its program", true});
  needed.push_back({Capability::perfmon, "to attach it and let it read the kernel's memory", true});
  if (user_functions)
    needed.push_back(
        {Capability::sys_admin,
         "before Linux 6.10 where kernel.perf_event_paranoid is above 2, and on its stable kernels "
         "since 2025, to probe user functions",
         always_attaches(tool, parts, "uprobe")});
  bool always_perf = false, perf = user_stacks || targets;  // for mappings of user stacks
  for (auto kind : {"tracepoint", "perf_event", "kprobe", "kretprobe"}) {
    perf |= attaches(kind);
    always_perf |= always_attaches(tool, parts, kind);
  }
  if (perf)
    needed.push_back(
        {Capability::sys_admin,
         "where kernel.perf_event_paranoid is above 2, as Debian has it, for perf events",
         always_perf});
  if (attaches_in_modules(tool))
    needed.push_back({Capability::sys_admin, "functions of modules", false});
  needed.push_back({Capability::sys_resource,
                    "before Linux 5.11, where maps count as locked memory (ulimit -l)", true});
  if (targets)
    needed.push_back({Capability::dac_read_search,
                      "names of tracepoints and of kernel functions that can be traced, in tracefs",
                      false});
  if (targets && !reads_kernel_symbols(tool))
    needed.push_back({Capability::syslog, "addresses of kernel functions", false});
  if (attaches("tracepoint"))
    needed.push_back({Capability::dac_read_search, "to find tracepoints in tracefs",
                      always_attaches(tool, parts, "tracepoint")});
  if (has_option(tool, "zone"))
    needed.push_back({Capability::dac_read_search, "to read /proc/pagetypeinfo", true});
  if (user_stacks || user_functions)
    needed.push_back({Capability::dac_read_search, "files that only their users may read", false});
  if (user_stacks || user_functions) {
    needed.push_back({Capability::sys_ptrace,
                      user_functions ? "the programs and libraries of other users' processes"
                                     : "user stacks of other users' processes",
                      false});
    needed.push_back({Capability::checkpoint_restore,
                      "files that were replaced while processes run them", false});
  }
  if (tool.report->argument_names())
    needed.push_back({Capability::dac_read_search, "names of arguments, which tracefs has", false});
  if (reads_kernel_symbols(tool))
    needed.push_back({Capability::syslog, "names of kernel functions", false});
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
