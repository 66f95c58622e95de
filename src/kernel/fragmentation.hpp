// External fragmentation of a zone, as the kernel's mm/vmstat.c defines it.
#pragma once
#include <linux/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "kernel/zones.hpp"

namespace coretap {

/// Index in thousandths for an allocation of 2^order pages, from the free blocks by order:
/// towards 0 it would fail for lack of memory, towards 1000 for fragmentation; -1000: it would
/// succeed. Source: __fragmentation_index().
std::int64_t fragmentation_index(const __u64* free_blocks, int orders, int order);

/// The part of the zone's free pages, in thousandths, that lies in blocks too small for 2^order
/// pages; 1000 where none is free. Source: unusable_free_index().
std::int64_t unusable_index(const __u64* free_blocks, int orders, int order);

/// Free blocks of a zone, by order.
struct FreeBlocks {
  ZoneName name;
  std::vector<__u64> blocks;
};

/// /proc/buddyinfo; nothing unless each line names a zone and all have as many numbers.
std::optional<std::vector<FreeBlocks>> parse_buddyinfo(std::string_view text);

/// "Normal" -> "ZONE_NORMAL", as the kernel's enum zone_type writes it.
std::string zone_name(std::string_view name);

}  // namespace coretap
