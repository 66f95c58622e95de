// Options that select NUMA nodes and zones of memory.
#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "coretap/option_parts.hpp"
#include "tools/memory/extfrag/zones.hpp"

namespace coretap {

namespace {

/// `take` stores the value if it is of this zone.
Option choice(char letter, std::string_view name, std::string_view metavar, std::string_view doc,
              bool (*take)(WantedMemory&, const ZoneName&, std::string_view),
              std::string (*word)(const ZoneName&)) {
  auto words = [word] {
    std::vector<Completion> all;
    if (zones())
      for (auto& z : (*zones()).all())
        if (auto text = word(z.name); !std::ranges::count(all, text, &Completion::word))
          all.push_back({text});
    return all;
  };
  auto apply = [=](Config& c, std::string_view text) -> Result<void> {
    if (!zones()) return zones().error();
    for (auto& z : (*zones()).all())
      if (take(c.own<WantedMemory>(), z.name, text)) return {};
    std::string all;
    for (auto& here : words()) all += (all.empty() ? "" : ", ") + here.word;
    return usage(fmt::format("--{0}: there is no {0} '{1}' with memory", name, text),
                 "there are: " + all);
  };
  return same_everywhere(one_of(value(letter, name, metavar, doc, apply), words));
}

bool take_node(WantedMemory& wanted, const ZoneName& here, std::string_view text) {
  if (parse_unsigned(text) != here.node) return false;
  wanted.node = here.node;
  return true;
}

bool take_name(WantedMemory& wanted, const ZoneName& here, std::string_view text) {
  if (text.starts_with("ZONE_")) text.remove_prefix(5);  // prefix of the kernel's enum
  auto upper = [](unsigned char c) { return ::toupper(c); };
  if (!std::ranges::equal(here.zone, text, {}, upper, upper)) return false;
  wanted.zone = here.zone;
  return true;
}

}  // namespace

std::vector<Option> memory_options() {
  return {
      choice('n', "node", "NODE", "only memory of this NUMA node", take_node,
             [](const ZoneName& n) { return std::to_string(n.node); }),
      choice('z', "zone", "ZONE", "only memory in zones with this name, such as Normal or DMA32",
             take_name, [](const ZoneName& n) { return n.zone; })};
}

Result<void> check_memory(const Config& c) {
  if (c.holds("node|zone") && (*zones()).ranges(c.own<WantedMemory>()).empty())
    return usage("--node and --zone: no memory here belongs to both", "see /proc/zoneinfo");
  return {};
}

}  // namespace coretap
