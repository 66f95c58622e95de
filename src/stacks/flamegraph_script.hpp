// The style and script in the SVG file that make a flame graph interactive; kPictureScript
// precedes. Names are untrusted: the script reads and writes them as text only, never as markup.
#pragma once

namespace coretap {

inline constexpr char kFlameStyle[] = R"css(
.f { cursor: pointer; }
.f text { pointer-events: none; }
.f rect { width: max(90%, 100% - 1px); }
.root { fill: hsl(50,25%,88%); }
.f:hover > rect { stroke: #000; stroke-width: 1.5px; }
.f.above > rect { opacity: .5; }
.f.above > text { fill: #1c1c1c; }
.f.hit > rect { fill: #c026d3; }
.f.hit > text { fill: #fff; font-weight: bold; }
input { box-sizing: border-box; width: 100%; height: 100%; padding: 0 6px; font: inherit;
  color: #1c1c1c; background: #fff; border: 1px solid #999; border-radius: 3px; }
@media screen and (prefers-color-scheme: dark) {
  .f.above > rect { opacity: .3; }
  .f.above > text { fill: #eee; }
  .f:hover > rect { stroke: #fff; }
  input { color: #e6e6e6; background: #24272b; border-color: #666; }
}
@media print {
  .head { transform: none; }
  .f rect { stroke: #777; stroke-width: .4px; }
}
)css";

inline constexpr char kFlameScript[] = R"js(
  const svg = document.currentScript.closest("svg");
  const one = name => svg.querySelector("." + name);
  const graph = one("graph"), head = one("head"), detail = one("detail"), found = one("found");
  const reset = one("reset"), input = svg.querySelector("input"), box = input.parentNode;
  const texts = [one("title"), ...svg.querySelectorAll(".note")].map(node => [node, node.textContent]);
  const keys = [...svg.querySelectorAll(".key")];
  const alone = svg === document.documentElement;
  const margin = +graph.getAttribute("x");
  const LINE = pictureLine;
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
  const rows = +graph.getAttribute("height");
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
    detail.textContent = cut(words, Math.floor(room / letter));
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
    arrange();
    for (const f of frames) if (f.shown) fit(f);
  }

  // What is above the graph, as high as it needs to be.
  function arrange() {
    const beside = room > 700;
    let y = 24, x = 0;
    box.setAttribute("y", beside ? 8 : 4);
    if (!beside) y += 28;
    for (const [node, text] of texts) {
      const title = node === texts[0][0];
      const columns = title ? (room - (beside ? 250 : 0)) / letter * .75 : room / letter;
      y = pictureLines(node, text, margin, y, columns) + (title ? 4 : 0);
    }
    for (const key of keys) {
      const words = key.lastChild.getComputedTextLength(), width = words ? 17 + words : 15;
      if (x && x + width > room) {
        x = 0;
        y += LINE;
      }
      key.setAttribute("transform", `translate(${margin + x} ${y})`);
      x += width + (words ? 14 : 0);
    }
    if (keys.length) y += LINE;
    detail.setAttribute("y", y);
    for (const node of [found, reset]) node.setAttribute("y", y + LINE);
    y += 2 * LINE;
    head.firstElementChild.setAttribute("height", y - 3);
    graph.setAttribute("y", y);
    svg.setAttribute("height", y + rows + margin);
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
  matchMedia("print").addEventListener("change", resize);
  if (alone) {
    window.addEventListener("scroll", follow);
    window.scrollTo(0, svg.getBoundingClientRect().height);
    follow();
  }
})();
)js";

}  // namespace coretap
