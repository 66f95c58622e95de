// Options that select NUMA nodes and zones of memory.
#include <algorithm>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "kernel/zones.hpp"

namespace coretap::shared {

namespace {
/// Lists the result of `words` for this machine's zones, each once.
std::string zones_as(std::string (*words)(const ZoneName&)) {
  std::string list;
  std::set<std::string> seen;
  if (zones())
    for (auto& z : (*zones()).all())
      if (auto word = words(z.name); seen.insert(word).second)
        list += (list.empty() ? "" : ", ") + word;
  return list;
}

bool same_letters(std::string_view a, std::string_view b) {
  auto upper = [](unsigned char c) { return ::toupper(c); };
  return std::ranges::equal(a, b, {}, upper, upper);
}
}  // namespace

Option node(char letter) {
  return same_everywhere(value(
      letter, "node", "NODE", "only memory of this NUMA node",
      [](Config& c, std::string_view text) -> Result<void> {
        if (!zones()) return zones().error();
        auto wanted = parse_unsigned(text);
        for (auto& z : (*zones()).all())
          if (wanted == z.name.node) c.node = z.name.node;
        if (wanted && c.node == *wanted) return {};
        return usage(fmt::format("--node: there is no node '{}' with memory", text),
                     "there are: " + zones_as([](auto& n) { return std::to_string(n.node); }));
      },
      Complete::node));
}

Option zone(char letter) {
  return same_everywhere(value(
      letter, "zone", "ZONE", "only memory in zones with this name, such as Normal or DMA32",
      [](Config& c, std::string_view text) -> Result<void> {
        if (!zones()) return zones().error();
        auto name = text;
        if (name.starts_with("ZONE_")) name.remove_prefix(5);  // prefix of the kernel's enum
        for (auto& z : (*zones()).all())
          if (same_letters(z.name.zone, name)) {
            c.zone = z.name.zone;
            return {};
          }
        return usage(fmt::format("--zone: there is no zone '{}' with memory", text),
                     "there are: " + zones_as([](auto& n) { return n.zone; }));
      },
      Complete::zone));
}

}  // namespace coretap::shared
