// Reports which processes map executable memory, as it happens, from perf events.
#pragma once
#include <sys/types.h>

#include <cstddef>
#include <functional>
#include <vector>

#include "base/mapped.hpp"
#include "coretap/fd.hpp"
#include "coretap/result.hpp"

namespace coretap::unwind {

/// One dummy event (PERF_COUNT_SW_DUMMY), which costs nothing, per online CPU for all processes.
/// Needs CAP_PERFMON. Process ids are those of the caller's pid namespace.
///
/// Reported: mmap, mprotect that makes executable, exec (the program, its loader, the vdso).
/// Not reported: munmap, mremap, fork (a child has its parent's mappings), and events on CPUs that
/// come online after open(), even if they were only offline in between. Mappings that a vfork()
/// child makes in its parent's memory are reported with the child's id.
class MappingWatch {
 public:
  Result<void> open();
  /// Calls back once for each process since the last call (except those outside the caller's pid
  /// namespace). False: records were or may have been lost; any process may have mapped something.
  bool drain(const std::function<void(pid_t tgid)>& mapped);
  /// Readable when a quarter of a ring is full. The kernel reports this once: drain then, or the
  /// next report comes only with the next mapping.
  const std::vector<int>& descriptors() const { return descriptors_; }

 private:
  struct Ring {
    Fd event;
    Mapped memory;  ///< the control page, then the records
  };
  bool drain(const Ring& ring);

  std::vector<Ring> rings_;
  std::vector<int> descriptors_;
  std::vector<pid_t> processes_;  // of one drain()
  std::size_t page_ = 0, data_ = 0;
};

}  // namespace coretap::unwind
