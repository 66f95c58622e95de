#include "stacks/ratio_graph.hpp"

#include <cmath>

#include <fmt/format.h>

#include "base/figures.hpp"

namespace coretap {

namespace {

constexpr std::string_view kCss = R"css(
.high2 { fill: #3a70c0; } .high1 { fill: #8bb0e4; } .like { fill: #d9d9d6; }
.low1 { fill: #f3b5aa; } .low2 { fill: #d03a2a; }
.none { fill: #c9d6ea; stroke: #333; stroke-width: 1.2px; stroke-dasharray: 4 3; }
.high2 + text, .low2 + text { fill: #fff; }
)css";

constexpr double kMore = 1.25, kTwice = 2;

/// For a ratio compared to that of everything.
std::string_view style_of(double compared) {
  if (compared >= kTwice) return "high2";
  if (compared >= kMore) return "high1";
  if (compared > 1 / kMore) return "like";
  return compared > 1 / kTwice ? "low1" : "low2";
}

std::string number(double ratio) {
  return ratio < 100 ? fmt::format("{:.3g}", ratio)
                     : grouped(static_cast<std::uint64_t>(std::llround(ratio)));
}

double ratio(const std::array<std::uint64_t, 2>& values) {
  return static_cast<double>(values[0]) / static_cast<double>(values[1]);
}

}  // namespace

void RatioGraph::add(std::span<const StackWord> path, std::uint64_t value, std::size_t event) {
  std::uint32_t frame = 0;
  for (auto& word : path) {
    auto next = graph_.child(frame, word);
    if (!next) break;
    if (next == own_.size()) {
      own_.emplace_back();
      parents_.push_back(frame);
    }
    frame = next;
  }
  if (!event) graph_.add_to(frame, value);
  own_[frame][event ? 1 : 0] += value;
}

std::string RatioGraph::svg(PictureTitle title, std::string_view first,
                            std::string_view second) const {
  auto sums = own_;
  for (auto i = sums.size(); --i > 0;)  // parents come before their children
    for (std::size_t event : {0U, 1U}) sums[parents_[i]][event] += sums[i][event];
  const auto& all = sums[0];

  FlameGraph::Paint paint;
  paint.css = kCss;
  // Words beside a dark colour would be white, as they are in frames.
  paint.legend = {{"high2", ""}, {"high1", "higher"}, {"like", "as all"},
                  {"low2", ""},  {"low1", "lower"},   {"none", "no second event"}};
  paint.look = [&](std::uint32_t frame) -> FlameGraph::Paint::Look {
    auto& sum = sums[frame];
    auto words = fmt::format("{} {} ({:.2f}%), {} {}", grouped(sum[0]), first,
                             percent(sum[0], all[0]), grouped(sum[1]), second);
    if (!sum[1]) return {"none", std::move(words)};
    words += fmt::format(": {}", number(ratio(sum)));
    return {style_of(ratio(sum) / ratio(all)), std::move(words)};
  };
  title.notes.insert(title.notes.begin(),
                     {fmt::format("width: {0}; colour: {0} for each of {1}, compared to {2} of all",
                                  first, second, all[1] ? number(ratio(all)) : "nothing"),
                      fmt::format("frames that have only {} are left out", second)});
  return graph_.svg(title, paint);
}

}  // namespace coretap
