#include <dirent.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/statfs.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

/// Decodes octal escapes of mountinfo: spaces and the like are written as \040.
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i++) {
    if (text[i] == '\\' && i + 3 < text.size()) {
      out += static_cast<char>((text[i + 1] - '0') << 6 | (text[i + 2] - '0') << 3 |
                               (text[i + 3] - '0'));
      i += 3;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

std::vector<Mount> mounts_in(std::string_view mountinfo) {
  constexpr std::string_view kSecondPart = " - ";
  std::vector<Mount> all;
  while (!mountinfo.empty()) {
    auto line = take_until(mountinfo, '\n');
    const auto at = line.find(kSecondPart);
    if (at == line.npos) continue;
    auto second = line.substr(at + kSecondPart.size());
    for (int skip = 0; skip < 4; skip++) take_until(line, ' ');
    auto& mount = all.emplace_back();
    mount.directory = unescaped(take_until(line, ' '));
    mount.type = take_until(second, ' ');
    take_until(second, ' ');  // what is mounted
    mount.options = second;
  }
  return all;
}

Result<std::string> cgroup2_mount() {
  for (auto& mount : mounts_in(read_file("/proc/self/mountinfo", 4 << 20).value_or("")))
    if (mount.type == "cgroup2") return mount.directory;
  return Error{"cannot filter by cgroup", "no cgroup version 2 hierarchy is mounted",
               "mount -t cgroup2 none /some/directory, or filter by --pid", kUnsupported};
}

Result<std::string> cgroup_directory(std::string_view path) {
  std::string directory(path);
  struct statfs fs {};
  if (statfs(directory.c_str(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC) {
    auto mount = cgroup2_mount();
    if (!mount) return mount.error();
    auto below = *mount + (path.starts_with('/') ? "" : "/") + directory;
    if (statfs(below.c_str(), &fs) != 0 || fs.f_type != CGROUP2_SUPER_MAGIC)
      return Error{fmt::format("'{}' is not a cgroup", path),
                   fmt::format("no such directory in the version 2 hierarchy at {}", *mount),
                   "use the path after '0::' in /proc/PID/cgroup, or a directory under that mount",
                   kUsage};
    directory = below;
  }
  struct stat st {};
  if (stat(directory.c_str(), &st) != 0 || !S_ISDIR(st.st_mode))
    return Error{fmt::format("'{}' is not a cgroup", path), "not a directory",
                 "a cgroup is a directory, not a file in it", kUsage};
  return directory;
}

namespace {

/// True if a directory below this one has that inode number. Cgroups may be removed meanwhile.
bool has_below(const std::string& directory, std::uint64_t inode) {
  std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), closedir);
  while (auto* entry = open ? readdir(open.get()) : nullptr) {
    std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    if (entry->d_ino == inode || has_below(fmt::format("{}/{}", directory, name), inode))
      return true;
  }
  return false;
}

bool has_cgroup(const std::string& root, std::uint64_t id) {
  struct stat st {};
  return (stat(root.c_str(), &st) == 0 && st.st_ino == id) || has_below(root, id);
}

}  // namespace

Result<std::uint64_t> cgroup_id(std::string_view path_or_id) {
  if (auto id = parse_unsigned(path_or_id)) {
    auto mount = cgroup2_mount();
    if (!mount) return mount.error();
    if (has_cgroup(*mount, *id)) return *id;
    return Error{fmt::format("no cgroup has the id {}", *id),
                 fmt::format("no directory of the version 2 hierarchy at {} has it", *mount),
                 "give a path, or an id as cgroup_id in --json shows it", kUsage};
  }
  auto directory = cgroup_directory(path_or_id);
  if (!directory) return directory.error();
  // The inode number is the id; name_to_handle_at() returns the same but needs more rights.
  struct stat st {};
  if (stat(directory->c_str(), &st) != 0)
    return Error{fmt::format("'{}' is not a cgroup", path_or_id), strerror(errno)};
  return static_cast<std::uint64_t>(st.st_ino);
}

bool in_first_cgroup_namespace() {
  constexpr ino_t kFirst = 0xEFFFFFFB;  // PROC_CGROUP_INIT_INO
  struct stat st {};
  return stat("/proc/self/ns/cgroup", &st) == 0 && st.st_ino == kFirst;
}

}  // namespace coretap
