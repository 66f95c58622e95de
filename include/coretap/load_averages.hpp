// The load averages of /proc/loadavg.
#pragma once
#include <cstdint>
#include <string>

#include "coretap/result.hpp"

namespace coretap {

struct LoadAverages {
  double one = 0, five = 0, fifteen = 0;  ///< minutes
  std::uint64_t running = 0, total = 0;   ///< runnable tasks, and all tasks

  // Not from the file: numbers of tasks that a tool shows.
  std::uint64_t runnable = 0, uninterruptible = 0;
};

/// Reads a file in this format.
Result<LoadAverages> load_averages(const std::string& path = "/proc/loadavg");

/// "load averages: 0.52 0.41 0.38"
std::string load_line(const LoadAverages& averages);
/// The same with the numbers of tasks that are shown.
std::string load_summary(const LoadAverages& averages);

}  // namespace coretap
