// File locks as the kernel lists them in /proc/locks.
#pragma once
#include <cstdint>
#include <map>
#include <string_view>

namespace coretap::blocked {

struct FileLock {
  std::uint32_t holder = 0;  ///< process; 0: not known (locks of open files)
  std::uint64_t inode = 0;
  std::uint32_t kind = 0;  ///< enum blocked_kind
};

/// The locks that processes wait for, by the waiting process.
std::map<std::uint32_t, FileLock> awaited_locks(std::string_view proc_locks);

}  // namespace coretap::blocked
