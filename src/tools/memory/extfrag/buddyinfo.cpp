#include "tools/memory/extfrag/buddyinfo.hpp"

#include <algorithm>

#include "coretap/parse.hpp"

namespace coretap {

namespace {

constexpr std::size_t kMostOrders = 64;  // limit of a shift

}  // namespace

std::optional<std::vector<FreeBlocks>> parse_buddyinfo(std::string_view text) {
  std::vector<FreeBlocks> all;
  while (!text.empty()) {
    auto line = take_until(text, '\n');
    auto name = take_zone(line);
    if (!name) return std::nullopt;
    FreeBlocks zone{std::move(*name), {}};
    while (true) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
      if (line.empty()) break;
      auto blocks = parse_unsigned(take_until(line, ' '));
      if (!blocks) return std::nullopt;
      zone.blocks.push_back(*blocks);
    }
    auto orders = zone.blocks.size();
    if (!orders || orders > kMostOrders || (!all.empty() && orders != all[0].blocks.size()))
      return std::nullopt;
    all.push_back(std::move(zone));
  }
  return all;
}

std::int64_t unusable_index(const __u64* free_blocks, int orders, int order) {
  if (order < 0 || order >= orders) return 0;
  std::uint64_t pages = 0, too_small = 0;
  for (int i = 0; i < orders; i++) {
    pages += free_blocks[i] << i;
    if (i < order) too_small += free_blocks[i] << i;
  }
  if (!pages) return 1000;
  return static_cast<std::int64_t>(too_small * 1000 / pages);
}

}  // namespace coretap
