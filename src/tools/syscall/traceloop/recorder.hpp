// Flight recorders of the kernel programs (bpf/syscall/record.bpf.h): made here, read through mmap
// while they are written.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/fd.hpp"
#include "base/mapped.hpp"
#include "coretap/result.hpp"
#include "syscall/traceloop.h"

struct bpf_map;

namespace coretap {

/// One CPU's slots: a ring of which the oldest are overwritten at any moment.
class RecordSegment {
 public:
  /// `size` slots, a power of two.
  RecordSegment(const record_slot* slots, std::uint32_t size, const record_head* head)
      : slots_(slots), head_(head), size_(size) {}

  /// A call with the texts that follow it, at most kMostSlots. The copy is the visitor's.
  using Visit = std::function<void(const std::vector<record_slot>& record)>;
  /// Calls since the last reading, oldest first. What is overwritten meanwhile is left out.
  void read(const Visit& visit);
  /// Calls overwritten before they were read, of those up to the last one that was.
  std::uint64_t overwritten() const { return overwritten_; }

 private:
  bool copy(std::uint64_t at, record_slot& to) const;

  const record_slot* slots_;
  const record_head* head_;
  std::uint32_t size_;
  std::uint64_t at_ = 0;     ///< number of the slot to be read next
  std::uint64_t calls_ = 0;  ///< number of the call that is expected there
  std::uint64_t overwritten_ = 0;
};

class Recorder {
 public:
  /// Before load; the descriptor is needed until then.
  static Result<Fd> configure(bpf_map* recorders, std::size_t keys, std::uint32_t slots,
                              std::uint32_t cpus);
  /// After load: recording begins.
  Result<void> open(bpf_map* recorders, std::uint64_t key, std::uint32_t slots, std::uint32_t cpus);

  std::vector<RecordSegment>& segments() { return segments_; }
  std::uint64_t overwritten() const;

 private:
  Mapped memory_;
  std::vector<RecordSegment> segments_;
};

}  // namespace coretap
