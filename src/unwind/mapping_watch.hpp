// Tells which processes map executable memory, as it happens, by the kernel's perf events.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "base/fd.hpp"
#include "coretap/result.hpp"

namespace coretap::unwind {

/// One event of no cost (PERF_COUNT_SW_DUMMY) per online CPU, for all processes. Needs CAP_PERFMON.
/// Numbers are those of the caller's pid namespace.
///
/// Told of: mmap, mprotect that makes executable, exec (the program, its loader, the vdso).
/// Not told of: munmap, mremap, fork (a child has its parent's mappings), and what happens on CPUs
/// that come online after open(), those that were offline in between too. What a vfork() child maps
/// into its parent's memory comes under its own number.
class MappingWatch {
 public:
  MappingWatch() = default;
  ~MappingWatch() { close(); }
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

  Result<void> open();
  /// Of all that came since: each process once (those outside the caller's pid namespace are left
  /// out). False: some were lost, or may have been; any process may have mapped something.
  bool drain(const std::function<void(pid_t tgid)>& mapped);
  /// Readable when a quarter of a ring is full. The kernel reports it once: drain then, or be not
  /// told again before the next mapping.
  const std::vector<int>& descriptors() const { return descriptors_; }

 private:
  struct Ring {
    Fd event;
    void* memory = nullptr;  ///< a page of numbers, then the records
  };
  void close();
  bool drain(const Ring& ring);

  std::vector<Ring> rings_;
  std::vector<int> descriptors_;
  std::vector<pid_t> processes_;  // of one drain()
  std::size_t page_ = 0, data_ = 0;
};

}  // namespace coretap::unwind
