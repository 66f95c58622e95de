// A part of a file in memory, for readers that go through a table.
#pragma once
#include <cstdint>
#include <vector>

#include "cfi/elf_code.hpp"

namespace coretap::unwind {

/// Reads a file in pieces that grow while reads are sequential; after a jump the piece is small and
/// includes preceding bytes.
class Piece {
 public:
  struct Range {
    std::uint64_t begin, end;  ///< offsets in the file
  };

  /// `most`: the size of a piece, unless one read needs more. All bytes that are read from the file
  /// are taken from the budget; nothing is read when it is spent.
  Piece(const Image& image, std::uint64_t most, std::uint64_t& budget)
      : image_(image), most_(most), budget_(budget) {}

  /// The bytes at an offset, valid until the next call; nullptr unless all of them are within the
  /// range and can be read. The piece stays within the range.
  const std::uint8_t* at(std::uint64_t offset, std::uint64_t bytes, const Range& range) {
    if (offset - start_ > have_ || bytes > have_ - (offset - start_))
      if (!move(offset, bytes, range)) return nullptr;
    return buffer_.data() + (offset - start_);
  }

 private:
  bool move(std::uint64_t offset, std::uint64_t bytes, const Range& range);

  const Image& image_;
  const std::uint64_t most_;
  std::uint64_t& budget_;
  std::vector<std::uint8_t> buffer_;
  std::uint64_t start_ = 0, have_ = 0;
};

}  // namespace coretap::unwind
