// External fragmentation of a zone, as the kernel's mm/vmstat.c defines it.
#pragma once
#include <linux/types.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace coretap {

/// Index in thousandths for an allocation of 2^order pages, from the free blocks by order: towards
/// 0 it would fail for lack of memory, towards 1000 because of fragmentation; -1000: it would
/// succeed. Source: __fragmentation_index().
std::int64_t fragmentation_index(const __u64* free_blocks, int orders, int order);

/// "Normal" -> "ZONE_NORMAL", as in the kernel's enum zone_type.
std::string zone_name(std::string_view name);

}  // namespace coretap
