// Room in a table of fixed size, handed out and taken back in ranges.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

namespace coretap::unwind {

class Extents {
 public:
  explicit Extents(std::uint32_t size);

  /// The first place where this many fit, or nothing. None at all always fit.
  std::optional<std::uint32_t> take(std::uint32_t count);
  /// Gives back what take() gave, whole or in parts. What is free already, or beyond the end, is
  /// passed over.
  void give(std::uint32_t first, std::uint32_t count);
  std::uint32_t free() const { return free_; }
  bool empty() const { return free_ == size_; }  ///< nothing is taken

 private:
  std::map<std::uint32_t, std::uint32_t> ranges_;  // first -> count, of what is free; none touch
  std::uint32_t size_, free_;
};

}  // namespace coretap::unwind
