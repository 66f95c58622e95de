// Shared by tests of memory.
#pragma once

#include <cctype>

#include "../fs/shared.hpp"

namespace coretap::tooltest {

// ---- page faults of a workload (faulter) ----

struct FaultedFile {
  explicit FaultedFile(std::string file) : path(std::move(file)) {
    struct stat status {};
    if (path.empty()) return;  // not mapped
    if (::stat(path.c_str(), &status)) throw std::runtime_error(path);
    inode = status.st_ino;
  }
  std::vector<Json> rows(const std::vector<Json>& all) const {
    auto own = lines_with(all, {{"inode", inode}});
    for (auto& row : own) expect_fields(row, {{"file", path}, {"area", "file"}});
    return own;
  }
  /// As many as the workload had.
  void expect(const std::vector<Json>& all, const Json& known) const {
    expect_sums(rows(all), known, {{"minor_faults", "minor"}, {"major_faults", "major"}});
  }

  std::string path;
  std::uint64_t inode = 0;
};

/// The files that it maps: a cached one, which it writes, and one that it reads from a disk.
struct FaultedFiles {
  explicit FaultedFiles(const Json& ready)
      : cached(ready["file"].str()), cold(ready["cold_file"].str()) {}
  void expect(const std::vector<Json>& rows, const Json& truth) const {
    cached.expect(rows, truth["file"]);
    cold.expect(rows, truth["cold"]);
  }

  FaultedFile cached, cold;
};

// ---- memory cgroups of a workload (reclaim) ----

/// The stalls that the cgroup counted. Version 1 counts a charge that did not fit as one more
/// failure even before a retry, or without one: only an upper bound.
inline void expect_memcg(const Json& truth, std::uint64_t stalls, std::uint64_t pages) {
  auto memcg = truth["memcg"];
  EXPECT_GT(stalls, 0u);
  if (memcg["version"].u64() == 1) {
    EXPECT_LE(stalls, memcg["failcnt"].u64());
    EXPECT_GT(pages, 0u);
  } else {
    EXPECT_EQ(stalls, memcg["max_events"].u64());
    EXPECT_GE(pages, memcg["pgsteal"].u64());
  }
}

/// For stress::Row::truth.
inline std::uint64_t memcg_stalls(stress::Load& load) {
  auto memcg = load.workload().truth()["memcg"];
  if (memcg["version"].u64() != 2) throw Skip("cgroup-1");
  return memcg["max_events"].u64();
}

// ---- slab caches ----

/// Object sizes from the kernel's table; empty: it hides the table.
inline std::map<std::string, std::uint64_t> slab_object_bytes() {
  std::map<std::string, std::uint64_t> sizes;
  for (auto& line : complete_lines(slurp("/proc/slabinfo")))
    if (auto cells = words(line); cells.size() > 3 && std::isdigit(cells[3][0]))
      sizes[cells[0]] = std::stoull(cells[3]);
  return sizes;
}

}  // namespace coretap::tooltest
