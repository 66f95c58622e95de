// A flame graph of one event, coloured by how many there are for each of another: cycles per
// instruction. Pure: stacks in, a picture out.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stacks/flamegraph.hpp"

namespace coretap {

class RatioGraph {
 public:
  /// Adds a path, the outermost frame first, with a value of the first event (`event` is 0), or of
  /// the second one.
  void add(std::span<const StackWord> path, std::uint64_t value, std::size_t event);
  /// The names are those of the events.
  std::string svg(PictureTitle title, std::string_view first, std::string_view second) const;

 private:
  using Values = std::array<std::uint64_t, 2>;  ///< of both events

  FlameGraph graph_;  ///< of the first event
  std::vector<std::uint32_t> parents_{0};
  std::vector<Values> own_{{}};  ///< by frame
};

}  // namespace coretap
