#include "tools/fs/cachefiles/files_below.hpp"

#include <fts.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "coretap/kernel.hpp"
#include "symbols/process_files.hpp"

namespace coretap {

namespace {

// cachestat(2): 6.5 (cf264e1329fb).
constexpr long kCachestat = 451;  // on all machines
struct CacheRange {
  std::uint64_t offset = 0, length = 0;  // all of the file
};
struct CacheCounts {
  std::uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

/// File systems whose files are made by the kernel when they are read; opening one may have an
/// effect.
constexpr long kMadeByKernel[] = {
    PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC, TRACEFS_MAGIC,  SECURITYFS_MAGIC,
    CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,  PSTOREFS_MAGIC, EFIVARFS_MAGIC};

/// In the kernel's form.
std::uint32_t device_number(dev_t device) { return major(device) << 20 | minor(device); }

void take(const FTSENT& entry, FilesBelow& to) {
  if (entry.fts_statp->st_size == 0) return;
  const auto handle = symbols::open_handle(entry.fts_path, false);
  const auto file = symbols::open_regular(handle, UINT64_MAX);
  CacheRow row{.kind = CacheRow::file};
  if (!file || !(row.details = cachestat_of(file.get(), &row.cached))) {
    to.unread++;
    return;
  }
  if (!row.cached && !row.details->evicted) return;
  row.size = static_cast<std::uint64_t>(entry.fts_statp->st_size);
  row.inode = entry.fts_statp->st_ino;
  row.number = device_number(entry.fts_statp->st_dev);
  row.path = entry.fts_path;
  row.files = 1;
  to.rows.push_back(std::move(row));
}

}  // namespace

Result<void> require_cachestat(const std::string& option, std::string instead) {
  if (syscall(kCachestat, -1, nullptr, nullptr, 0) == 0 || errno != ENOSYS) return {};
  return Error{option + " is not possible here", "cachestat(2) came with Linux 6.5",
               std::move(instead), kUnsupported};
}

std::optional<CacheRow::Details> cachestat_of(int fd, std::uint64_t* cached) {
  static const auto page = page_bytes();
  const CacheRange all;
  CacheCounts counts{};
  if (syscall(kCachestat, fd, &all, &counts, 0) != 0) return {};
  if (cached) *cached = counts.cached * page;
  return CacheRow::Details{counts.dirty * page, counts.writeback * page, counts.evicted * page,
                           counts.recently_evicted * page};
}

Result<FilesBelow> files_below(const std::string& directory) {
  if (auto r = require_cachestat("--below", "fincore(1) shows how much of single files is cached");
      !r)
    return r.error();
  const std::unique_ptr<char, void (*)(void*)> path(realpath(directory.c_str(), nullptr),
                                                    std::free);
  struct statfs fs {};
  struct stat st {};
  if (!path || stat(path.get(), &st) != 0 || statfs(path.get(), &fs) != 0)
    return Error{fmt::format("--below: cannot read {}", directory), strerror(errno), {}, kUsage};
  if (std::ranges::count(kMadeByKernel, static_cast<long>(fs.f_type)))
    return usage(
        fmt::format("--below: the kernel makes the files of {}: none is cached", directory));
  char* const roots[] = {path.get(), nullptr};
  const std::unique_ptr<FTS, int (*)(FTS*)> walk(
      fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, nullptr), fts_close);
  if (!walk) return Error{fmt::format("--below: cannot read {}", directory), strerror(errno)};
  FilesBelow all;
  errno = 0;
  while (auto* entry = fts_read(walk.get())) {
    if (entry->fts_info == FTS_F && S_ISREG(entry->fts_statp->st_mode))
      take(*entry, all);
    else if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
      all.unread++;
    errno = 0;
  }
  if (errno)
    return Error{fmt::format("--below: cannot read all of {}", directory), strerror(errno)};
  return all;
}

}  // namespace coretap
