#include "tools/memory/extfrag/buddyinfo.hpp"

#include <algorithm>
#include <charconv>

namespace coretap {

namespace {

constexpr std::size_t kMostOrders = 64;  // limit of a shift

}  // namespace

std::optional<std::vector<FreeBlocks>> parse_buddyinfo(std::string_view text) {
  std::vector<FreeBlocks> all;
  for (std::size_t at = 0; at < text.size();) {
    auto line = text.substr(at, text.find('\n', at) - at);
    at += line.size() + 1;
    auto name = take_zone(line);
    if (!name) return std::nullopt;
    FreeBlocks zone{std::move(*name), {}};
    while (true) {
      line.remove_prefix(std::min(line.size(), line.find_first_not_of(' ')));
      if (line.empty()) break;
      __u64 blocks = 0;
      auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), blocks);
      line.remove_prefix(static_cast<std::size_t>(end - line.data()));
      if (error != std::errc{} || (!line.empty() && line.front() != ' ')) return std::nullopt;
      zone.blocks.push_back(blocks);
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
