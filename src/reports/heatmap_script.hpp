// The style and script in the SVG file that make a heat map interactive.
// Names are untrusted: the script reads and writes them as text only, never as markup.
#pragma once

namespace coretap {

inline constexpr char kHeatStyle[] = R"css(
.plane { cursor: crosshair; }
.plane rect { shape-rendering: crispEdges; }
.ground { fill: #efefea; }
.plane rect:not(.ground):hover { stroke: #000; stroke-width: 1px; vector-effect: non-scaling-stroke; }
.choice { fill: #2563eb; opacity: .25; pointer-events: none; }
@media (prefers-color-scheme: dark) {
  .ground { fill: #202327; }
  .plane rect:not(.ground):hover { stroke: #fff; }
}
)css";

inline constexpr char kHeatScript[] = R"js(
"use strict";
(() => {
  const svg = document.currentScript.closest("svg");
  const one = name => svg.querySelector("." + name);
  const heat = one("heat"), detail = one("detail"), reset = one("reset");
  const times = heat.dataset.times.split(" "), ranges = heat.dataset.ranges.split("|");
  const unit = heat.dataset.unit, planes = [...svg.querySelectorAll(".plane")];
  const ticks = [...svg.querySelectorAll(".tick")];
  const box = planes[0].viewBox.baseVal, all = box.width;
  let first = 0, shown = all, from = null;

  const number = (node, name) => +node.getAttribute(name);
  // Values in each column, of each plane.
  const sums = new Map(planes.map(plane => {
    const sum = new Array(all).fill(0);
    for (const cell of plane.children)
      if (cell.dataset.n) sum[number(cell, "x")] += +cell.dataset.n;
    return [plane, sum];
  }));

  const draw = () => {
    for (const plane of planes) {
      plane.setAttribute("viewBox", `${first} 0 ${shown} ${plane.viewBox.baseVal.height}`);
      plane.firstElementChild.setAttribute("x", first);
    }
    for (const tick of ticks) {
      const at = Math.min(times.length - 1, first + Math.round(tick.dataset.part * (shown - 1)));
      tick.textContent = times[at].split(".")[0];
    }
    reset.setAttribute("visibility", shown < all ? "visible" : "hidden");
  };
  const back = () => { first = 0; shown = all; draw(); };

  const column = (plane, event) => {
    const within = plane.firstElementChild.getScreenCTM().inverse();
    const at = Math.floor(new DOMPoint(event.clientX, event.clientY).matrixTransform(within).x);
    return Math.min(first + shown - 1, Math.max(first, at));
  };
  const choice = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  choice.setAttribute("class", "choice");

  for (const plane of planes) {
    plane.addEventListener("mousemove", event => {
      if (from !== null) {
        const to = column(plane, event), left = Math.min(from, to);
        choice.setAttribute("x", left);
        choice.setAttribute("y", 0);
        choice.setAttribute("width", Math.abs(to - from) + 1);
        choice.setAttribute("height", plane.viewBox.baseVal.height);
        plane.append(choice);
        detail.textContent = `${times[left]} to ${times[Math.max(from, to)]}`;
        return;
      }
      const cell = event.target, n = cell.dataset.n;
      if (!n) {
        detail.textContent = times[column(plane, event)];
        return;
      }
      const x = number(cell, "x"), share = 100 * n / sums.get(plane)[x];
      detail.textContent = `${times[x]}, ${ranges[number(cell, "y")]}: ` +
        `${(+n).toLocaleString("en")} ${unit}, ${share.toFixed(1)}% of the interval's`;
    });
    plane.addEventListener("mouseleave", () => { if (from === null) detail.textContent = ""; });
    plane.addEventListener("mousedown", event => {
      if (event.button) return;
      from = column(plane, event);
      event.preventDefault();
    });
    plane.addEventListener("mouseup", event => {
      if (from === null) return;
      const to = column(plane, event), left = Math.min(from, to), width = Math.abs(to - from) + 1;
      from = null;
      choice.remove();
      if (width < 2) return;
      first = left;
      shown = width;
      draw();
    });
  }
  window.addEventListener("mouseup", () => { from = null; choice.remove(); });
  window.addEventListener("keydown", event => { if (event.key === "Escape") back(); });
  reset.addEventListener("click", back);
  reset.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") back();
  });
  one("script").style.display = "inline";
  draw();
})();
)js";

}  // namespace coretap
