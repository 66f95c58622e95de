#!/usr/bin/env python3
"""Opens heat maps in headless Chromium, moves and drags in them as a user would, and checks the result.
usage: heatmap_test.py DRAW_PICTURE [TEST...]; exit status 77 if there is no Chromium."""

import xml.etree.ElementTree as ElementTree

from browser import PictureTest, main
from flamegraph_test import HOSTILE, SVG

# For each interval and key: slot -> values.
ORDINARY = [
    {"disk = sda": {4: 10, 7: 1}, "disk = sdb": {4: 5}},
    {"disk = sda": {4: 20}},
    {},
    {"disk = sda": {4: 1000, 10: 3}, "disk = sdb": {5: 7}},
]


def draw(columns, title="biolatency, 4.0 s"):
    parts = ["heatmap", title]
    for i, column in enumerate(columns):
        parts.append(f"{i // 3600 % 24:02}:{i // 60 % 60:02}:{i % 60:02}.000")
        for name, slots in column.items():
            for slot, count in slots.items():
                parts.append(f"\x1f{slot}\x1f{count}\x1f{name}")
    return PictureTest.draw(parts)


class HeatMap(PictureTest):
    def open(self, columns, **more):
        dark = more.pop("dark", False)
        return self.open_svg(draw(columns, **more), dark=dark)

    def cells(self, page, plane=0):
        return page.js(f"""[...document.querySelectorAll(".plane")[{plane}].querySelectorAll("[data-n]")].map(c => {{
            const b = c.getBoundingClientRect();
            return {{n: +c.dataset.n, x: b.x, y: b.y, width: b.width, height: b.height,
                     fill: getComputedStyle(c).fill}}; }})""")

    def plane(self, page, number=0):
        return page.js(f"""(() => {{ const b = document.querySelectorAll(".plane")[{number}].getBoundingClientRect();
            return {{x: b.x, y: b.y, width: b.width, height: b.height}}; }})()""")

    def hover(self, page, cell):
        page.mouse("mouseMoved", cell["x"] + cell["width"] / 2, cell["y"] + cell["height"] / 2)

    def drag(self, page, plane, first, last):
        y = plane["y"] + plane["height"] / 2
        x, z = (plane["x"] + plane["width"] * part for part in (first, last))
        page.mouse("mouseMoved", x, y)
        page.mouse("mousePressed", x, y, button="left", clickCount=1)
        page.mouse("mouseMoved", z, y, button="left", buttons=1)
        page.mouse("mouseReleased", z, y, button="left", clickCount=1)

    def test_places_are_times_and_ranges(self):
        page = self.open(ORDINARY)
        plane, cells = self.plane(page), self.cells(page)
        self.assertEqual([c["n"] for c in cells], [10, 1, 20, 1000, 3])
        for cell, column, slot in zip(cells, (0, 0, 1, 3, 3), (4, 7, 4, 4, 10)):
            self.near(cell["x"], plane["x"] + plane["width"] * column / 4)
            self.near(cell["width"], plane["width"] / 4)
            self.near(cell["y"], plane["y"] + plane["height"] * (10 - slot) / 7)
        self.assertEqual([c["n"] for c in self.cells(page, 1)], [5, 7])
        names = page.js("[...document.querySelectorAll('text.name')].map(t => t.textContent)")
        self.assertIn("disk = sda", names)
        self.assertIn("disk = sdb", names)

    def test_more_is_darker(self):
        for dark in (False, True):
            page = self.open(ORDINARY, dark=dark)
            light = {c["n"]: sum(map(int, c["fill"][4:-1].split(","))) for c in self.cells(page)}
            order = [light[n] for n in (1, 3, 10, 20, 1000)]
            self.assertEqual(order, sorted(order, reverse=not dark))
            self.assertGreater(abs(order[0] - order[-1]), 100)

    def test_the_cell_under_the_mouse_is_told(self):
        page = self.open(ORDINARY)
        cells = self.cells(page)
        for cell, told in ((0, "00:00:00.000, 16 to 31 usecs: 10 values, 90.9% of the column's"),
                           (3, "00:00:03.000, 16 to 31 usecs: 1,000 values, 99.7% of the column's")):
            self.hover(page, cells[cell])
            self.assertEqual(page.text("detail"), told)
        plane = self.plane(page)
        page.mouse("mouseMoved", plane["x"] + plane["width"] * 0.6, plane["y"] + 5)
        self.assertEqual(page.text("detail"), "00:00:02.000")
        page.mouse("mouseMoved", 5, 5)
        self.assertEqual(page.text("detail"), "")

    def test_dragging_zooms_in_time(self):
        page = self.open([{"": {4: i + 1}} for i in range(100)])
        before, plane = self.cells(page), self.plane(page)
        # A column is two intervals, so that it is wide enough.
        self.assertEqual([c["n"] for c in before], [4 * i + 3 for i in range(50)])
        self.near(before[0]["width"], plane["width"] / 50, 1)
        self.assertIn("it covers 2 intervals", page.text("axis"))
        self.hover(page, before[1])
        self.assertEqual(page.text("detail"), "00:00:02.000 to 00:00:03.000, 16 to 31 usecs: 7 values, 100.0% of the column's")
        visible = "getComputedStyle(document.querySelector('.reset')).visibility"
        self.assertEqual(page.js(visible), "hidden")
        self.drag(page, plane, 0.205, 0.395)  # 20 to 39
        cells = self.cells(page)
        self.assertEqual([c["n"] for c in cells], list(range(21, 41)))
        self.near(cells[0]["x"], plane["x"])
        self.near(cells[0]["width"], plane["width"] / 20)
        self.assertNotIn("it covers", page.text("axis"))
        self.assertEqual(page.js(visible), "visible")
        ticks = page.js("[...document.querySelectorAll('.tick')].map(t => t.textContent)")
        self.assertEqual((ticks[0], ticks[-1]), ("00:00:20", "00:00:39"))
        self.hover(page, cells[1])
        self.assertTrue(page.text("detail").startswith("00:00:21.000, "))
        self.drag(page, plane, 0.5, 0.7)
        self.assertEqual(self.cells(page)[0]["n"], 31)
        page.click_on(".reset")
        self.assertEqual(self.cells(page), before)
        self.drag(page, plane, 0.9, 0.1)  # to the left, too
        self.near(self.cells(page)[0]["n"], 11 + 12)
        page.key("Escape", code=27)
        self.assertEqual(self.cells(page), before)
        self.drag(page, plane, 0.5, 0.5)  # a click
        self.assertEqual(self.cells(page), before)

    # Many intervals, in which not all have the same values; and few.
    MANY = [{"disk = sda": {s: (i * 37 + s * 11) % 97 + 1 for s in range(2, 14)}, "disk = sdb": {5: 1 + i % 3}} for i in range(401)]

    def test_cells_are_large_enough(self):
        for columns in (self.MANY, ORDINARY):
            page = self.open(columns)
            for _ in self.each_view(page):
                for plane in (0, 1):
                    cells = self.cells(page, plane)
                    self.assertGreaterEqual(min(c["width"] for c in cells), 13.99)
                    self.assertGreaterEqual(min(c["height"] for c in cells), 13.99)
                    planted = sum(sum(slots.values()) for c in columns for name, slots in c.items()
                                  if name == ("disk = sda", "disk = sdb")[plane])
                    self.assertEqual(sum(c["n"] for c in cells), planted)

    def test_totals_of_columns(self):
        page = self.open(ORDINARY)
        self.assertEqual(page.js("[...document.querySelectorAll('.sum')].map(t => t.textContent)"),
                         ["11", "20", "0", "1,003", "5", "0", "0", "7"])
        self.assertEqual(page.js("[...document.querySelectorAll('.most')].map(t => t.textContent)"), ["most: 1,003", "most: 7"])
        sums = page.js("""(() => { const b = document.querySelector(".sums").getBoundingClientRect();
            return [b.x, b.y, b.width, b.height]; })()""")
        for column, told in ((0, "00:00:00.000: 11 values"), (2, "00:00:02.000: 0 values"), (3, "00:00:03.000: 1,003 values")):
            page.mouse("mouseMoved", sums[0] + sums[2] * (column + .5) / 4, sums[1] + sums[3] / 2)
            self.assertEqual(page.text("detail"), told)
        # As high as the total.
        heights = page.js("""[0, 1, 2, 3].map(x => { const bars = document.querySelector(".bars");
            let y = 0; while (y < 100 && !bars.isPointInFill(new DOMPoint(x + .5, y + .5))) y++; return 100 - y; })""")
        self.assertEqual(heights[3], 100)
        self.near(heights[0], 100 * 11 / 1003, 1)
        self.assertEqual(heights[2], 0)

    def legend(self, page):
        """[(colour, the number from which it holds, or nothing), ...]"""
        return page.js("""[...document.querySelectorAll(".scale rect")].map(r => {
            const box = r.getBoundingClientRect();
            const label = [...document.querySelectorAll(".scale text")].slice(1).find(t => {
                const b = t.getBoundingClientRect(), end = t.getAttribute("text-anchor") === "end";
                return Math.abs(end ? b.right - box.right : b.left - box.left) < 2; });
            return [getComputedStyle(r).fill, label ? +label.textContent.replaceAll(",", "") : null]; })""")

    def test_the_legend_has_the_colours_with_their_counts(self):
        counts = [1, 2, 3, 5, 9, 14, 30, 77, 200, 555, 1000, 4321, 9876]
        for columns in ([{"": {s: n for s, n in enumerate(counts)}}], self.MANY):
            for dark in (False, True):
                page = self.open(columns, dark=dark)
                legend = self.legend(page)
                colours = [colour for colour, _ in legend]
                self.assertEqual(len(set(colours)), len(colours))
                labelled = [(i, least) for i, (_, least) in enumerate(legend) if least is not None]
                self.assertGreater(len(labelled), 3)
                self.assertEqual((labelled[0], labelled[-1][0]), ((0, 1), len(legend) - 1))
                for cell in self.cells(page):
                    at = colours.index(cell["fill"])
                    for i, least in labelled:
                        self.assertEqual(at >= i, cell["n"] >= least, f"{cell['n']}: {at}, from {least}: {i}")

    def test_the_legend_without_a_script(self):
        """Is the same, unless the script makes columns wider."""
        root = ElementTree.fromstring(draw(ORDINARY))
        scale = next(e for e in root.iter(f"{SVG}g") if e.get("class") == "scale")
        page = self.open(ORDINARY)
        self.assertEqual([t.text for t in scale.iter(f"{SVG}text")],
                         page.js("[...document.querySelectorAll('.scale text')].map(t => t.textContent)"))
        self.assertEqual([r.get("class") for r in scale.iter(f"{SVG}rect")],
                         page.js("[...document.querySelectorAll('.scale rect')].map(r => r.getAttribute('class'))"))

    def test_axes_have_titles_with_units(self):
        page = self.open(ORDINARY)
        texts = page.js("[...document.querySelectorAll('text')].map(t => t.textContent)")
        self.assertEqual(texts.count("duration (usecs)"), 2)
        self.assertIn("hours:minutes:seconds", page.text("axis"))
        self.assertEqual(page.js("[...document.querySelectorAll('.tick')].map(t => t.textContent)"),
                         [f"00:00:0{i}" for i in range(4)] * 2)

    def test_the_largest_picture(self):
        page = self.open([{f"key = {k}": {s: i + k + 1 for s in range(40)} for k in range(24)} for i in range(300)])
        self.assertEqual(len(self.cells(page, 23)), 75 * 40)
        self.drag(page, self.plane(page), 0.1, 0.3)
        self.assertGreater(self.cells(page)[0]["width"], 14)

    def test_printed(self):
        self.check_printed(self.open(self.MANY), ".plane")

    def test_readable(self):
        title = "biolatency --heatmap out.svg --disk sda --interval 1 --duration 400 -D, 401.0 s, Linux 6.12.3-amd64"
        for columns in (self.MANY, ORDINARY, [{}], [{"": {63: 2**60}}]):
            page = self.open(columns, title=title)
            for _ in self.each_view(page):
                self.check_readable(page, ".plane, .sums, .scale rect", 8)

    def test_hostile_names(self):
        names = [n.decode("utf-8", "surrogateescape") for n in HOSTILE if b"\0" not in n][:20]
        page = self.open([{name: {4: 1} for name in names}], title="</title><script>window.harm=12</script>")
        for plane in range(len(names)):
            page.js(f"document.querySelectorAll('.plane')[{plane}].scrollIntoView()")
            for cell in self.cells(page, plane):
                self.hover(page, cell)
        self.check_harmless(page, "path")

    def test_long_runs_are_drawn_whole(self):
        root = ElementTree.fromstring(draw([{"": {i % 20: 1}} for i in range(5000)]))
        cells = [e for e in root.iter(f"{SVG}path") if e.get("data-n")]
        self.assertEqual(sum(int(c.get("data-n")) for c in cells), 5000)
        self.assertLess(max(int(c.get("d")[1:].split()[0]) for c in cells), 1200)
        self.assertIn("a column covers 8 intervals", "".join(root.itertext()))

    def test_keys_beyond_the_most_share_a_panel(self):
        root = ElementTree.fromstring(draw([{f"key = {i}": {4: 1} for i in range(40)}] * 2))
        planes = [e for e in root.iter(f"{SVG}svg") if e.get("class") == "plane"]
        self.assertEqual(len(planes), 24)
        sums = [sum(int(c.get("data-n")) for c in plane if c.get("data-n")) for plane in planes]
        self.assertEqual(sums, [2] * 23 + [34])
        self.assertIn("the last 17 histograms are drawn as one", "".join(root.itertext()))

    def test_nothing_happened(self):
        page = self.open([{}, {}])
        self.assertEqual(self.cells(page), [])
        self.assertEqual(page.js("document.querySelectorAll('.plane').length"), 1)


if __name__ == "__main__":
    main(__doc__)
