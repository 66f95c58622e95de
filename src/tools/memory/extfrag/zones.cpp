#include "tools/memory/extfrag/zones.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "coretap/parse.hpp"
#include "coretap/small_files.hpp"

namespace coretap {

namespace {

constexpr std::size_t kZoneinfoLimit = 64 << 20;  // bytes; the file has lines for each zone and CPU

void skip_spaces(std::string_view& text) {
  while (text.starts_with(' ')) text.remove_prefix(1);
}

bool take(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  return true;
}

/// Parses a number that is the whole rest of a line.
std::optional<std::uint64_t> last_number(std::string_view text) {
  skip_spaces(text);
  return parse_unsigned(text);
}

}  // namespace

std::optional<ZoneName> take_zone(std::string_view& line) {
  auto rest = line;
  if (!take(rest, "Node ")) return std::nullopt;
  skip_spaces(rest);
  auto node = parse_unsigned(take_until(rest, ','));
  if (!node || *node > UINT32_MAX || !take(rest, " zone ")) return std::nullopt;
  skip_spaces(rest);
  std::string name(rest.substr(0, rest.find(' ')));
  if (name.empty()) return std::nullopt;
  rest.remove_prefix(name.size());
  line = rest;
  return ZoneName{static_cast<std::uint32_t>(*node), std::move(name)};
}

std::optional<std::vector<Zone>> parse_zoneinfo(std::string_view text) {
  std::vector<Zone> all;
  std::optional<Zone> zone;
  std::uint64_t spanned = 0;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    if (line.starts_with("Node ")) {
      auto name = take_zone(line);
      if (!name || !line.empty()) return std::nullopt;
      zone = Zone{std::move(*name), 0, 0};
      spanned = 0;
      continue;
    }
    skip_spaces(line);
    if (take(line, "spanned ")) {
      auto pages = last_number(line);
      if (!zone || !pages) return std::nullopt;
      spanned = *pages;
    } else if (take(line, "start_pfn:")) {  // the last line of a zone with memory
      auto first = last_number(line);
      if (!zone || !first || *first + spanned < *first) return std::nullopt;
      zone->first = *first;
      zone->end = *first + spanned;
      if (spanned) all.push_back(std::move(*zone));
      zone.reset();
    }
  }
  return all;
}

Zones::Zones(std::vector<Zone> zones) : zones_(std::move(zones)) {
  std::vector<std::uint64_t> bounds;
  for (auto& z : zones_) bounds.insert(bounds.end(), {z.first, z.end});
  std::ranges::sort(bounds);
  for (std::size_t i = 0; i + 1 < bounds.size(); i++) {
    auto first = bounds[i], end = bounds[i + 1];
    if (first == end) continue;
    const Zone* smallest = nullptr;
    for (auto& z : zones_)
      if (z.first <= first && end <= z.end &&
          (!smallest || z.end - z.first < smallest->end - smallest->first))
        smallest = &z;
    if (!smallest) continue;
    auto zone = static_cast<std::size_t>(smallest - zones_.data());
    if (!parts_.empty() && parts_.back().end == first && parts_.back().zone == zone)
      parts_.back().end = end;
    else
      parts_.push_back({first, end, zone});
  }
}

const Zone* Zones::of(std::uint64_t pfn) const {
  auto part = std::ranges::upper_bound(parts_, pfn, {}, &Part::end);
  return part != parts_.end() && part->first <= pfn ? &zones_[part->zone] : nullptr;
}

std::vector<pfn_range> Zones::ranges(const WantedMemory& wanted) const {
  std::vector<pfn_range> all;
  for (auto& part : parts_) {
    if (!wanted.has(zones_[part.zone].name)) continue;
    if (!all.empty() && all.back().end == part.first)
      all.back().end = part.end;
    else
      all.push_back({part.first, part.end});
  }
  return all;
}

const Result<Zones>& zones() {
  static const auto here = []() -> Result<Zones> {
    errno = 0;
    auto text = read_file("/proc/zoneinfo", kZoneinfoLimit);
    if (!text) return Error{"cannot read /proc/zoneinfo", strerror(errno)};
    auto parsed = parse_zoneinfo(*text);
    if (!parsed) return Error{"cannot read /proc/zoneinfo", "it is not of the usual form"};
    return Zones(std::move(*parsed));
  }();
  return here;
}

Result<std::uint32_t> pageblock_order() {
  constexpr char kFile[] = "/proc/pagetypeinfo";
  constexpr std::uint32_t kMost = 63;
  errno = 0;
  auto text = read_file(kFile, 64);  // reading all of it makes the kernel count all free pages
  auto why = fmt::format("{}: {}", kFile, text ? "not of the usual form" : strerror(errno));
  std::string_view line = text ? std::string_view(*text) : "";
  line = line.substr(0, line.find('\n'));
  if (take(line, "Page block order:"))
    if (auto order = last_number(line); order && *order <= kMost)
      return static_cast<std::uint32_t>(*order);
  return Error{"cannot tell how large this kernel's page blocks are", why,
               "run as root or with CAP_DAC_READ_SEARCH, with /proc of the host", kUnsupported};
}

}  // namespace coretap
