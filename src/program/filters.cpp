#include "program/filters.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/loop.hpp"
#include "kernel/zones.hpp"
#include "lib/net/flow.h"
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
  auto some = [&](const char* map, const char* on, const auto& list) {
    if (list.empty() || !s.map(map)) return;
    set_variable(s, on, 1);
    bpf_map__set_max_entries(s.map(map), static_cast<__u32>(list.size()));
  };
  some("filter_lports", "filter_lports_on", c.local_ports);
  some("filter_rports", "filter_rports_on", c.remote_ports);
  some("filter_laddrs", "filter_laddrs_on", c.local_addresses);
  some("filter_raddrs", "filter_raddrs_on", c.remote_addresses);
  set_variable(s, "filter_netns", c.netns);
}

/// Variables that programs with bpf/memory/zone.bpf.h declare by name.
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

namespace {

/// Command-name substrings as bit sets: a bit for each byte of each part (bpf/lib/core/filter.bpf.h).
void set_names(Session& s, task_filter& filter) {
  std::array<std::uint64_t, 256> places{};
  std::uint64_t place = 1;  // bit of the next byte
  for (auto& part : s.config.names) {
    if (part.empty()) continue;
    filter.by_name = 1;
    filter.name_first |= place;
    std::uint64_t last = 0;
    for (unsigned char byte : part) {
      places[byte] |= place;
      last = place;
      place <<= 1;
    }
    filter.name_last |= last;
  }
  set_variable(s, "filter_names", places.data(), sizeof places);
}

bool alive(std::uint32_t id) { return kill(static_cast<pid_t>(id), 0) == 0 || errno == EPERM; }

/// Removes ids of tasks that do not exist, as new tasks may reuse them; an error if none is left.
Result<std::vector<std::string>> leave_out_dead(std::vector<std::uint32_t>& ids,
                                                std::string_view option, std::string_view what) {
  std::vector<std::string> notes;
  auto named = ids.size();
  std::erase_if(ids, [&](auto id) {
    if (alive(id)) return false;
    notes.push_back(fmt::format("--{} {}: there is no such {}", option, id, what));
    return true;
  });
  if (named && ids.empty())
    return Error{fmt::format("{}", fmt::join(notes, "; ")),
                 {},
                 fmt::format("{} ids are taken as seen from here (this pid namespace)", what),
                 kUsage};
  return notes;
}

}  // namespace

Result<std::vector<std::string>> find_tasks(Config& c) {
  auto notes = leave_out_dead(c.pids, "pid", "process");
  if (!notes) return notes;
  for (auto pid : c.pids)
    if (access(fmt::format("/proc/{}/status", pid).c_str(), F_OK) == 0 &&
        access(fmt::format("/proc/{0}/task/{0}", pid).c_str(), F_OK) != 0)
      return Error{
          fmt::format("--pid {}: is a thread, not a process", pid), {}, "use --tid", kUsage};
  auto threads = leave_out_dead(c.tids, "tid", "thread");
  if (!threads) return threads;
  notes->insert(notes->end(), threads->begin(), threads->end());
  return notes;
}

std::optional<ino_t> own_pid_namespace() {
  struct stat st {};
  if (stat("/proc/self/ns/pid", &st) || st.st_ino == kFirstPidNamespace) return {};
  return st.st_ino;
}

Result<void> configure_filters(Session& s, pid_t command) {
  auto& c = s.config;
  configure_flow_filter(s);
  for (auto& [name, entries] : c.entries())
    if (auto* map = s.map(name)) bpf_map__set_max_entries(map, static_cast<__u32>(entries.size()));
  if (auto r = configure_zone_filter(s); !r) return r;
  task_filter filter{};
  filter.not_tgid = !c.not_pids.empty();
  filter.not_comm = !c.not_comms.empty();
  filter.by_tgid = !c.pids.empty() || filter.not_tgid || command > 0;
  filter.follow = command > 0;
  filter.by_tid = !c.tids.empty();
  filter.by_uid = !c.uids.empty();
  filter.by_comm = !c.comms.empty() || filter.not_comm;
  set_names(s, filter);
  if (!c.cgroup.empty()) {
    auto id = cgroup_id(c.cgroup);
    if (!id) return id.error();
    filter.by_cgroup = 1;
    filter.cgroup = *id;
  }
  filter.on = filter.by_tgid || filter.by_tid || filter.by_uid || filter.by_comm ||
              filter.by_name || filter.by_cgroup;

  // In a nested pid namespace this process sees other ids than the kernel program does.
  if (auto here = own_pid_namespace()) set_variable(s, "view_pidns", *here);
  if (!set_variable(s, "filter", &filter, sizeof filter)) return {};
  auto size = [&](std::string_view name, std::size_t entries) {
    if (auto* map = s.map(name))
      bpf_map__set_max_entries(map, static_cast<__u32>(std::max<std::size_t>(1, entries)));
  };
  size("filter_tgids", filter.follow ? max_tasks() : c.pids.size() + c.not_pids.size());
  size("filter_tids", c.tids.size());
  size("filter_uids", c.uids.size());
  size("filter_comms", c.comms.size() + c.not_comms.size());
  return {};
}

Result<void> fill_filters(Session& s, pid_t command) {
  auto add = [&](std::string_view name, const void* key) -> Result<void> {
    auto* map = s.map(name);
    std::uint8_t one = 1;
    if (map && bpf_map_update_elem(bpf_map__fd(map), key, &one, BPF_ANY))
      return Error{"cannot set the filter", strerror(errno), "name fewer ids"};
    return {};
  };
  auto fill = [&](std::string_view name, const std::vector<std::uint32_t>& ids) -> Result<void> {
    for (auto id : ids)
      if (auto r = add(name, &id); !r) return r;
    return {};
  };
  for (auto& [name, entries] : s.config.entries())
    for (auto& e : entries)
      if (auto* map = s.map(name);
          map && bpf_map_update_elem(bpf_map__fd(map), e.key.data(), e.value.data(), BPF_ANY))
        return Error{fmt::format("cannot fill the map {}", name), strerror(errno)};
  for (auto* comms : {&s.config.comms, &s.config.not_comms})
    for (auto& comm : *comms) {
      auto key = comm.substr(0, COMM_LEN - 1);
      key.resize(COMM_LEN);
      if (auto r = add("filter_comms", key.data()); !r) return r;
    }
  auto pids = s.config.not_pids.empty() ? s.config.pids : s.config.not_pids;
  if (command > 0) pids.push_back(static_cast<std::uint32_t>(command));
  if (auto r = fill("filter_tgids", pids); !r) return r.error();
  if (auto r = fill("filter_uids", s.config.uids); !r) return r.error();
  if (auto r = fill("filter_lports", s.config.local_ports); !r) return r.error();
  if (auto r = fill("filter_rports", s.config.remote_ports); !r) return r.error();
  auto fill_prefixes = [&](std::string_view name,
                           const std::vector<AddressPrefix>& prefixes) -> Result<void> {
    for (auto& prefix : prefixes) {
      address_prefix key{.bits = prefix.bits};
      std::ranges::copy(prefix.address, key.address);
      if (auto r = add(name, &key); !r) return r;
    }
    return {};
  };
  if (auto r = fill_prefixes("filter_laddrs", s.config.local_addresses); !r) return r.error();
  if (auto r = fill_prefixes("filter_raddrs", s.config.remote_addresses); !r) return r.error();
  return fill("filter_tids", s.config.tids);
}

}  // namespace coretap
