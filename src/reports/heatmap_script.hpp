// The style and script in the SVG file that make a heat map interactive; kPictureScript precedes.
// Names are untrusted: the script reads and writes them as text only, never as markup.
#pragma once

namespace coretap {

inline constexpr char kHeatStyle[] = R"css(
.plane { cursor: crosshair; }
.plane *, .bars, .scale rect { shape-rendering: crispEdges; }
.ground { fill: #efefea; }
.bars { fill: #7b8087; }
.plane rect:not(.ground):hover { stroke: #000; stroke-width: 1px; vector-effect: non-scaling-stroke; }
.choice { fill: #2563eb; opacity: .25; pointer-events: none; }
@media screen and (prefers-color-scheme: dark) {
  .ground { fill: #202327; }
  .bars { fill: #8d949c; }
  .plane rect:not(.ground):hover { stroke: #fff; }
}
)css";

inline constexpr char kHeatScript[] = R"js(
  const svg = document.currentScript.closest("svg");
  const one = name => svg.querySelector("." + name), all = name => [...svg.querySelectorAll("." + name)];
  const heat = one("heat"), detail = one("detail"), reset = one("reset"), scale = one("scale");
  const times = heat.dataset.times.split(" "), ranges = heat.dataset.ranges.split("|");
  const unit = heat.dataset.unit, axis = one("axis"), about = axis.textContent, height = svg.height.baseVal.value;
  const texts = [one("title"), ...all("note")].map(node => [node, node.textContent]);
  const number = (node, name) => +node.getAttribute(name);
  const words = n => n < 1e9 ? n.toLocaleString("en-US") : n.toExponential(1);
  const LINE = pictureLine, MARGIN = 10, CELL = 14, SWATCH = 30, SHADES = 16, TICKS = 8;
  const bottom = number(scale.firstElementChild, "y");  // of the head, before the scale
  let first = 0, shown = 1, from = null, room = 1060, letter = 7.2, each = 1, moved = 0;

  function make(parent, name, attributes, text) {
    const node = document.createElementNS(svg.namespaceURI, name);
    for (const key in attributes) node.setAttribute(key, attributes[key]);
    if (text !== undefined) node.textContent = text;
    parent.append(node);
    return node;
  }

  // A plane, and what is below it.
  const panels = all("plane").map((plane, i) => {
    const sums = all("sums")[i], cells = [...plane.querySelectorAll("[data-n]")];
    return {
      plane, sums, most: all("most")[i], rows: plane.viewBox.baseVal.height,
      ground: plane.firstElementChild, bars: sums.firstElementChild, labels: make(heat, "g", {}),
      catcher: make(sums, "rect", { width: "100%", height: "100%", fill: "none", "pointer-events": "all" }),
      cells: cells.map(c => {
        const [x, y] = c.getAttribute("d").slice(1).split(/[ h]/);
        return { x: +x, y: +y, n: +c.dataset.n };
      }),
    };
  });
  const left = number(panels[0].plane, "x"), columns = panels[0].plane.viewBox.baseVal.width;
  for (const node of [...all("tick"), ...all("sum")]) node.remove();

  // Columns become one until they are wide enough.
  function merged(panel) {
    const cells = new Map(), sums = new Array(Math.ceil(shown / each)).fill(0);
    for (const c of panel.cells) {
      if (c.x < first || c.x >= first + shown) continue;
      const x = Math.floor((c.x - first) / each), key = x * 64 + c.y;
      cells.set(key, (cells.get(key) || 0) + c.n);
      sums[x] += c.n;
    }
    return { cells: [...cells].map(([key, n]) => ({ x: Math.floor(key / 64), y: key % 64, n })), sums };
  }
  const begin = x => first + x * each, end = x => begin(x + 1), last = x => Math.min(first + shown, end(x)) - 1;

  function draw() {
    each = Math.ceil(shown / Math.max(1, Math.floor(room / CELL)));
    const drawn = panels.map(merged), span = drawn[0].sums.length * each;
    const most = drawn.reduce((most, d) => d.cells.reduce((most, c) => Math.max(most, c.n), most), 1);
    const shade = n => Math.min(SHADES - 1, Math.round(Math.log1p(n) / Math.log1p(most) * (SHADES - 1)));
    panels.forEach((panel, i) => {
      const { cells, sums } = drawn[i], full = Math.max(1, ...sums), wide = room / span * each;
      panel.plane.replaceChildren(panel.ground);
      panel.plane.setAttribute("width", room);
      panel.plane.setAttribute("viewBox", `${first} 0 ${span} ${panel.rows}`);
      panel.ground.setAttribute("x", first);
      for (const c of cells)
        make(panel.plane, "rect", { class: "c" + shade(c.n), x: begin(c.x), y: c.y,
          width: end(c.x) - begin(c.x), height: 1, "data-n": c.n, "data-of": sums[c.x] });
      panel.totals = sums;
      panel.sums.setAttribute("width", room);
      panel.sums.setAttribute("viewBox", `${first} 0 ${span} 100`);
      panel.catcher.setAttribute("x", first);
      panel.bars.setAttribute("d", `M${first} 100` +
        sums.map((sum, x) => `V${(100 - 100 * sum / full).toFixed(1)}H${end(x)}`).join("") + "V100z");
      panel.most.textContent = "most: " + words(Math.max(...sums));
      panel.labels.replaceChildren();
      const place = column => left + (column - first) / span * room;
      const y = number(panel.sums, "y");
      if (words(full).length * letter + 6 < wide)
        sums.forEach((sum, x) => make(panel.labels, "text", { class: "dim sum", y: y - 4,
          x: (place(begin(x)) + place(end(x))) / 2, "text-anchor": "middle" }, words(sum)));
      const ticks = Math.max(1, Math.min(TICKS, sums.length, Math.floor(room / (11 * letter))));
      for (let t = 0; t < ticks; t++) {
        const x = ticks > 1 ? Math.round(t * (sums.length - 1) / (ticks - 1)) : 0;
        const middle = (place(begin(x)) + place(end(x))) / 2, half = 4 * letter;
        make(panel.labels, "text", { class: "dim tick", "text-anchor": "middle",
          x: Math.max(left + half, Math.min(left + room - half, middle)),
          y: y + number(panel.sums, "height") + 14 }, (times[last(x)] || "").split(".")[0]);
      }
    });
    const intervals = each * heat.dataset.each, y = number(axis, "y");
    const more = intervals > 1 ? `; it covers ${intervals} intervals` : "";
    const below = pictureLines(axis, about + more, left + room / 2, y, room / letter);
    svg.setAttribute("height", height + moved + below - y - LINE);
    reset.setAttribute("visibility", shown < columns ? "visible" : "hidden");
    legend(most, shade);
  }

  // The least number of each colour.
  function legend(most, shade) {
    const label = scale.firstElementChild, steps = [];
    for (let i = 0, n = 1; i < SHADES; i++) {
      n = Math.max(1, Math.floor(Math.expm1((i - .5) / (SHADES - 1) * Math.log1p(most))) - 1);
      while (n <= most && shade(n) < i) n += Math.max(1, n * 1e-14);  // large numbers have no next one
      if (n <= most && shade(n) === i) steps.push([i, n]);
    }
    scale.replaceChildren(label);
    const x = MARGIN + (label.textContent.length + 1) * letter, y = number(label, "y");
    const swatch = Math.min(SWATCH, (left + room - x) / steps.length);
    const longest = Math.max(...steps.map(([, n]) => words(n).length));
    const apart = 1 + Math.floor((longest + 1) * letter / swatch);
    steps.forEach(([i, n], at) => {
      make(scale, "rect", { class: "c" + i, x: x + at * swatch, y: y - 12, width: swatch, height: 14 });
      if (at + 1 === steps.length || (at % apart === 0 && at + 2 * apart < steps.length)) {
        const last = at > 0 && at + 1 === steps.length;
        make(scale, "text", { class: "dim", x: x + (at + last) * swatch, y: y + LINE - 2,
          "text-anchor": last ? "end" : "start" }, words(n));
      }
    });
  }

  // As wide as the window; what is above the planes is as high as it needs to be.
  function resize() {
    const width = svg.getBoundingClientRect().width;
    if (!width) return;
    room = Math.max(10 * CELL, width - left - MARGIN);
    const inner = left + room - MARGIN;
    let y = 24;
    for (const [node, text] of texts) {
      const title = node === texts[0][0];
      y = pictureLines(node, text, MARGIN, y, inner / letter * (title ? .75 : 1)) + (title ? 4 : 0);
    }
    for (const part of [scale, heat]) part.setAttribute("transform", `translate(0 ${y - bottom})`);
    for (const node of [detail, reset]) node.setAttribute("y", y + 2 * LINE);
    reset.setAttribute("x", left + room);
    moved = y - bottom;
    draw();
  }
  const back = () => { first = 0; shown = columns; draw(); };

  const column = (plane, event) => {
    const within = plane.firstElementChild.getScreenCTM().inverse();
    const at = Math.floor(new DOMPoint(event.clientX, event.clientY).matrixTransform(within).x);
    return Math.min(first + shown - 1, Math.max(first, at));
  };
  const choice = document.createElementNS(svg.namespaceURI, "rect");
  choice.setAttribute("class", "choice");
  const period = x => {
    const a = times[begin(x)], b = times[last(x)];
    return a === b ? a : `${a} to ${b}`;
  };

  for (const panel of panels) {
    const { plane, sums } = panel;
    plane.addEventListener("mousemove", event => {
      const at = column(plane, event);
      if (from !== null) {
        const start = Math.min(from, at);
        choice.setAttribute("x", start);
        choice.setAttribute("y", 0);
        choice.setAttribute("width", Math.abs(at - from) + 1);
        choice.setAttribute("height", panel.rows);
        plane.append(choice);
        detail.textContent = `${times[start]} to ${times[Math.max(from, at)]}`;
        return;
      }
      const cell = event.target, n = cell.dataset.n, x = Math.floor((at - first) / each);
      detail.textContent = period(x);
      if (n) detail.textContent += `, ${ranges[number(cell, "y")]}: ${words(+n)} ${unit}, ` +
        `${(100 * n / cell.dataset.of).toFixed(1)}% of the column's`;
    });
    sums.addEventListener("mousemove", event => {
      const x = Math.floor((column(plane, event) - first) / each);
      detail.textContent = `${period(x)}: ${words(panel.totals[x])} ${unit}`;
    });
    for (const node of [plane, sums])
      node.addEventListener("mouseleave", () => { if (from === null) detail.textContent = ""; });
    plane.addEventListener("mousedown", event => {
      if (event.button) return;
      from = column(plane, event);
      event.preventDefault();
    });
    plane.addEventListener("mouseup", event => {
      if (from === null) return;
      const to = column(plane, event), start = Math.min(from, to), width = Math.abs(to - from) + 1;
      from = null;
      choice.remove();
      if (width < 2) return;
      first = start;
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
  one("script").classList.remove("script");
  svg.removeAttribute("viewBox");
  svg.setAttribute("width", "100%");
  const title = texts[0][0], measured = title.getComputedTextLength() / title.textContent.length * .75;
  if (measured > 0) letter = measured;
  shown = columns;
  resize();
  window.addEventListener("resize", resize);
  matchMedia("print").addEventListener("change", resize);
})();
)js";

}  // namespace coretap
