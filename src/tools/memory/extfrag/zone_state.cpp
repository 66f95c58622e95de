#include "tools/memory/extfrag/zone_state.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "coretap/fragmentation.hpp"
#include "coretap/parse.hpp"

namespace coretap {

namespace {

constexpr std::string_view kUnmovable = "Unmovable";
constexpr std::size_t kOrderLimit = 64;  // limit of a shift
constexpr int kCostlyOrder = 3;          // PAGE_ALLOC_COSTLY_ORDER

void after_spaces(std::string_view& text) {
  text.remove_prefix(std::min(text.size(), text.find_first_not_of(' ')));
}

/// The rest of a line after "Node 0, zone Normal, type"; false if it is invalid.
bool take_counts(std::string_view line, TypeBlocks& to) {
  after_spaces(line);
  to.type = std::string(take_until(line, ' '));
  if (to.type.empty()) return false;
  while (true) {
    after_spaces(line);
    if (line.empty()) break;
    const bool more = line.starts_with('>');
    if (more) line.remove_prefix(1);
    auto blocks = parse_unsigned(take_until(line, ' '));
    if (!blocks) return false;
    to.blocks.push_back(*blocks);
    to.more.push_back(more);
  }
  return !to.blocks.empty() && to.blocks.size() <= kOrderLimit;
}

/// Below which order the free blocks of the zone are all in `type`.
std::uint32_t alone_below(const std::vector<TypeBlocks>& all, const TypeBlocks& type) {
  std::uint32_t below = 0;
  for (std::size_t order = 0; order < type.blocks.size(); order++) {
    auto others = [&](auto& t) { return &t != &type && t.name == type.name && t.blocks[order]; };
    if (std::ranges::any_of(all, others)) break;
    below = static_cast<std::uint32_t>(order + 1);
  }
  const bool some = std::any_of(type.blocks.begin(), type.blocks.begin() + below,
                                [](auto blocks) { return blocks != 0; });
  return some ? below : 0;
}

}  // namespace

std::optional<std::vector<TypeBlocks>> parse_pagetypeinfo(std::string_view text) {
  std::vector<TypeBlocks> all;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    constexpr std::string_view kType = ", type";
    // Lines of the number of page blocks have no type.
    const auto type = line.find(kType);
    if (!line.starts_with("Node ") || type == line.npos) continue;
    auto zone = line.substr(0, type);
    auto name = take_zone(zone);
    TypeBlocks row;
    if (!name || !zone.empty() || !take_counts(line.substr(type + kType.size()), row))
      return std::nullopt;
    row.name = std::move(*name);
    if (!all.empty() && row.blocks.size() != all[0].blocks.size()) return std::nullopt;
    all.push_back(std::move(row));
  }
  if (all.empty()) return std::nullopt;
  for (auto& row : all)
    if (row.type == kUnmovable) row.alone_below = alone_below(all, row);
  return all;
}

std::optional<std::vector<Watermarks>> parse_watermarks(std::string_view text) {
  std::vector<Watermarks> all;
  std::optional<Watermarks> zone;
  unsigned found = 0;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    if (line.starts_with("Node ")) {
      auto name = take_zone(line);
      if (!name) return std::nullopt;
      zone = Watermarks{.name = std::move(*name)};
      found = 0;
      continue;
    }
    auto words = words_in(line);
    if (!zone || words.size() < 2) continue;
    // The line "pages free 3840" begins a zone; of later lines some have the same first words.
    const bool begins = words.size() == 3 && words[0] == "pages" && words[1] == "free";
    auto* to = begins               ? &zone->free
               : words[0] == "min"  ? &zone->min
               : words[0] == "low"  ? &zone->low
               : words[0] == "high" ? &zone->high
                                    : nullptr;
    if (begins || (to && found < 4)) {
      auto pages = parse_unsigned(words.back());
      if (!pages) return std::nullopt;
      *to = *pages;
      found++;
    } else if (words[0] == "present") {
      if (found != 4) return std::nullopt;
      if (words[1] != "0") all.push_back(*zone);
      zone.reset();
    }
  }
  return all;
}

std::string_view step_name(Step step) {
  switch (step) {
    case Step::enough:
      return "enough";
    case Step::kswapd:
      return "kswapd";
    case Step::compact:
      return "compact";
    default:
      return "reclaim";
  }
}

std::vector<Step> steps_of(const Watermarks& zone, const std::vector<__u64>& blocks,
                           std::optional<std::int64_t> threshold) {
  auto orders = static_cast<int>(blocks.size());
  auto step = [&](int order) {
    const std::uint64_t pages = 1ULL << order, gap = 2ULL << order;
    const bool block =
        std::any_of(blocks.begin() + order, blocks.end(), [](auto n) { return n != 0; });
    auto left = zone.free + 1 > pages ? zone.free + 1 - pages : 0;
    if (block && left > zone.low) return Step::enough;
    if (block && left > zone.min) return Step::kswapd;
    if (!threshold || !order) return Step::reclaim;
    const bool costly = order > kCostlyOrder;
    if (zone.free <= (costly ? zone.low : zone.min) + gap) return Step::reclaim;
    auto index = fragmentation_index(blocks.data(), orders, order);
    if (costly && index >= 0 && index <= *threshold) return Step::reclaim;
    return Step::compact;
  };
  std::vector<Step> all;
  all.reserve(static_cast<std::size_t>(std::max(orders, 0)));
  for (int order = 0; order < orders; order++) all.push_back(step(order));
  return all;
}

std::string in_ranges(const std::vector<Step>& steps) {
  std::string text;
  for (std::size_t from = 0; from < steps.size();) {
    auto to = from;
    while (to + 1 < steps.size() && steps[to + 1] == steps[from]) to++;
    if (from) text += ", ";
    text += from == to ? fmt::format("{}", from) : fmt::format("{}-{}", from, to);
    text += fmt::format(" {}", step_name(steps[from]));
    from = to + 1;
  }
  return text;
}

}  // namespace coretap
