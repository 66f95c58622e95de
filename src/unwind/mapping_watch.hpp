// Tells which processes map executable memory, as it happens, by the kernel's perf events.
#pragma once
#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "core/fd.hpp"
#include "coretap/result.hpp"

namespace coretap::unwind {

/// One event of no cost (PERF_COUNT_SW_DUMMY) per online CPU, for all processes. Needs CAP_PERFMON.
/// Numbers are those of the caller's pid namespace.
class MappingWatch {
 public:
  MappingWatch() = default;
  ~MappingWatch();
  MappingWatch(const MappingWatch&) = delete;
  MappingWatch& operator=(const MappingWatch&) = delete;

  Result<void> open();
  /// Of all that came since: each process once (those outside the caller's pid namespace are left
  /// out). False: some were lost, any process may have mapped something.
  bool drain(const std::function<void(pid_t tgid)>& mapped);
  /// Readable when there is something to drain.
  const std::vector<int>& descriptors() const { return descriptors_; }

 private:
  struct Ring {
    Fd event;
    void* memory = nullptr;
  };
  std::vector<Ring> rings_;
  std::vector<int> descriptors_;
  std::size_t ring_bytes_ = 0;
};

}  // namespace coretap::unwind
