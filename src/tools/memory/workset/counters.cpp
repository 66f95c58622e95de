#include "tools/memory/workset/counters.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coretap/memory_groups.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap::workset {

namespace {

struct Name {
  std::string_view name;
  Counter counter;
  bool all = false;  ///< of version 1: the sum of a cgroup and those below it
};

/// Before 5.9 (170b04b7ae49) the kernel had them for files only.
constexpr Name kNames[] = {
    {"workingset_refault_anon", refaulted_anon},
    {"workingset_refault_file", refaulted_file},
    {"workingset_refault", refaulted_file},
    {"workingset_activate_anon", activated_anon},
    {"workingset_activate_file", activated_file},
    {"workingset_activate", activated_file},
    {"workingset_restore_anon", restored_anon},
    {"workingset_restore_file", restored_file},
    {"workingset_restore", restored_file},
    {"workingset_nodereclaim", shadow_nodes},
    {"pgsteal_anon", evicted_anon},
    {"pgsteal_file", evicted_file},
    {"pgsteal", evicted},
    {"total_workingset_refault_anon", refaulted_anon, true},
    {"total_workingset_refault_file", refaulted_file, true},
};

}  // namespace

Counters parse_counters(std::string_view text) {
  Counters all;
  Counters sums;  // of version 1
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    auto name = take_until(line, ' ');
    const auto* found = std::ranges::find(kNames, name, &Name::name);
    if (found == std::end(kNames)) continue;
    if (auto number = parse_unsigned(line)) (found->all ? sums : all)[found->counter] = *number;
  }
  for (int i = 0; i < kCounters; i++)
    if (sums[i]) all[i] = sums[i];
  if (!all[evicted] && all[evicted_anon] && all[evicted_file])
    all[evicted] = *all[evicted_anon] + *all[evicted_file];
  return all;
}

Result<Counters> host_counters() {
  auto text = read_file("/proc/vmstat");
  if (!text) return Error{"cannot read /proc/vmstat", strerror(errno), {}, kUnsupported};
  auto all = parse_counters(*text);
  if (!all[refaulted_file])
    return Error{"this kernel does not count refaults",
                 "/proc/vmstat has no workingset_refault",
                 {},
                 kUnsupported};
  return all;
}

Counters growth(const Counters& now, const Counters* before) {
  Counters added;
  for (int i = 0; i < kCounters; i++) {
    if (!now[i] || (before && !(*before)[i])) continue;
    // Sums over CPUs that are read one after the other may seem to shrink.
    auto old = before ? *(*before)[i] : 0;
    added[i] = *now[i] > old ? *now[i] - old : 0;
  }
  return added;
}

bool any(const Counters& counters) {
  return std::ranges::any_of(counters, [](auto& c) { return c && *c; });
}

Result<Groups> read_groups() {
  auto groups = memory_groups();
  if (!groups) return groups.error();
  Groups all;
  for (auto& g : *groups) all[g.id] = {g.path, parse_counters(g.stat)};
  return all;
}

}  // namespace coretap::workset
