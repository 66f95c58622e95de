#include "kernel/load_averages.hpp"

#include <cinttypes>
#include <cstdio>

#include <fmt/format.h>

#include "base/files.hpp"

namespace coretap {

Result<LoadAverages> load_averages(const std::string& path) {
  LoadAverages a;
  auto text = read_file(path);
  if (!text || sscanf(text->c_str(), "%lf %lf %lf %" SCNu64 "/%" SCNu64, &a.one, &a.five,
                      &a.fifteen, &a.running, &a.total) != 5)
    return Error{fmt::format("cannot read {}", path),
                 text ? "it is not of the usual form" : "there is no such file",
                 {},
                 kUnsupported};
  return a;
}

std::string load_line(const LoadAverages& a) {
  return fmt::format("load averages: {:.2f} {:.2f} {:.2f}", a.one, a.five, a.fifteen);
}

std::string load_summary(const LoadAverages& a) {
  return fmt::format("{} runnable: {} uninterruptible: {}", load_line(a), a.runnable,
                     a.uninterruptible);
}

std::vector<Field> load_average_fields() {
  return {
      field<&LoadAverages::one>("load_1m", "", as::number, "load average of the last minute"),
      field<&LoadAverages::five>("load_5m", "", as::number, "load average of five minutes"),
      field<&LoadAverages::fifteen>("load_15m", "", as::number, "load average of fifteen minutes"),
      field<&LoadAverages::runnable>("runnable_tasks", "", as::number,
                                     "runnable tasks that the filters want, running ones included"),
      field<&LoadAverages::uninterruptible>("uninterruptible_tasks", "", as::number,
                                            "uninterruptible tasks that the filters want"),
      field<&LoadAverages::running>("system_running", "", as::number,
                                    "runnable tasks as /proc/loadavg counts them, of the machine"),
      field<&LoadAverages::total>("system_tasks", "", as::number,
                                  "tasks as /proc/loadavg counts them, of the machine"),
  };
}

}  // namespace coretap
