// Flight recorders for the kernel programs (bpf/syscall/record.bpf.h): created here, read through
// mmap while they are written.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/mapped.hpp"
#include "coretap/fd.hpp"
#include "coretap/result.hpp"
#include "syscall/traceloop.h"

struct bpf_map;

namespace coretap {

/// One CPU's slots: a ring buffer whose oldest entries may be overwritten at any time.
class RecordSegment {
 public:
  /// `size` slots, a power of two.
  RecordSegment(const record_slot* slots, std::uint32_t size, const record_head* head)
      : slots_(slots), head_(head), size_(size) {}

  /// A copy of a call and its strings, at most kMostSlots slots.
  using Visit = std::function<void(const std::vector<record_slot>& record)>;
  /// Reads calls since the last reading, oldest first. Omits calls that are overwritten meanwhile.
  void read(const Visit& visit);
  /// Number of calls overwritten before they were read, up to the last call that was read.
  std::uint64_t overwritten() const { return overwritten_; }

 private:
  bool copy(std::uint64_t at, record_slot& to) const;

  const record_slot* slots_;
  const record_head* head_;
  std::uint32_t size_;
  std::uint64_t at_ = 0;     ///< number of the next slot to read
  std::uint64_t calls_ = 0;  ///< number of the next call
  std::uint64_t overwritten_ = 0;
};

class Recorder {
 public:
  /// Before load; keep the descriptor open until then.
  static Result<Fd> configure(bpf_map* recorders, std::size_t keys, std::uint32_t slots,
                              std::uint32_t cpus);
  /// After load: starts recording.
  Result<void> open(bpf_map* recorders, std::uint64_t key, std::uint32_t slots, std::uint32_t cpus);

  std::vector<RecordSegment>& segments() { return segments_; }
  std::uint64_t overwritten() const;

 private:
  Mapped memory_;
  std::vector<RecordSegment> segments_;
};

}  // namespace coretap
