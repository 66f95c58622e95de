// Memory zones of this machine, their physical address ranges, and --node and --zone.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "coretap/config.hpp"
#include "memory/extfrag.h"

namespace coretap {

struct ZoneName {
  std::uint32_t node = 0;
  std::string zone;  ///< "Normal"
  bool operator==(const ZoneName&) const = default;
};

/// Memory of --node and --zone, in the configuration (Config::own).
struct WantedMemory {
  std::optional<std::uint32_t> node;
  std::string zone = {};  ///< empty: all
  bool has(const ZoneName& name) const {
    return (!node || *node == name.node) && (zone.empty() || zone == name.zone);
  }
};

/// Removes "Node 0, zone   Normal" from the front of a line; nullopt if it does not begin with
/// that.
std::optional<ZoneName> take_zone(std::string_view& line);

/// A zone and the page frames that it spans; there may be holes, and other zones in them.
struct Zone {
  ZoneName name;
  std::uint64_t first = 0, end = 0;
};

/// Zones with memory, from /proc/zoneinfo; nullopt if a number in it is invalid.
std::optional<std::vector<Zone>> parse_zoneinfo(std::string_view text);

class Zones {
 public:
  explicit Zones(std::vector<Zone> zones);

  const std::vector<Zone>& all() const { return zones_; }
  /// The zone of a page frame. If several span it (interleaved nodes), the smallest; nullptr: none.
  const Zone* of(std::uint64_t pfn) const;
  /// In order.
  std::vector<pfn_range> ranges(const WantedMemory& wanted) const;

 private:
  struct Part {
    std::uint64_t first, end;
    std::size_t zone;
  };
  std::vector<Zone> zones_;
  std::vector<Part> parts_;  ///< in order, disjoint
};

/// Zones of this machine, read once.
const Result<Zones>& zones();

/// --node and --zone.
std::vector<Option> memory_options();
/// For Tool::check.
Result<void> check_memory(const Config& config);

/// log2 of the number of pages in a page block (pages of one migrate type); from
/// /proc/pagetypeinfo, readable by root only.
Result<std::uint32_t> pageblock_order();

}  // namespace coretap
