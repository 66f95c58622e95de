#include "stacks/svg_report.hpp"

#include "base/clock.hpp"

namespace coretap {

Result<void> SvgReport::open(Session& s) {
  wanted_ = !s.config.svg.empty();
  if (!wanted_) return {};
  return file_.open(s, s.config.svg);
}

void SvgReport::begin(std::uint64_t scale) {
  ended_ns_ = monotonic_ns();
  if (wanted_) graph_.emplace(scale);
}

Result<void> SvgReport::finish(Session& s, std::string_view unit) {
  if (!graph_) return {};
  return file_.write(s, graph_->svg(picture_title(s, ended_ns_, unit)));
}

}  // namespace coretap
