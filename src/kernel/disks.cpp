#include "coretap/disks.hpp"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <iterator>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/recall.hpp"
#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

constexpr std::uint32_t device_number(unsigned major, unsigned minor) {
  return major << 20 | minor;
}

std::optional<std::uint32_t> parse_numbers(const std::string& text) {
  std::string_view words = text;
  while (words.ends_with('\n')) words.remove_suffix(1);
  auto colon = words.find(':');
  if (colon == words.npos) return std::nullopt;
  auto major = parse_unsigned(words.substr(0, colon)),
       minor = parse_unsigned(words.substr(colon + 1));
  if (!major || !minor || *major >= 1u << 12 || *minor >= 1u << 20) return std::nullopt;
  return device_number(static_cast<unsigned>(*major), static_cast<unsigned>(*minor));
}

Error partition(std::string_view name) {
  return {fmt::format("'{}' is a partition, not a disk", name),
          {},
          "requests belong to whole disks: name the disk",
          kUsage};
}

template <class Visit>
void each_disk(Visit visit) {
  DIR* dir = opendir("/sys/block");
  if (!dir) return;
  while (auto* entry = readdir(dir))
    if (entry->d_name[0] != '.') visit(std::string(entry->d_name));
  closedir(dir);
}

/// Visits the disks in /proc/diskstats, which also has disks that are hidden elsewhere: paths of
/// NVMe disks. Stops when `visit` returns true.
template <class Visit>
void each_listed(Visit visit) {
  auto text = read_file("/proc/diskstats");
  std::string_view rest = text ? std::string_view(*text) : std::string_view();
  auto word = [](std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    return take_until(line, ' ');
  };
  while (!rest.empty()) {
    auto line = take_until(rest, '\n');
    auto major = parse_unsigned(word(line)), minor = parse_unsigned(word(line));
    if (major && minor &&
        visit(device_number(static_cast<unsigned>(*major), static_cast<unsigned>(*minor)),
              word(line)))
      return;
  }
}

std::optional<std::uint32_t> listed_number(std::string_view wanted) {
  std::optional<std::uint32_t> found;
  each_listed([&](std::uint32_t number, std::string_view name) {
    if (name == wanted) found = number;
    return found.has_value();
  });
  return found;
}

/// "nvme0n1" -> nvme0c0n1, nvme0c1n1
std::set<std::string> paths_of(std::string_view disk) {
  std::set<std::string> paths;
  auto middle = disk.rfind('n');
  if (!disk.starts_with("nvme") || middle == disk.npos || middle < 5) return paths;
  auto begin = fmt::format("{}c", disk.substr(0, middle)), end = std::string(disk.substr(middle));
  each_disk([&](const std::string& other) {
    if (other.starts_with(begin) && other.ends_with(end)) paths.insert(other);
  });
  return paths;
}

/// The name of a device number, which is returned if there is none.
std::string current_name(std::uint32_t device, const std::string& numbers) {
  char target[PATH_MAX];
  auto n = readlink(("/sys/dev/block/" + numbers).c_str(), target, sizeof target - 1);
  if (n <= 0) {
    auto name = numbers;
    each_listed([&](std::uint32_t number, std::string_view listed) {
      if (number == device) name = listed;
      return number == device;
    });
    return name;
  }
  std::string_view path(target, static_cast<std::size_t>(n));
  std::string name(path.substr(path.rfind('/') + 1));
  std::replace(name.begin(), name.end(), '!', '/');
  return name;
}

}  // namespace

Result<std::uint32_t> find_disk(std::string_view name_or_numbers) {
  std::string name(name_or_numbers);
  if (name.starts_with("/dev/")) name.erase(0, 5);
  std::replace(name.begin(), name.end(), '/', '!');  // sysfs writes cciss/c0d0 with !
  if (auto number = parse_numbers(name)) {
    auto device = fmt::format("/sys/dev/block/{}", name);
    if (access((device + "/partition").c_str(), F_OK) == 0) return partition(name_or_numbers);
    if (access(device.c_str(), F_OK) == 0) return *number;
  } else if (!name.empty() && name.find("..") == std::string::npos) {
    if (auto text = read_file("/sys/block/" + name + "/dev", 64))
      if (auto found = parse_numbers(*text)) return *found;
    if (access(("/sys/block/" + name).c_str(), F_OK) == 0)
      if (auto found = listed_number(name)) return *found;
    if (access(("/sys/class/block/" + name + "/partition").c_str(), F_OK) == 0)
      return partition(name_or_numbers);
  }
  std::string disks;
  each_disk([&](const std::string& disk) { disks += (disks.empty() ? "" : ", ") + disk; });
  return Error{fmt::format("there is no disk '{}'", name_or_numbers),
               {},
               disks.empty() ? "/sys/block is empty" : "there are: " + disks,
               kUsage};
}

Result<std::uint32_t> disk_of_requests(std::uint32_t device) {
  namespace fs = std::filesystem;
  const auto name = disk_name(device);
  const fs::path disk = "/sys/block/" + name;
  std::error_code error;
  // All request-based drivers have blk-mq queues since 5.0 (a1ce35fa4985).
  if (!fs::exists(disk, error) || fs::exists(disk / "mq", error)) return device;
  auto below = paths_of(name);
  if (below.size() == 1)
    if (auto path = listed_number(*below.begin())) return *path;
  for (fs::directory_iterator at(disk / "slaves", error), end; !error && at != end;
       at.increment(error)) {
    std::error_code gone;
    auto lower = fs::canonical(at->path(), gone);
    below.insert((fs::exists(lower / "partition", gone) ? lower.parent_path() : lower).filename());
  }
  return Error{fmt::format("'{}' has no requests: its driver handles bios itself", name),
               {},
               below.empty()
                   ? "requests are those of other disks; filetop shows reads and writes of files"
                   : fmt::format("name a disk below it: {}", fmt::join(below, ", ")),
               kUsage};
}

std::string disk_name(std::uint32_t device) {
  auto numbers = fmt::format("{}:{}", device >> 20, device & 0xfffff);
  return recalled(Ask::disk, numbers, [&] { return current_name(device, numbers); });
}

std::uint64_t disks() {
  std::uint64_t count = 0;
  each_disk([&](const std::string&) { count++; });
  return count;
}

std::uint64_t block_requests() {
  std::uint64_t sum = 0;
  each_disk([&](const std::string& disk) {
    auto base = "/sys/block/" + disk;
    auto per_queue = read_number(base + "/queue/nr_requests").value_or(0);
    std::uint64_t queues = 0;
    if (DIR* dir = opendir((base + "/mq").c_str())) {
      while (auto* entry = readdir(dir)) queues += entry->d_name[0] != '.';
      closedir(dir);
    }
    // A scheduler has a tag set in addition to the driver's.
    sum += 2 * static_cast<std::uint64_t>(per_queue) * std::max<std::uint64_t>(queues, 1);
  });
  return sum;
}

// Since 5.16 (8a7d267b4a2d) tracepoints have a blk_status_t, whose values up to 13 have never
// changed; before, a negative errno.
Value block_error(std::int32_t status) {
  static constexpr int kErrors[] = {0,         EOPNOTSUPP, ETIMEDOUT, ENOSPC, ENOLINK,
                                    EREMOTEIO, EBADE,      ENODATA,   EILSEQ, ENOMEM,
                                    EIO,       EREMCHG,    EAGAIN,    EBUSY};
  if (!status) return {};
  if (status < 0) return -std::int64_t{status};
  if (static_cast<std::size_t>(status) < std::size(kErrors)) return std::int64_t{kErrors[status]};
  return fmt::format("status {}", status);
}

}  // namespace coretap
