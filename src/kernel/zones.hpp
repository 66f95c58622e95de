// Memory zones of this machine, and where in physical memory they lie.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/result.hpp"
#include "lib/shared.h"

namespace coretap {

struct ZoneName {
  std::uint32_t node = 0;
  std::string zone;  ///< "Normal"
};

/// Takes "Node 0, zone   Normal" from the front of a line; nothing if it does not begin so.
std::optional<ZoneName> take_zone(std::string_view& line);

/// A zone and the page frames that it spans; there may be holes, and other zones in them.
struct Zone {
  ZoneName name;
  std::uint64_t first = 0, end = 0;
};

/// Zones that have memory, of /proc/zoneinfo; nothing if a number in it is none.
std::optional<std::vector<Zone>> parse_zoneinfo(std::string_view text);

class Zones {
 public:
  explicit Zones(std::vector<Zone> zones);

  const std::vector<Zone>& all() const { return zones_; }
  /// Where several span it (nodes that take turns in memory), the smallest; nullptr: none does.
  const Zone* of(std::uint64_t pfn) const;
  /// Where zones of this node and name lie, in order; nothing, "": any.
  std::vector<pfn_range> ranges(std::optional<std::uint32_t> node, std::string_view zone) const;

 private:
  struct Part {
    std::uint64_t first, end;
    std::size_t zone;
  };
  std::vector<Zone> zones_;
  std::vector<Part> parts_;  ///< in order, apart from each other
};

/// Of this machine, read once.
const Result<Zones>& zones();

/// 2^this many pages are of one migrate type; from /proc/pagetypeinfo, which root may read.
Result<std::uint32_t> pageblock_order();

}  // namespace coretap
