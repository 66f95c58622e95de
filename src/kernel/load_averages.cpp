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

}  // namespace coretap
