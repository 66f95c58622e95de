// Free blocks of each zone (/proc/buddyinfo), and how much of them is unusable.
#pragma once
#include <linux/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "kernel/zones.hpp"

namespace coretap {

/// Free blocks of a zone, by order.
struct FreeBlocks {
  ZoneName name;
  std::vector<__u64> blocks;
};

/// /proc/buddyinfo; nothing unless each line names a zone and all have as many numbers.
std::optional<std::vector<FreeBlocks>> parse_buddyinfo(std::string_view text);

/// The part of the zone's free pages, in thousandths, that is in blocks too small for 2^order
/// pages; 1000 if none is free. Source: unusable_free_index() in the kernel's mm/vmstat.c.
std::int64_t unusable_index(const __u64* free_blocks, int orders, int order);

}  // namespace coretap
