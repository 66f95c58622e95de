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
#include <map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/loop.hpp"
#include "lib/net/flow.h"
#include "program/file_identity.hpp"
#include "program/maps.hpp"
#include "program/session.hpp"
#include "program/variables.hpp"

namespace coretap {

namespace {

constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO

std::vector<address_prefix> keys_of(const std::vector<AddressPrefix>& prefixes) {
  std::vector<address_prefix> keys;
  for (auto& prefix : prefixes)
    std::ranges::copy(prefix.address, keys.emplace_back(address_prefix{prefix.bits}).address);
  return keys;
}

/// The filters' maps, by name, and the keys in them.
std::map<std::string, std::vector<std::string>> filter_keys(const Session& s) {
  std::map<std::string, std::vector<std::string>> all;
  auto add = [&](const char* map, const auto& list) {
    for (auto& key : list) all[map].emplace_back(reinterpret_cast<const char*>(&key), sizeof key);
  };
  auto& tasks = s.config.tasks;
  auto& flows = s.config.flows;
  std::vector<std::array<char, COMM_LEN>> comms;
  for (auto* names : {&tasks.comms, &tasks.not_comms})
    for (auto& name : *names) name.copy(comms.emplace_back().data(), COMM_LEN - 1);
  add("filter_comms", comms);
  add("filter_tgids", tasks.not_pids.empty() ? tasks.pids : tasks.not_pids);
  if (s.command > 0) add("filter_tgids", std::array{s.command});
  add("filter_tids", tasks.tids);
  add("filter_uids", tasks.uids);
  add("filter_lports", flows.local_ports);
  add("filter_rports", flows.remote_ports);
  add("filter_laddrs", keys_of(flows.local_addresses));
  add("filter_raddrs", keys_of(flows.remote_addresses));
  return all;
}

/// Command-name substrings as bit sets: a bit for each byte of each part
/// (bpf/lib/core/filter.bpf.h).
void set_names(Session& s, const std::vector<std::string>& names, task_filter& filter) {
  std::array<std::uint64_t, 256> places{};
  std::uint64_t place = 1;  // bit of the next byte
  for (auto& part : names) {
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

/// Removes ids of tasks that do not exist, as new tasks may reuse them; an error if none is left.
Result<std::vector<std::string>> leave_out_dead(std::vector<std::uint32_t>& ids,
                                                std::string_view option, std::string_view what) {
  std::vector<std::string> notes;
  auto named = ids.size();
  std::erase_if(ids, [&](auto id) {
    if (kill(static_cast<pid_t>(id), 0) == 0 || errno == EPERM) return false;
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

Result<std::vector<std::string>> find_tasks(Config::Tasks& tasks) {
  auto notes = leave_out_dead(tasks.pids, "pid", "process");
  if (!notes) return notes;
  for (auto pid : tasks.pids)
    if (access(fmt::format("/proc/{}/status", pid).c_str(), F_OK) == 0 &&
        access(fmt::format("/proc/{0}/task/{0}", pid).c_str(), F_OK) != 0)
      return Error{
          fmt::format("--pid {}: is a thread, not a process", pid), {}, "use --tid", kUsage};
  auto threads = leave_out_dead(tasks.tids, "tid", "thread");
  if (!threads) return threads;
  notes->insert(notes->end(), threads->begin(), threads->end());
  return notes;
}

std::optional<ino_t> own_pid_namespace() {
  struct stat st {};
  if (stat("/proc/self/ns/pid", &st) || st.st_ino == kFirstPidNamespace) return {};
  return st.st_ino;
}

Result<void> configure_filters(Session& s) {
  auto& tasks = s.config.tasks;
  set_variable(s, "filter_ip", s.config.flows.ip);
  set_variable(s, "filter_netns", s.config.flows.netns);
  for (auto& [name, entries] : s.config.entries())
    if (auto* map = s.map_named(name.c_str())) set_entries(map, entries.size());
  task_filter filter{};
  filter.not_tgid = !tasks.not_pids.empty();
  filter.not_comm = !tasks.not_comms.empty();
  filter.by_tgid = !tasks.pids.empty() || filter.not_tgid || s.command > 0;
  filter.follow = s.command > 0;
  filter.by_tid = !tasks.tids.empty();
  filter.by_uid = !tasks.uids.empty();
  filter.by_comm = !tasks.comms.empty() || filter.not_comm;
  set_names(s, tasks.names, filter);
  if (!tasks.cgroup.empty()) {
    auto id = cgroup_id(tasks.cgroup);
    if (!id) return id.error();
    filter.by_cgroup = 1;
    filter.cgroup = *id;
  }
  filter.on = filter.by_tgid || filter.by_tid || filter.by_uid || filter.by_comm ||
              filter.by_name || filter.by_cgroup;

  set_file_identity(s);
  // In a nested pid namespace this process sees other ids than the kernel program does.
  if (auto here = own_pid_namespace()) set_variable(s, "view_pidns", *here);
  set_variable(s, "filter", &filter, sizeof filter);
  for (auto& [name, keys] : filter_keys(s))
    if (auto* map = s.map_named(name.c_str())) {
      set_entries(map, keys.size());
      set_variable(s, name + "_on", 1);  // of flows
    }
  if (auto* map = s.map(MapName("filter_tgids")); map && filter.follow)
    set_entries(map, max_tasks());
  return {};
}

Result<void> fill_filters(Session& s) {
  for (auto& [name, entries] : s.config.entries())
    for (auto& e : entries)
      if (auto* map = s.map_named(name.c_str());
          map && bpf_map_update_elem(bpf_map__fd(map), e.key.data(), e.value.data(), BPF_ANY))
        return Error{fmt::format("cannot fill the map {}", name), strerror(errno)};
  const std::uint8_t one = 1;
  for (auto& [name, keys] : filter_keys(s))
    for (auto& key : keys)
      if (auto* map = s.map_named(name.c_str());
          map && bpf_map_update_elem(bpf_map__fd(map), key.data(), &one, BPF_ANY))
        return Error{"cannot set the filter", strerror(errno), "name fewer ids"};
  return {};
}

}  // namespace coretap
