// Free blocks of each zone (/proc/buddyinfo), and their unusable share.
#pragma once
#include <linux/types.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tools/memory/extfrag/zones.hpp"

namespace coretap {

/// Free blocks of a zone, by order.
struct FreeBlocks {
  ZoneName name;
  std::vector<__u64> blocks;
};

/// Parses /proc/buddyinfo; nothing unless each line names a zone and all have the same length.
std::optional<std::vector<FreeBlocks>> parse_buddyinfo(std::string_view text);

/// The share of the zone's free pages, in thousandths, in blocks too small for 2^order pages; 1000
/// if none is free. Source: unusable_free_index() in the kernel's mm/vmstat.c.
std::int64_t unusable_index(const __u64* free_blocks, int orders, int order);

}  // namespace coretap
