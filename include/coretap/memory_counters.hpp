// The kernel's own counters of reclaim, compaction and huge pages, from /proc/vmstat.
#pragma once
#include "coretap/reports.hpp"

namespace coretap {

enum class MemoryCounters {
  reclaim,     ///< reclaim, swap, compaction, migration, huge pages
  huge_pages,  ///< huge pages, and the compaction and migration that make them
};

/// A row for each counter that grew since the previous report, in the order of the file.
template <MemoryCounters Which>
SnapshotReport memory_counters();

}  // namespace coretap
