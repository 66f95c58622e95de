#include "coretap/memory_groups.hpp"

#include <dirent.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"
#include "kernel/kernel.hpp"

namespace coretap {

namespace {

constexpr int kMostLevels = 64;  // directories below each other

/// False: the directory cannot be read. Cgroups may be removed meanwhile.
bool add_below(std::vector<MemoryGroup>& all, const std::string& directory, const std::string& path,
               int levels) {
  std::unique_ptr<DIR, int (*)(DIR*)> open(opendir(directory.c_str()), closedir);
  if (!open) return false;
  struct stat st {};
  auto text = read_file(directory + "/memory.stat");
  if (text && stat(directory.c_str(), &st) == 0)
    all.push_back({st.st_ino, path.empty() ? "/" : path, std::move(*text)});
  if (levels == 0) return true;
  while (auto* entry = readdir(open.get())) {
    std::string_view name = entry->d_name;
    if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
    auto below = "/" + std::string(name);
    add_below(all, directory + below, path + below, levels - 1);
  }
  return true;
}

bool has_option(std::string_view options, std::string_view option) {
  while (!options.empty())
    if (take_until(options, ',') == option) return true;
  return false;
}

}  // namespace

std::string memory_hierarchy(std::string_view mountinfo) {
  std::string second, first;
  for (auto& mount : mounts_in(mountinfo)) {
    if (mount.type == "cgroup" && has_option(mount.options, "memory")) {
      first = mount.directory;
    } else if (mount.type == "cgroup2") {
      auto controllers = read_file(mount.directory + "/cgroup.controllers").value_or("");
      if (std::ranges::count(words_in(controllers), "memory")) second = mount.directory;
    }
  }
  return second.empty() ? first : second;
}

Result<std::vector<MemoryGroup>> memory_groups() {
  auto mounts = read_file("/proc/self/mountinfo", 4 << 20);
  if (!mounts) return Error{"cannot read /proc/self/mountinfo", strerror(errno)};
  auto root = memory_hierarchy(*mounts);
  if (root.empty())
    return Error{"cannot report by cgroup",
                 "no cgroup hierarchy with the memory controller is mounted",
                 {},
                 kUnsupported};
  std::vector<MemoryGroup> all;
  if (!add_below(all, root, "", kMostLevels)) return Error{"cannot read " + root, strerror(errno)};
  if (all.empty())
    return Error{
        "cannot report by cgroup", "no cgroup in " + root + " has memory.stat", {}, kUnsupported};
  return all;
}

}  // namespace coretap
