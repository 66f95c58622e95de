// A row of cachefiles.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace coretap {

/// A file, the files of a directory, or what is in the cache without being open.
struct CacheRow {
  enum Kind { file, device, others, unread, rest, rest_of_devices } kind = file;
  std::uint64_t cached = 0;  ///< bytes
  std::uint64_t size = 0, inode = 0, files = 0, processes = 0;
  std::uint64_t mapping = 0, open_inode = 0;
  std::uint32_t number = 0;  ///< of the device, in the kernel's form
  std::uint32_t pid = 0, fd = 0, flags = 0;
  std::string comm, fs, path;
  std::uint64_t owner = 0;  ///< id of the cgroup that most of its pages are charged to; 0: none
  std::uint32_t owned = 0, looked = 0;  ///< pages: of this cgroup, and of any
  /// Of cachestat(2), in bytes; nothing: not asked for, or not known.
  struct Details {
    std::uint64_t dirty, writeback, evicted, recently_evicted;
  };
  std::optional<Details> details = {};

  bool one() const { return kind == file || kind == device; }
};

}  // namespace coretap
