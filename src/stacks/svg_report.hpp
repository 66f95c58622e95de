// The flame graph that --svg asks for: of the last report of a run, written when it ends.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "program/picture.hpp"
#include "stacks/flamegraph.hpp"

namespace coretap {

class SvgReport {
 public:
  /// Fails where the file cannot be written. Does nothing if none is asked for.
  Result<void> open(Session& s);
  bool wanted() const { return wanted_; }
  bool keeps_file() const { return file_.keeps_file(); }

  /// A report begins: its sums are since the beginning, those of earlier ones are forgotten.
  void begin(std::uint64_t scale);
  void add(std::span<const StackWord> path, std::uint64_t value) { graph_->add(path, value); }
  Result<void> finish(Session& s, std::string_view unit);

 private:
  bool wanted_ = false;
  std::optional<FlameGraph> graph_;
  PictureFile file_;
  std::uint64_t ended_ns_ = 0;
};

}  // namespace coretap
