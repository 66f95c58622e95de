// The style and script in the SVG file that make a flame graph interactive.
// Names are untrusted: the script reads and writes them as text only, never as markup.
#pragma once

namespace coretap {

inline constexpr char kFlameStyle[] = R"css(
.f { cursor: pointer; }
.f text { pointer-events: none; }
.f rect { width: max(90%, 100% - 1px); }
.left { width: calc(100% - 260px); }
.f:hover > rect { stroke: #000; stroke-width: 1.5px; }
.f.above > rect { opacity: .5; }
.f.hit > rect { fill: #c026d3; }
.f.hit > text { fill: #fff; font-weight: bold; }
input { box-sizing: border-box; width: 100%; height: 100%; padding: 0 6px; font: inherit;
  color: #1c1c1c; background: #fff; border: 1px solid #999; border-radius: 3px; }
@media (prefers-color-scheme: dark) {
  .f.above > text { fill: #eee; }
  .f:hover > rect { stroke: #fff; }
  input { color: #e6e6e6; background: #24272b; border-color: #666; }
}
)css";

inline constexpr char kFlameScript[] = R"js(
"use strict";
(() => {
  const svg = document.currentScript.closest("svg");
  const one = name => svg.querySelector("." + name);
  const graph = one("graph"), head = one("head"), detail = one("detail"), found = one("found");
  const reset = one("reset"), input = svg.querySelector("input");
  const alone = svg === document.documentElement;
  const margin = +graph.getAttribute("x");
  let room = 1180, letter = 7.2;  // pixels: the graph's width, a letter's

  // In the order of the file: parents first, each followed by all that lies above it.
  const frames = [...graph.children].map((node, index) => ({
    node, index,
    name: node.firstElementChild.textContent.split("\n", 1)[0],
    words: node.firstElementChild.textContent.split("\n")[1],
    value: +node.dataset.v,
    x: parseFloat(node.getAttribute("x")),
    width: parseFloat(node.getAttribute("width")),
    y: +node.getAttribute("y"),
    text: node.querySelector("text"),
  }));
  const of = new Map(frames.map(f => [f.node, f]));
  const root = frames[0];
  let zoomed = root, below = [];
  for (const f of frames) {
    while (below.length && below[below.length - 1].y <= f.y) below.pop().end = f.index;
    f.parent = below[below.length - 1];
    below.push(f);
  }
  for (const f of below) f.end = frames.length;
  const holds = (outer, f) => f.index >= outer.index && f.index < outer.end;

  const share = (part, whole) => (whole ? 100 * part / whole : 0).toFixed(2) + "%";
  const wide = c => c >= "\u1000";  // these may take the room of two letters

  function cut(name, columns) {
    if (columns < 3) return "";
    let used = 0, kept = "";
    for (const c of name) {
      used += wide(c) ? 2 : 1;
      if (used > columns) return kept + "\u2026";
      if (used < columns) kept += c;
    }
    return name;
  }

  function fit(f) {
    const words = cut(f.name, Math.floor((f.shown / 100 * room - 6) / letter));
    if (!f.text) {
      if (!words) return;
      f.text = document.createElementNS(svg.namespaceURI, "text");
      f.text.setAttribute("x", 3);
      f.text.setAttribute("y", 12);
      f.node.append(f.text);
    }
    if (f.text.textContent !== words) f.text.textContent = words;
  }

  function zoom(to) {
    zoomed = to;
    for (const f of frames) {
      const under = f !== to && holds(f, to), seen = under || holds(to, f);
      f.node.style.display = seen ? "" : "none";
      f.node.classList.toggle("above", under);
      f.shown = !seen ? 0 : under ? 100 : 100 * f.width / to.width;
      if (!seen) continue;
      f.node.setAttribute("x", (under ? 0 : 100 * (f.x - to.x) / to.width) + "%");
      f.node.setAttribute("width", f.shown + "%");
      fit(f);
    }
    reset.setAttribute("visibility", to === root ? "hidden" : "visible");
    search();
    tell();
  }

  function tell(f) {
    f = f || zoomed;
    let words = share(f.value, root.value) + " of all";
    if (zoomed !== root) words += ", " + share(f.value, zoomed.value) + " of the zoomed";
    if (graph.dataset.words) words = f.words + ": " + f.name;
    else words += ", " + f.value.toLocaleString("en-US") + " " + graph.dataset.unit + ": " + f.name;
    detail.textContent = words;
  }

  // Names that hold these words, or that they match as a regular expression; small letters stand
  // for capitals too.
  function pattern(words) {
    const flags = words === words.toLowerCase() ? "i" : "";
    const plain = new RegExp(words.replace(/[\\^$.*+?()|{}[\]]/g, "\\$&"), flags);
    let match = plain;
    try {
      match = new RegExp(words, flags);
    } catch (e) {
      // It is plain text then.
    }
    return name => plain.test(name) || match.test(name);
  }

  function search() {
    const wanted = input.value ? pattern(input.value) : null;
    let hits = 0, sum = 0, inside = 0, until = 0;
    for (const f of frames) {
      const hit = wanted !== null && f !== root && wanted(f.name);
      f.node.classList.toggle("hit", hit);
      if (!hit) continue;
      hits++;
      if (f.index < until) continue;  // above one that was counted
      until = f.end;
      sum += f.value;
      if (holds(f, zoomed)) inside = zoomed.value;
      else if (holds(zoomed, f)) inside += f.value;
    }
    let words = "";
    if (wanted) {
      words = hits + (hits === 1 ? " frame, " : " frames, ") + share(sum, root.value) + " of all";
      if (zoomed !== root) words += ", " + share(inside, zoomed.value) + " of the zoomed";
    }
    found.textContent = words;
  }

  function resize() {
    const width = svg.getBoundingClientRect().width;
    if (!width) return;
    room = Math.max(100, width - 2 * margin);
    graph.setAttribute("width", room);
    for (const f of frames) if (f.shown) fit(f);
  }

  function follow() {
    head.setAttribute("transform", "translate(0 " + window.scrollY + ")");
  }

  svg.addEventListener("click", e => {
    const node = e.target.closest(".f");
    if (node) zoom(of.get(node));
    else if (e.target === reset) zoom(root);
  });
  svg.addEventListener("mouseover", e => tell(of.get(e.target.closest(".f"))));
  input.addEventListener("input", search);
  document.addEventListener("keydown", e => {
    const typing = document.activeElement === input;
    if ((e.ctrlKey || e.metaKey) && e.key === "f" && !typing) {
      e.preventDefault();
      input.focus();
      input.select();
    } else if (e.key === "Escape" && (typing || input.value)) {
      input.value = "";
      input.blur();
      search();
    } else if (e.key === "Escape" || (e.key === "Enter" && e.target === reset)) {
      zoom(root);
    }
  });

  // As wide as the window, rather than a picture that is scaled.
  svg.removeAttribute("viewBox");
  svg.setAttribute("width", "100%");
  for (const node of svg.querySelectorAll(".script")) node.classList.remove("script");
  const measured = root.text && root.text.getComputedTextLength() / root.text.textContent.length;
  if (measured > 0) letter = measured;
  resize();
  zoom(root);
  window.addEventListener("resize", resize);
  if (alone) {
    window.addEventListener("scroll", follow);
    window.scrollTo(0, svg.getBoundingClientRect().height);
    follow();
  }
})();
)js";

}  // namespace coretap
