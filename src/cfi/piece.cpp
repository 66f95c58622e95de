#include "cfi/piece.hpp"

#include <algorithm>

namespace coretap::unwind {

bool Piece::move(std::uint64_t offset, std::uint64_t bytes, const Range& range) {
  constexpr std::uint64_t kLittle = 512, kMore = 4;
  if (offset < range.begin || offset > range.end || bytes > range.end - offset) return false;
  const bool goes_on = offset - start_ <= have_ + kLittle;
  const auto before = goes_on ? 0 : std::min(offset - range.begin, offset % kLittle);
  const auto want = goes_on ? std::clamp(have_ * kMore, kLittle, most_) : kLittle;
  const auto size = std::min(std::max(want, before + bytes), range.end - offset + before);
  have_ = 0;
  if (size > budget_) return false;
  budget_ -= size;
  if (buffer_.size() < size) buffer_.resize(size);
  if (!image_.read(offset - before, buffer_.data(), size)) return false;
  start_ = offset - before;
  have_ = size;
  return true;
}

}  // namespace coretap::unwind
