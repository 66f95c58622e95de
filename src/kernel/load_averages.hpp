// The load averages, as /proc/loadavg has them.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "coretap/fields.hpp"
#include "coretap/result.hpp"

namespace coretap {

struct LoadAverages {
  double one = 0, five = 0, fifteen = 0;  ///< minutes
  std::uint64_t running = 0, total = 0;   ///< tasks that are runnable, and all

  // Not of the file: of the tasks that a tool shows.
  std::uint64_t runnable = 0, uninterruptible = 0;
};

/// Of a file of this form.
Result<LoadAverages> load_averages(const std::string& path = "/proc/loadavg");

/// "load averages: 0.52 0.41 0.38"
std::string load_line(const LoadAverages& averages);
/// The same with the tasks that are shown.
std::string load_summary(const LoadAverages& averages);

/// Of LoadAverages.
std::vector<Field> load_average_fields();

}  // namespace coretap
