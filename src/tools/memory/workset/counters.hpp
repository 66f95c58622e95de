// The kernel's counters of refaults: of the machine, and of memory cgroups.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "coretap/result.hpp"

namespace coretap::workset {

enum Counter {
  refaulted_anon,
  refaulted_file,
  activated_anon,
  activated_file,
  restored_anon,
  restored_file,
  evicted_anon,
  evicted_file,
  evicted,
  shadow_nodes,
  kCounters
};

/// In pages; nothing: this kernel, or this version of cgroups, does not have it.
using Counters = std::array<std::optional<std::uint64_t>, kCounters>;

/// From the text of /proc/vmstat or of a cgroup's memory.stat.
Counters parse_counters(std::string_view text);
/// Of the machine.
Result<Counters> host_counters();

/// The growth of each counter; nothing where either is not known. `before`: nullptr: zeros.
Counters growth(const Counters& now, const Counters* before);
bool any(const Counters& counters);

struct Group {
  std::string path;
  Counters counters;
};
/// By id.
using Groups = std::map<std::uint64_t, Group>;
Result<Groups> read_groups();

}  // namespace coretap::workset
