#include "unwind/extents.hpp"

#include <algorithm>
#include <iterator>

namespace coretap::unwind {

Extents::Extents(std::uint32_t size) : size_(size), free_(size) {
  if (size > 0) ranges_.emplace(0, size);
}

std::optional<std::uint32_t> Extents::take(std::uint32_t count) {
  if (count == 0) return 0;
  for (auto range = ranges_.begin(); range != ranges_.end(); ++range) {
    const auto [first, length] = *range;
    if (length < count) continue;
    const auto next = ranges_.erase(range);
    if (length > count) ranges_.emplace_hint(next, first + count, length - count);
    free_ -= count;
    return first;
  }
  return {};
}

void Extents::give(std::uint32_t first, std::uint32_t count) {
  if (first >= size_ || count == 0) return;
  std::uint32_t end = first + std::min(count, size_ - first);
  // Merges all free ranges that it overlaps or touches.
  auto next = ranges_.upper_bound(first);
  if (next != ranges_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second >= first) next = before;
  }
  while (next != ranges_.end() && next->first <= end) {
    first = std::min(first, next->first);
    end = std::max(end, next->first + next->second);
    free_ -= next->second;
    next = ranges_.erase(next);
  }
  ranges_.emplace_hint(next, first, end - first);
  free_ += end - first;
}

}  // namespace coretap::unwind
