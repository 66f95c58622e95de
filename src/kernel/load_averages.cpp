#include "coretap/load_averages.hpp"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "coretap/small_files.hpp"

namespace coretap {

Result<LoadAverages> load_averages(const std::string& path) {
  LoadAverages a;
  auto text = read_file(path);
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  auto take = [&](auto& value, char after) {
    auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), value);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    if (error != std::errc() || !rest.starts_with(after)) return false;
    rest.remove_prefix(1);
    return true;
  };
  if (!take(a.one, ' ') || !take(a.five, ' ') || !take(a.fifteen, ' ') || !take(a.running, '/') ||
      !take(a.total, ' '))
    return Error{fmt::format("cannot read {}", path),
                 text ? "it is not of the usual form" : strerror(errno),
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
  std::vector<Field> all = {
      field<&LoadAverages::one>("load_1m", "", as::number, "load average of the last minute"),
      field<&LoadAverages::five>("load_5m", "", as::number, "load average of five minutes"),
      field<&LoadAverages::fifteen>("load_15m", "", as::number, "load average of fifteen minutes"),
      field<&LoadAverages::runnable>(
          "runnable_tasks", "", as::number,
          "runnable tasks that pass the filters, including running ones"),
      field<&LoadAverages::uninterruptible>("uninterruptible_tasks", "", as::number,
                                            "uninterruptible tasks that pass the filters"),
      field<&LoadAverages::running>("system_running", "", as::number,
                                    "runnable tasks of the machine, as in /proc/loadavg"),
      field<&LoadAverages::total>("system_tasks", "", as::number,
                                  "tasks of the machine, as in /proc/loadavg"),
  };
  for (auto& f : all) f = f.gauge();
  return all;
}

}  // namespace coretap
