#include "kernel/fragmentation.hpp"

#include <charconv>

namespace coretap {

namespace {

constexpr std::size_t kMostOrders = 64;  // what a shift can do

struct Free {
  std::uint64_t pages = 0, blocks = 0;
  std::uint64_t suitable = 0;  ///< allocations of the order that could succeed
};

Free sum(const __u64* free_blocks, int orders, int order) {
  Free f;
  for (int i = 0; i < orders; i++) {
    f.pages += free_blocks[i] << i;
    f.blocks += free_blocks[i];
    if (i >= order) f.suitable += free_blocks[i] << (i - order);
  }
  return f;
}

}  // namespace

std::int64_t fragmentation_index(const __u64* free_blocks, int orders, int order) {
  if (order < 0 || order >= orders) return 0;
  auto f = sum(free_blocks, orders, order);
  if (!f.blocks) return 0;
  if (f.suitable) return -1000;
  return 1000 - static_cast<std::int64_t>((1000 + f.pages * 1000 / (1ULL << order)) / f.blocks);
}

std::int64_t unusable_index(const __u64* free_blocks, int orders, int order) {
  if (order < 0 || order >= orders) return 0;
  auto f = sum(free_blocks, orders, order);
  if (!f.pages) return 1000;
  return static_cast<std::int64_t>((f.pages - (f.suitable << order)) * 1000 / f.pages);
}

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

std::string zone_name(std::string_view name) {
  std::string out = "ZONE_";
  for (char c : name) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return out;
}

}  // namespace coretap
