// Titles, notes and styles that pictures and profiles share.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "program/session.hpp"

namespace coretap {

struct PictureTitle {
  std::string title;
  std::string unit;                ///< what values count: "samples"
  std::vector<std::string> notes;  ///< a line each: losses and limitations
};

/// "offcputime --min-block-time 1000 -- make ..., 10.0 s, Linux 6.12.3", and losses since tracing
/// started.
PictureTitle picture_title(const Session& s, std::uint64_t lasted_ns, std::string_view unit);

/// The style of titles, notes and elements that the script adds, in light and dark.
inline constexpr char kPictureStyle[] = R"css(
svg { font: 12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, "Liberation Mono", monospace; }
text { white-space: pre; fill: #1c1c1c; }
svg:root { background: #fdfdfb; }
.bg { fill: #fdfdfb; }
.title { font-size: 16px; font-weight: bold; }
.dim { fill: #666; }
.script { display: none; }
.reset { cursor: pointer; text-decoration: underline; }
.reset[visibility=hidden] { pointer-events: none; }
@media (prefers-color-scheme: dark) {
  svg:root { background: #17191c; }
  .bg { fill: #17191c; }
  .ink { fill: #e6e6e6; }
  .dim { fill: #a2a7ad; }
}
)css";

}  // namespace coretap
