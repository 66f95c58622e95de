// Counters and settings of the kernel that rules look at, from /proc and the files of cgroups.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace coretap::why {

using Counters = std::map<std::string, double, std::less<>>;

/// The directories of a cgroup and of those above it, innermost first, by controller ("cpu",
/// "memory", "io"): of version 2, or of a controller of version 1.
struct CgroupFiles {
  std::map<std::string, std::vector<std::string>, std::less<>> directories;

  static CgroupFiles of_process(std::uint32_t pid);
  static CgroupFiles of_path(const std::string& path);  ///< version 2, below the mount
};

/// Totals since boot. Names: "vmstat.KEY", "tcp.KEY", "udp.KEY", "disk.NAME.KEY" (ms for times),
/// "cpu.N.idle_s", "processes", "psi.RESOURCE.some_us", "cgroup.KEY" of the innermost directory
/// with a limit. Those of networks are of the namespace of process `pid`; 0: of this one.
Counters read_counters(const CgroupFiles& cgroup, std::uint32_t pid = 0);
/// The growth of each; what only one has is left out.
Counters growth(const Counters& from, const Counters& to);

/// "cpu.max", "memory.max", "memory.high", "io.max", and "cgroup.cpu": the directory of that limit.
std::map<std::string, std::string, std::less<>> read_settings(const CgroupFiles& cgroup);

}  // namespace coretap::why
