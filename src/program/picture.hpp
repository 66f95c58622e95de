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

/// Pixels, until the script fits the picture to the window.
inline constexpr int kPictureWidth = 1200, kPictureMargin = 10;
inline constexpr int kPictureLine = 18;         ///< of text
inline constexpr double kPictureLetter = 7.25;  ///< approximate width of a letter

/// Adds a style or script without its indentation and comments.
void put_code(std::string& out, std::string_view code);

/// Begins the file: kPictureStyle, this style, which is complete, and the background.
void begin_picture(std::string& out, const PictureTitle& title, int height, std::string_view style);
/// The y at which the lines end that put_titles() adds.
int below_titles(const std::vector<std::string>& notes);
/// The title, and a line for each note.
void put_titles(std::string& out, const PictureTitle& title, const std::vector<std::string>& notes);
/// Ends the file: kPictureScript, and this script, which goes on where that ends.
void end_picture(std::string& out, std::string_view script);

/// 1234567 as 1,234,567.
std::string grouped(std::uint64_t value);

/// The style of titles, notes and elements that the script adds, in light, dark and print; `live`
/// are those of use only on a screen.
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
@media screen and (prefers-color-scheme: dark) {
  svg:root { background: #17191c; }
  .bg { fill: #17191c; }
  .ink { fill: #e6e6e6; }
  .dim { fill: #a2a7ad; }
}
@media print {
  svg:root { background: #fff; }
  svg:root[viewBox] { width: 100%; height: auto; }
  .bg { fill: #fff; }
  .dim { fill: #333; }
  .live { display: none; }
}
)css";

/// The start of the scripts of pictures, which they share. Names are untrusted: they are read and
/// written as text only.
inline constexpr char kPictureScript[] = R"js(
"use strict";
(() => {
const pictureLine = 18;
// Letters from U+1000 on may take the room of two.
const pictureColumns = text => [...text].reduce((sum, c) => sum + (c >= "\u1000" ? 2 : 1), 0);
// Shows a text in lines of at most this number of columns, and breaks longer words; returns the
// place below.
function pictureLines(node, text, x, y, columns) {
  const most = Math.max(8, Math.floor(columns));
  let line = "", used = 0;
  const end = () => {
    const span = document.createElementNS(node.namespaceURI, "tspan");
    span.textContent = line;
    span.setAttribute("x", x);
    span.setAttribute("y", y);
    node.append(span);
    line = "";
    used = 0;
    y += pictureLine;
  };
  node.textContent = "";
  for (const word of text.split(" ")) {
    if (used && used + 1 + pictureColumns(word) > most) end();
    if (used) {
      line += " ";
      used++;
    }
    for (const c of word) {
      if (used + pictureColumns(c) > most) end();
      line += c;
      used += pictureColumns(c);
    }
  }
  end();
  return y;
}
)js";

}  // namespace coretap
