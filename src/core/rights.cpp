#include "core/rights.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <variant>

#include <fmt/format.h>

#include "core/files.hpp"
#include "core/load.hpp"
#include "core/session.hpp"

namespace coretap {

namespace {

struct Name {
  Right right;
  std::string_view words;
};
constexpr std::array<Name, 10> kNames = {{{Right::dac_override, "CAP_DAC_OVERRIDE"},
                                          {Right::dac_read_search, "CAP_DAC_READ_SEARCH"},
                                          {Right::fowner, "CAP_FOWNER"},
                                          {Right::sys_ptrace, "CAP_SYS_PTRACE"},
                                          {Right::sys_admin, "CAP_SYS_ADMIN"},
                                          {Right::sys_resource, "CAP_SYS_RESOURCE"},
                                          {Right::syslog, "CAP_SYSLOG"},
                                          {Right::perfmon, "CAP_PERFMON"},
                                          {Right::bpf, "CAP_BPF"},
                                          {Right::checkpoint_restore, "CAP_CHECKPOINT_RESTORE"}}};

struct Sets {
  std::uint64_t effective = 0, permitted = 0;
};

Sets get_sets() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  if (syscall(SYS_capget, &header, data)) return {};
  return {data[0].effective | std::uint64_t{data[1].effective} << 32,
          data[0].permitted | std::uint64_t{data[1].permitted} << 32};
}

void set_sets(const Sets& sets) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2] = {};
  for (int half = 0; half < 2; half++) {
    data[half].effective = static_cast<__u32>(sets.effective >> 32 * half);
    data[half].permitted = static_cast<__u32>(sets.permitted >> 32 * half);
  }
  syscall(SYS_capset, &header, data);
}

bool shows_kernel_stacks(const Report& report) {
  if (std::holds_alternative<StackReport>(report)) return true;
  auto* events = std::get_if<EventReport>(&report);
  return events && !events->stack_when.empty();
}

bool reads_kernel_symbols(const Tool& tool) {
  return shows_kernel_stacks(tool.report) ||
         std::any_of(tool.other_reports.begin(), tool.other_reports.end(),
                     [](auto& other) { return shows_kernel_stacks(other.report); });
}

/// Is there a hook that the tool cannot do without, and that no way has without such a program?
bool always_attaches(const Tool& tool, const KernelParts& parts, std::string_view kind) {
  auto of_kind = [&](auto name) { return parts.section(name).starts_with(kind); };
  auto by_such = [&](auto& way) {
    return std::any_of(way.programs.begin(), way.programs.end(), of_kind);
  };
  return std::any_of(tool.hooks.begin(), tool.hooks.end(), [&](auto& hook) {
    return hook.when.empty() && hook.optional.empty() &&
           std::all_of(hook.ways.begin(), hook.ways.end(), by_such);
  });
}

bool has_option(const Tool& tool, std::string_view name) {
  return std::any_of(tool.options.begin(), tool.options.end(),
                     [&](auto& option) { return option.name == name; });
}

/// Does the kernel ask for CAP_BPF at a look into a map? Before 5.19 it did where
/// kernel.unprivileged_bpf_disabled is set (c8644cd0efe7).
bool maps_need_bpf(const Session& s) {
  bpf_map* map = nullptr;
  if (s.object) {
    bpf_object__for_each_map(map, s.object.get()) {
      if (bpf_map__fd(map) < 0) continue;
      return bpf_map_get_next_key(bpf_map__fd(map), nullptr, nullptr) && errno == EPERM;
    }
  }
  return false;
}

}  // namespace

std::string_view name_of(Right right) {
  for (auto& name : kNames)
    if (name.right == right) return name.words;
  return {};
}

bool Rights::has(Right right) const {
  if (bits_ & bit(right)) return true;
  switch (right) {
    case Right::bpf:
    case Right::perfmon:
    case Right::syslog:
    case Right::checkpoint_restore:
      return bits_ & bit(Right::sys_admin);
    default:
      return false;
  }
}

Rights Rights::of_bits(std::uint64_t bits) {
  Rights all;
  all.bits_ = bits;
  return all;
}

std::string Rights::names() const {
  std::string text;
  for (auto& name : kNames)
    if (bits_ & bit(name.right)) text += (text.empty() ? "" : " ") + std::string(name.words);
  return text;
}

Rights own_rights() { return Rights::of_bits(get_sets().effective); }

std::optional<long long> perf_events_for_admin() {
  constexpr long long kDistributions = 3;  // the kernel's own values end at 2
  auto paranoid = read_number("/proc/sys/kernel/perf_event_paranoid");
  return paranoid && *paranoid >= kDistributions ? std::optional<long long>(*paranoid)
                                                 : std::nullopt;
}

std::string perf_right_missing(int error, bool user_function) {
  if (error != EACCES || own_rights().has(Right::sys_admin)) return {};
  if (auto paranoid = perf_events_for_admin())
    return fmt::format(": kernel.perf_event_paranoid is {}, which asks for CAP_SYS_ADMIN",
                       *paranoid);
  return user_function ? ": this kernel asks for CAP_SYS_ADMIN" : "";
}

std::vector<NeededRight> needed_rights(const Tool& tool) {
  std::vector<NeededRight> needed;
  if (tool.object.compressed.empty() || std::holds_alternative<SnapshotReport>(tool.report))
    return needed;
  auto parts = kernel_parts(tool);
  auto attaches = [&](std::string_view kind) {
    return std::any_of(parts.programs.begin(), parts.programs.end(), [&](auto& program) {
      return std::string_view(program.section).starts_with(kind);
    });
  };
  bool user_stacks =
      std::find(parts.maps.begin(), parts.maps.end(), "unwind_rows") != parts.maps.end();
  bool user_functions = attaches("uprobe") || attaches("uretprobe");
  needed.push_back({Right::bpf, "to load its program", true});
  needed.push_back({Right::perfmon, "to attach it and let it read the kernel's memory", true});
  if (user_functions)
    needed.push_back(
        {Right::sys_admin,
         "before Linux 6.10 where kernel.perf_event_paranoid is above 2, and on its stable kernels "
         "since 2025, to probe user functions",
         always_attaches(tool, parts, "uprobe")});
  bool always_perf = false, perf = user_stacks;  // which hear of mappings by one
  for (auto kind : {"tracepoint", "perf_event", "kprobe", "kretprobe"}) {
    perf |= attaches(kind);
    always_perf |= always_attaches(tool, parts, kind);
  }
  if (perf)
    needed.push_back(
        {Right::sys_admin,
         "where kernel.perf_event_paranoid is above 2, as Debian has it, for perf events",
         always_perf});
  needed.push_back({Right::sys_resource,
                    "before Linux 5.11, where maps count as locked memory (ulimit -l)", true});
  if (attaches("tracepoint"))
    needed.push_back({Right::dac_read_search, "to find tracepoints in tracefs",
                      always_attaches(tool, parts, "tracepoint")});
  if (has_option(tool, "zone"))
    needed.push_back({Right::dac_read_search, "to read /proc/pagetypeinfo", true});
  if (user_stacks || user_functions)
    needed.push_back({Right::dac_read_search, "files that only their users may read", false});
  if (user_stacks || user_functions) {
    needed.push_back({Right::sys_ptrace,
                      user_functions ? "the programs and libraries of other users' processes"
                                     : "user stacks of other users' processes",
                      false});
    needed.push_back(
        {Right::checkpoint_restore, "files that were replaced while processes run them", false});
  }
  if (std::holds_alternative<CallReport>(tool.report))
    needed.push_back({Right::dac_read_search, "names of arguments, which tracefs has", false});
  if (reads_kernel_symbols(tool))
    needed.push_back({Right::syslog, "names of kernel functions", false});
  return needed;
}

std::string missing_rights() {
  auto mine = own_rights();
  std::string missing;
  for (auto right : {Right::bpf, Right::perfmon})
    if (!mine.has(right)) missing += (missing.empty() ? "" : " and ") + std::string(name_of(right));
  return missing;
}

void keep_rights(const Rights& keep) {
  auto sets = get_sets();
  // What CAP_SYS_ADMIN stands for stays by it.
  auto kept = sets.permitted & keep.bits();
  if (keep.bits() & ~kept & Rights{Right::bpf, Right::perfmon}.bits())
    kept |= sets.permitted & Rights{Right::sys_admin}.bits();
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  set_sets({sets.effective & kept, kept});
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

void give_up_rights(Session& s) {
  auto keep = s.keeps;
  auto sets = get_sets();
  // A try, which only the permitted set allows to take back.
  set_sets({sets.effective & keep.bits(), sets.permitted});
  if (maps_need_bpf(s)) keep.add(Right::bpf);
  set_sets(sets);
  keep_rights(keep);
  auto left = own_rights().names();
  s.verbose(fmt::format("rights kept: {}", left.empty() ? "none" : left));
}

}  // namespace coretap
