#include "coretap/fragmentation.hpp"

namespace coretap {

std::int64_t fragmentation_index(const __u64* free_blocks, int orders, int order) {
  if (order < 0 || order >= orders) return 0;
  std::uint64_t pages = 0, blocks = 0, suitable = 0;
  for (int i = 0; i < orders; i++) {
    pages += free_blocks[i] << i;
    blocks += free_blocks[i];
    if (i >= order) suitable += free_blocks[i] << (i - order);
  }
  if (!blocks) return 0;
  if (suitable) return -1000;
  return 1000 - static_cast<std::int64_t>((1000 + pages * 1000 / (1ULL << order)) / blocks);
}

std::string zone_name(std::string_view name) {
  std::string out = "ZONE_";
  for (char c : name) out += static_cast<char>(c >= 'a' && c <= 'z' ? c - 32 : c);
  return out;
}

}  // namespace coretap
