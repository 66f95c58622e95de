// State of zones: free blocks by migrate type, watermarks, and how the kernel gets a block.
#pragma once
#include <linux/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/memory/extfrag/buddyinfo.hpp"

namespace coretap {

/// Free blocks of a zone that have one migrate type, by order.
struct TypeBlocks {
  ZoneName name;
  std::string type;  ///< "Unmovable"
  std::vector<__u64> blocks;
  /// The kernel stopped counting these: there are more.
  std::vector<bool> more;
  /// Of unmovable blocks: all free blocks of the zone below this order are unmovable, and there are
  /// some; 0: that is not so.
  std::uint32_t alone_below = 0;
};

/// Parses the free blocks of /proc/pagetypeinfo; nothing if it is not of the usual form.
std::optional<std::vector<TypeBlocks>> parse_pagetypeinfo(std::string_view text);

/// Free memory of a zone against its watermarks, in pages.
struct Watermarks {
  ZoneName name;
  std::uint64_t free = 0, min = 0, low = 0, high = 0;
};

/// Zones with memory in /proc/zoneinfo; nothing if a number is invalid or missing.
std::optional<std::vector<Watermarks>> parse_watermarks(std::string_view text);

/// The first step that serves an allocation in this zone.
enum class Step : std::uint8_t {
  enough,   ///< a free block, and free memory above the low watermark
  kswapd,   ///< a free block; free memory is between the min and the low watermark
  compact,  ///< direct compaction
  reclaim,  ///< direct reclaim
};
std::string_view step_name(Step step);

/// For each order; `threshold`: vm.extfrag_threshold, nothing in kernels without compaction.
/// Sources: __zone_watermark_ok(), __compaction_suitable() and compaction_suitable() in the
/// kernel's mm/page_alloc.c and mm/compaction.c.
std::vector<Step> steps_of(const Watermarks& zone, const std::vector<__u64>& blocks,
                           std::optional<std::int64_t> threshold);

/// "0-3 enough, 4-10 compact".
std::string in_ranges(const std::vector<Step>& steps);

}  // namespace coretap
