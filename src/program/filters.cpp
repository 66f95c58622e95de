#include "program/filters.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/loop.hpp"
#include "kernel/zones.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO

}  // namespace

namespace {
void configure_flow_filter(Session& s) {
  auto& c = s.config;
  set_variable(s, "filter_ip", c.ip);
  auto ports = [&](const char* map, const char* on, const std::vector<std::uint32_t>& list) {
    if (list.empty() || !s.map(map)) return;
    set_variable(s, on, 1);
    bpf_map__set_max_entries(s.map(map), static_cast<__u32>(list.size()));
  };
  ports("filter_lports", "filter_lports_on", c.local_ports);
  ports("filter_rports", "filter_rports_on", c.remote_ports);
}

/// What programs with bpf/lib/zone.bpf.h ask for by its name.
Result<void> configure_zone_filter(Session& s) {
  auto& c = s.config;
  if (set_variable(s, "pageblock_order", 0)) {
    auto order = pageblock_order();
    if (!order) return order.error();
    set_variable(s, "pageblock_order", *order);
  }
  if (!c.node && c.zone.empty()) return {};
  auto& here = zones();
  if (!here) return here.error();
  auto ranges = (*here).ranges(c.node, c.zone);
  if (ranges.size() > ZONE_RANGES)
    return Error{"--node or --zone: too many separate pieces of memory",
                 fmt::format("{} here, {} at most", ranges.size(), ZONE_RANGES), "name a node too"};
  set_variable(s, "filter_pfns", ranges.data(), ranges.size() * sizeof ranges[0]);
  set_variable(s, "filter_pfn_count", ranges.size());
  return {};
}
}  // namespace

std::optional<ino_t> own_pid_namespace() {
  struct stat st {};
  if (stat("/proc/self/ns/pid", &st) || st.st_ino == kFirstPidNamespace) return {};
  return st.st_ino;
}

Result<void> configure_filters(Session& s, pid_t command) {
  auto& c = s.config;
  configure_flow_filter(s);
  if (auto r = configure_zone_filter(s); !r) return r;
  task_filter filter{};
  filter.by_tgid = !c.pids.empty() || command > 0;
  filter.follow = command > 0;
  filter.by_tid = !c.tids.empty();
  filter.by_uid = c.uid.has_value();
  filter.uid = c.uid.value_or(0);
  filter.by_comm = !c.comm.empty();
  memcpy(filter.comm, c.comm.data(), std::min(c.comm.size(), sizeof filter.comm - 1));
  if (!c.cgroup.empty()) {
    auto id = cgroup_id(c.cgroup);
    if (!id) return id.error();
    filter.by_cgroup = 1;
    filter.cgroup = *id;
  }
  filter.on =
      filter.by_tgid || filter.by_tid || filter.by_uid || filter.by_comm || filter.by_cgroup;

  // What no task can match is a slip of the fingers, not a quiet afternoon.
  auto alive = [](std::uint32_t id) {
    return kill(static_cast<pid_t>(id), 0) == 0 || errno == EPERM;
  };
  for (auto pid : c.pids) {
    if (!alive(pid))
      return Error{fmt::format("--pid {}: there is no such process", pid),
                   {},
                   "pids are taken as seen from here (this pid namespace)",
                   kFailed};
    auto task = fmt::format("/proc/{}/status", pid);
    if (access(task.c_str(), F_OK) == 0 &&
        access(fmt::format("/proc/{0}/task/{0}", pid).c_str(), F_OK) != 0)
      return Error{
          fmt::format("--pid {}: is a thread, not a process", pid), {}, "use --tid", kFailed};
  }
  for (auto tid : c.tids)
    if (!alive(tid))
      return Error{fmt::format("--tid {}: there is no such thread", tid),
                   {},
                   "thread ids are taken as seen from here (this pid namespace)",
                   kFailed};

  // In another pid namespace ids that the kernel program sees are not those that this process sees.
  if (auto here = own_pid_namespace()) set_variable(s, "view_pidns", *here);
  if (!set_variable(s, "filter", &filter, sizeof filter)) return {};
  if (auto* map = s.map("filter_tgids"))
    bpf_map__set_max_entries(
        map, filter.follow ? static_cast<__u32>(max_tasks())
                           : static_cast<__u32>(std::max<std::size_t>(1, c.pids.size())));
  if (auto* map = s.map("filter_tids"))
    bpf_map__set_max_entries(map, static_cast<__u32>(std::max<std::size_t>(1, c.tids.size())));
  return {};
}

Result<void> fill_filters(Session& s, pid_t command) {
  auto fill = [&](std::string_view name, const std::vector<std::uint32_t>& ids) -> Result<void> {
    auto* map = s.map(name);
    if (!map) return {};
    for (auto id : ids) {
      std::uint8_t one = 1;
      if (bpf_map_update_elem(bpf_map__fd(map), &id, &one, BPF_ANY))
        return Error{"cannot set the filter", strerror(errno), "name fewer ids"};
    }
    return {};
  };
  auto pids = s.config.pids;
  if (command > 0) pids.push_back(static_cast<std::uint32_t>(command));
  if (auto r = fill("filter_tgids", pids); !r) return r.error();
  if (auto r = fill("filter_lports", s.config.local_ports); !r) return r.error();
  if (auto r = fill("filter_rports", s.config.remote_ports); !r) return r.error();
  return fill("filter_tids", s.config.tids);
}

}  // namespace coretap
