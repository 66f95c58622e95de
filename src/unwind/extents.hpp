// Allocates ranges of a table of fixed size.
#pragma once
#include <cstdint>
#include <map>
#include <optional>

namespace coretap::unwind {

class Extents {
 public:
  explicit Extents(std::uint32_t size);

  /// Allocates the first free range of this length; nothing if there is none. 0 always succeeds.
  std::optional<std::uint32_t> take(std::uint32_t count);
  /// Frees a range from take(), whole or in parts. Ignores parts that are already free or beyond
  /// the end.
  void give(std::uint32_t first, std::uint32_t count);
  std::uint32_t free() const { return free_; }
  bool empty() const { return free_ == size_; }  ///< nothing is allocated

 private:
  std::map<std::uint32_t, std::uint32_t> ranges_;  // first -> count of each free range; none touch
  std::uint32_t size_, free_;
};

}  // namespace coretap::unwind
