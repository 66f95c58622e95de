// Types and memory zones of the kernel.
#include "coretap/fragmentation.hpp"
#include "fuzz.hpp"
#include "kernel/btf.hpp"
#include "kernel/min_core_btf.hpp"
#include "tools/memory/extfrag/zone_state.hpp"

using namespace coretap;

namespace {

void check(const Btf& btf) {
  std::size_t left = 4096;  // lookups left: each may walk all types
  for (std::uint32_t id = 1; id < btf.count() && left > 0; id++, left--) {
    const auto* type = btf.type(id);
    MUST(type && reinterpret_cast<std::uintptr_t>(type) % alignof(btf_type) == 0);
    const auto kind = BTF_INFO_KIND(type->info);
    const auto name = btf.name(type->name_off);
    if (!name.empty()) {
      const auto first = btf.find(name, kind);
      MUST(first > 0 && first <= id && btf.name(btf.type(first)->name_off) == name);
    }
    btf.has_member(type, "no_such_member");
    for (auto& [value_name, value] : btf.enumerators(type))
      if (kind == BTF_KIND_ENUM && !type->name_off) btf.enum_with(value_name);
  }
  MUST(!btf.type(btf.count()) && !btf.type(0));
  MUST(btf.name(UINT32_MAX).empty());
}

}  // namespace

FUZZ(btf, bytes) {
  Btf btf;
  if (btf.view(bytes.data(), bytes.size())) check(btf);

  const fuzz::MemoryFile file(bytes);
  Btf opened;
  MUST(opened.open(file.path().c_str()) == btf.is_open());
  MUST(opened.count() == btf.count());
}

/// The length of the kernel's types, the types, then the object that refers to them.
FUZZ(trim, bytes) {
  fuzz::Input input(bytes);
  const std::string types(input.text(input.number<std::uint16_t>()));
  const std::string object(input.rest());
  Btf kernel;
  kernel.view(types.data(), types.size());
  const auto trimmed = trimmed_types(kernel, object.data(), object.size());
  if (trimmed.empty()) return;
  Btf result;
  MUST(result.view(trimmed.data(), trimmed.size()));
  check(result);
}

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
  for (auto& range : zones.ranges({})) {
    MUST(range.first < range.end && (end < range.first || end == 0));
    end = range.end;
  }
}

FUZZ(pagetypeinfo, bytes) {
  const auto parsed = parse_pagetypeinfo(bytes);
  if (!parsed) return;
  for (auto& row : *parsed) {
    MUST(!row.type.empty() && row.blocks.size() == row.more.size());
    MUST(row.blocks.size() == parsed->front().blocks.size());
    MUST(row.alone_below <= row.blocks.size());
  }
}

FUZZ(watermarks, bytes) {
  const auto parsed = parse_watermarks(bytes);
  if (!parsed) return;
  for (auto& zone : *parsed) {
    MUST(!zone.name.zone.empty());
    for (auto threshold : {std::optional<std::int64_t>(), std::optional<std::int64_t>(500)})
      MUST(steps_of(zone, std::vector<__u64>(11, zone.free), threshold).size() == 11);
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
      // Only if the sums are possible on a real machine.
      bool sane = true;
      for (int i = 0; i < orders; i++) sane = sane && i < 32 && zone.blocks[i] < 1ULL << 24;
      if (!sane) continue;
      MUST(index >= -1000 && index <= 1000);
      MUST(unusable >= 0 && unusable <= 1000);
    }
  }
}
