#include "tools/syscall/traceloop/recorded_cgroups.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <numeric>
#include <system_error>

#include "kernel/kernel.hpp"
#include "syscall/traceloop.h"

namespace coretap {

namespace {

/// The depth of a directory below its mount point.
std::uint32_t depth_in_mount(std::filesystem::path directory) {
  struct stat here {
  }, above{};
  std::uint32_t depth = 0;
  for (;
       stat(directory.c_str(), &here) == 0 && stat(directory.parent_path().c_str(), &above) == 0 &&
       here.st_dev == above.st_dev && here.st_ino != above.st_ino;
       directory = directory.parent_path())
    depth++;
  return depth;
}

/// Adds existing descendants; a cgroup created later is recorded with its parent.
void add_cgroups_below(std::vector<RecordedCgroup>& cgroups) {
  auto named = cgroups;
  for (auto& cgroup : named) {
    auto directory = cgroup_directory(cgroup.name);
    if (!directory) continue;
    std::error_code error;
    for (std::filesystem::recursive_directory_iterator it(*directory, error), end;
         !error && it != end; it.increment(error)) {
      std::error_code gone;
      if (!it->is_directory(gone)) continue;
      auto id = cgroup_id(it->path().string());
      auto below = it->path().string().substr(directory->size());
      if (id)
        cgroups.push_back(
            {*id, cgroup.name + below, cgroup.level + static_cast<std::uint32_t>(it.depth()) + 1});
    }
  }
}

}  // namespace

Result<void> find_cgroups(std::vector<RecordedCgroup>& cgroups, bool recursive) {
  for (auto& cgroup : cgroups) {
    auto directory = cgroup_directory(cgroup.name);
    if (!directory) return directory.error();
    auto id = cgroup_id(*directory);
    if (!id) return id.error();
    std::error_code ignored;
    cgroup.id = *id;
    cgroup.level = depth_in_mount(std::filesystem::canonical(*directory, ignored));
  }
  if (recursive) add_cgroups_below(cgroups);
  return {};
}

std::vector<std::uint32_t> cgroup_levels(const std::vector<RecordedCgroup>& cgroups) {
  std::vector<std::uint32_t> levels;
  levels.reserve(cgroups.size());
  for (auto& c : cgroups) levels.push_back(c.level);
  if (std::any_of(levels.begin(), levels.end(), [](auto l) { return l >= RECORD_LEVELS; }) ||
      !in_first_cgroup_namespace()) {
    levels.resize(RECORD_LEVELS);
    std::iota(levels.begin(), levels.end(), 0);
  }
  std::sort(levels.begin(), levels.end(), std::greater<>());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

}  // namespace coretap
