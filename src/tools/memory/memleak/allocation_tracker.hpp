// Outstanding allocations: turns the kernel program's entries and notes (bpf/memory/memleak.h) into
// one row per stack. Pure.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "memory/memleak.h"

namespace coretap {

struct Allocation {
  std::uint64_t address, bytes, time_ns;
};

struct OutstandingRow {
  std::uint64_t stack = 0;
  std::uint32_t owner = 0;  ///< 0: the kernel
  std::uint32_t tgid = 0;   ///< the process that allocated it; 0: several
  std::string comm;         ///< empty: several
  bool exited = false;      ///< not freed when the process ended
  std::uint64_t bytes = 0, count = 0;
  std::uint64_t oldest_ns = 0, newest_ns = 0;  ///< time of the allocation; 0: unknown
  std::vector<Allocation> blocks;
};

class AllocationTracker {
 public:
  struct Want {
    std::uint64_t until_ns = UINT64_MAX;  ///< only allocations made by then
    bool blocks = false;                  ///< includes the address of each one
  };

  void note(const alloc_note& note);
  /// True if there are enough notes that forget_notes() should remove those without effect.
  bool crowded() const { return ranges_kept_ >= most_; }

  /// A report: begin, all entries or all sums, finish. False: the entry can be removed, because its
  /// owner has ended or nothing is left of it.
  void begin(Want want);
  bool add(const alloc_key& key, const alloc_info& value);
  bool add(const alloc_site& site, const alloc_sum& sum);
  std::vector<OutstandingRow> finish();

  /// The same without a report.
  void begin_to_forget();
  void keep_notes_of(const alloc_key& key, const alloc_info& value);
  void forget_notes();

  /// Owners have ended since the last report: their unfreed memory must be reported.
  bool owners_ended() const { return !ended_.empty(); }

 private:
  struct UnmappedRange {
    std::uint64_t begin, end, time_ns;
    bool used;
  };
  /// The ranges of one owner.
  struct UnmappedRanges {
    std::vector<UnmappedRange> all;
    std::vector<std::uint64_t> reach;  ///< the highest end up to this range
  };
  struct OwnerEnd {
    std::uint64_t time_ns;
    bool exited;
  };

  std::vector<Allocation> left_of(const alloc_key& key, const alloc_info& value);
  /// The owner's end, if it came after the allocation.
  const OwnerEnd* end_of(std::uint32_t owner, std::uint64_t time_ns) const;
  OutstandingRow& row(std::uint64_t stack, std::uint32_t owner, bool exited);
  static void attribute(OutstandingRow& row, std::uint32_t tgid, const char* comm);

  static constexpr std::size_t kMostNotes = 1 << 18;
  Want want_;
  std::map<std::uint32_t, UnmappedRanges> unmapped_;
  std::map<std::uint32_t, OwnerEnd> ended_;
  std::map<std::tuple<std::uint64_t, std::uint32_t, bool>, OutstandingRow> rows_;
  std::size_t ranges_kept_ = 0, most_ = kMostNotes;
};

}  // namespace coretap
