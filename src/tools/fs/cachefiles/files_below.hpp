// Files below a directory, open or not, with what is cached of them by cachestat(2).
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "coretap/result.hpp"
#include "tools/fs/cachefiles/cache_row.hpp"

namespace coretap {

struct FilesBelow {
  std::vector<CacheRow> rows;  ///< those with cached pages
  std::uint64_t unread = 0;    ///< files and directories that could not be opened
};

/// An error if the kernel has no cachestat(2), which this option needs; `instead`: what to do.
Result<void> require_cachestat(const std::string& option, std::string instead);

/// Of one file system; links are not followed.
Result<FilesBelow> files_below(const std::string& directory);

/// Of an open file; nothing: not possible. Sets `cached`, in bytes, if it is not null.
std::optional<CacheRow::Details> cachestat_of(int fd, std::uint64_t* cached);

}  // namespace coretap
