#include "kernel/zones.hpp"

#include "fuzz.hpp"
#include "kernel/fragmentation.hpp"
#include "tools/memory/extfrag/buddyinfo.hpp"

using namespace coretap;

FUZZ(zoneinfo, bytes) {
  auto parsed = parse_zoneinfo(bytes);
  if (!parsed) return;
  const Zones zones(std::move(*parsed));
  for (auto& zone : zones.all()) {
    MUST(zone.first < zone.end && !zone.name.zone.empty());
    for (auto pfn : {zone.first, zone.first + (zone.end - zone.first) / 2, zone.end - 1}) {
      const auto* of = zones.of(pfn);
      MUST(of && of->first <= pfn && pfn < of->end);
      MUST(of->end - of->first <= zone.end - zone.first);
    }
  }
  std::uint64_t end = 0;
  for (auto& range : zones.ranges({}, "")) {
    MUST(range.first < range.end && (end < range.first || end == 0));
    end = range.end;
  }
}

FUZZ(buddyinfo, bytes) {
  const auto parsed = parse_buddyinfo(bytes);
  if (!parsed) return;
  for (auto& zone : *parsed) {
    const int orders = static_cast<int>(zone.blocks.size());
    MUST(orders > 0 && orders == static_cast<int>(parsed->front().blocks.size()));
    MUST(zone_name(zone.name.zone).starts_with("ZONE_"));
    for (int order = -1; order <= orders; order++) {
      const auto index = fragmentation_index(zone.blocks.data(), orders, order);
      const auto unusable = unusable_index(zone.blocks.data(), orders, order);
      // Where the sums are those of a machine that can be.
      bool sane = true;
      for (int i = 0; i < orders; i++) sane = sane && i < 32 && zone.blocks[i] < 1ULL << 24;
      if (!sane) continue;
      MUST(index >= -1000 && index <= 1000);
      MUST(unusable >= 0 && unusable <= 1000);
    }
  }
}
