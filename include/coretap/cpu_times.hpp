// Times of CPUs in each mode, from /proc/stat.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace coretap {

/// In ticks of sysconf(_SC_CLK_TCK), since the boot; iowait can shrink.
struct CpuTimes {
  int cpu = -1;  ///< -1: all
  /// As in the file, user and nice include guest and guest_nice.
  std::uint64_t user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0,
                steal = 0, guest = 0, guest_nice = 0;
};

/// Bytes of /proc/stat to read: it also lists all interrupts.
inline constexpr std::size_t kProcStat = 16 << 20;

/// First that of all, then each CPU that is online; nothing: the text is not of that form.
std::optional<std::vector<CpuTimes>> parse_cpu_times(std::string_view proc_stat);
/// Those of the system; nothing: the file cannot be read.
std::optional<std::vector<CpuTimes>> cpu_times();

}  // namespace coretap
