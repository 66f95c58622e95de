#!/usr/bin/env python3
"""Opens flame graphs in headless Chromium, clicks and types in them as a user would, and checks the result.
usage: flamegraph_test.py DRAW_PICTURE [TEST...]; exit status 77 if there is no Chromium."""

import colorsys
import functools
import http.server
import itertools
import math
import threading
import xml.etree.ElementTree as ElementTree
from pathlib import Path

from browser import Page, PictureTest, main

SVG = "{http://www.w3.org/2000/svg}"


def draw(stacks, title="a flame graph", by="code"):
    """stacks: (value, [frame, ...]); a frame is its kind ("u", "wk") and its name, as text or bytes."""
    return PictureTest.draw(["colours", by, title, *(b"\x1f".join([str(value).encode(), *(f if isinstance(f, bytes) else f.encode() for f in frames)])
                                      for value, frames in stacks)])


class FlamePage(Page):
    def frames(self):
        """The visible frames, by name: left, width, right, top in pixels, label, whether it is a hit."""
        return self.js("""Object.fromEntries([...document.querySelectorAll(".f")].flatMap(f => {
            const box = f.getBoundingClientRect(), label = f.querySelector("text");
            if (getComputedStyle(f).display === "none") return [];
            return [[f.querySelector("title").textContent.split("\\n")[0], {
                left: box.left, width: box.width, right: box.right, top: box.top, height: box.height,
                label: label ? label.textContent : "", hit: f.classList.contains("hit"),
                faded: +getComputedStyle(f.querySelector("rect")).opacity < 1}]];
        }))""")

    def hover(self, name):
        box = self.frames()[name]
        x, y = box["left"] + box["width"] / 2, box["top"] + box["height"] / 2
        self.mouse("mouseMoved", x, y)
        return x, y

    def click(self, name):
        self.click_at(*self.hover(name))

    def search(self, words):
        """By keys alone."""
        self.key("Escape", code=27)
        self.key("f", modifiers=2)
        self.call("Input.insertText", text=words)

    def hits(self):
        return sorted(name for name, f in self.frames().items() if f["hit"])


ORDINARY = [
    (400, ["tnginx", "umain", "uparse", "umalloc"]),
    (200, ["tnginx", "umain", "uparse"]),
    (100, ["tnginx", "umain", "uwrite", "kvfs_write", "kschedule"]),
    (100, ["tnginx", "umain", "uwrite", "kvfs_write", "kschedule", "m--", "wktry_to_wake_up", "wusend", "wtredis"]),
    (150, ["tjava", "umalloc", "umalloc_inner"]),
    (50, ["tjava", "uoperator<<(A&&)"]),
]

# Each would set window.harm, open a dialog, or request something, if it were interpreted as more than text.
HOSTILE = [
    b"</title></svg><script>window.harm=1</script>",
    b"]]></style><script>window.harm=2</script>",
    b"<script>window.harm=3</script>",
    b"<image href='http://127.0.0.1:9/x.png' onerror='window.harm=4'/>",
    b"\" onmouseover=\"window.harm=5\" x=\"",
    b"' onclick='alert(6)' x='",
    b"<foreignObject><iframe xmlns='http://www.w3.org/1999/xhtml' src='javascript:parent.harm=7'/></foreignObject>",
    b"&lt;script&gt;window.harm=8&lt;/script&gt;",
    b"<!DOCTYPE x [<!ENTITY e SYSTEM 'file:///etc/passwd'>]>&e;",
    b"<?xml-stylesheet href='http://127.0.0.1:9/x.css'?>",
    b"javascript:window.harm=9",
    b"${window.harm=10}`",
    b"\\u0022;window.harm=11;//",
    b"__proto__", b"constructor", b"hasOwnProperty",
    b"\xff\xfe\xc0\x80\xed\xa0\x80\xef\xbf\xbe\xef\xbf\xbf", b"\x01\x1b[2J\x7f\r\n\t",
    b"\xe2\x80\xaemoc.elpmaxe", b"Z\xcc\xa1\xcc\xa2\xcc\xa7\xcc\xa8" * 40, b"\xef\xb7\xbd" * 200,
    b"x" * 100_000, b"(((((((((((((((((((a+)+)+)+)+$", b"",
]


# A name for each kind of code, and the hues that flame graphs commonly have for it, in degrees.
MIXED = [
    (300, ["tjava", "llibc.so.6!start_thread", "pjava!java_main", "llibjvm.so!JavaCalls::call", "j[anon]!Server::run",
           "i[anon]!HashMap::get", "j[anon]!Server::write", "u[unknown]", "kksys_write", "kext4_file_write_iter"]),
    (200, ["tjava", "llibc.so.6!start_thread", "j[anon]!Server::accept", "ksys_recvfrom", "kschedule", "m--",
           "wktry_to_wake_up", "wusend", "wtredis"]),
    (100, ["tnginx", "pnginx!main", "llibssl.so.3!SSL_read", "s0[cpu]"]),
]
HUES = {"java_main": (0, 14), "main": (0, 14), "start_thread": (48, 60), "SSL_read": (48, 60), "Server::run": (120, 160),
        "Server::write": (120, 160), "HashMap::get": (180, 200), "ksys_write": (25, 42), "schedule": (25, 42),
        "try_to_wake_up": (255, 300), "send": (255, 300)}
LEGEND = {"task": "java", "user": "[unknown]", "program": "main", "library": "SSL_read", "JIT-compiled": "Server::run",
          "inlined": "HashMap::get", "kernel": "schedule", "mark": "--", "CPU": "[cpu]", "waker": "redis",
          "waker's user": "send", "waker's kernel": "try_to_wake_up"}
STATES = [(10 + i, ["tt", "pprogram!main", f"s{i}[state {i}]"]) for i in range(9)]

# What people with each kind of colour blindness see, of linear RGB (Machado, Oliveira and Fernandes, 2009).
BLIND = {
    "none": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protan": ((.152286, 1.052583, -.204868), (.114503, .786281, .099216), (-.003882, -.048116, 1.051998)),
    "deutan": ((.367322, .860646, -.227968), (.280085, .672501, .047413), (-.011820, .042940, .968881)),
    "tritan": ((1.255528, -.076749, -.178779), (-.078411, .930809, .147602), (.004733, .691367, .303900)),
}


def seen_as(rgb, blind):
    """CIE L*a*b* of a colour as seen."""
    linear = [v / 3294.6 if v <= 10.31 else ((v / 255 + .055) / 1.055) ** 2.4 for v in rgb]
    r, g, b = (min(1, max(0, sum(m * v for m, v in zip(row, linear)))) for row in blind)
    xyz = ((.4124 * r + .3576 * g + .1805 * b) / .9505, .2126 * r + .7152 * g + .0722 * b,
           (.0193 * r + .1192 * g + .9505 * b) / 1.089)
    x, y, z = (v ** (1 / 3) if v > .008856 else 7.787 * v + 16 / 116 for v in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


class FlameGraph(PictureTest):
    def file(self, stacks, **more):
        return super().file(stacks if isinstance(stacks, bytes) else draw(stacks, **more))

    def open(self, stacks, dark=False, **more):
        return self.open_svg(draw(stacks, **more), FlamePage, dark)

    def test_shares_are_widths(self):
        frames = self.open(ORDINARY).frames()
        all_of_it = frames["all"]["width"]
        self.near(all_of_it, 1180)
        for name, part in (("nginx", .8), ("java", .2), ("parse", .6), ("write", .2), ("redis", .1), ("schedule", .2)):
            self.near(frames[name]["width"], part * all_of_it)
        self.assertGreater(frames["all"]["top"], frames["nginx"]["top"])
        self.assertEqual(frames["all"]["label"], "all")

    def test_a_click_zooms_and_another_goes_back(self):
        page = self.open(ORDINARY)
        before = page.frames()
        visibility = "getComputedStyle(document.querySelector('.reset')).visibility"
        self.assertEqual(page.js(visibility), "hidden")
        page.click("write")
        self.assertEqual(page.js(visibility), "visible")
        frames = page.frames()
        for name in ("write", "vfs_write", "schedule", "nginx", "main", "all"):
            self.near(frames[name]["width"], 1180)
        self.near(frames["redis"]["width"], 590)
        self.assertNotIn("parse", frames)
        self.assertNotIn("java", frames)
        self.assertTrue(frames["main"]["faded"])
        self.assertFalse(frames["write"]["faded"])
        page.click("main")  # below
        self.near(page.frames()["parse"]["width"], 1180 * 600 / 800)
        self.assertNotIn("java", page.frames())
        page.click_on(".reset")
        self.assertEqual(page.frames(), before)
        for back in (lambda: page.click("all"), lambda: page.key("Escape", code=27)):
            page.click("java")
            back()
            self.assertEqual(page.frames(), before)

    def test_the_frame_under_the_mouse_is_told(self):
        page = self.open(ORDINARY)
        for zoomed, name, told in (("all", "write", "20.00% of all, 200 samples: write"),
                                   ("all", "operator<<(A&&)", "5.00% of all, 50 samples: operator<<(A&&)"),
                                   ("main", "write", "20.00% of all, 25.00% of the zoomed, 200 samples: write")):
            page.click(zoomed)
            page.hover(name)
            self.assertEqual(page.text("detail"), told)

    def test_search(self):
        page = self.open(ORDINARY)
        for words, hits, found in (
                # 400 + 150: frames above a hit are not counted twice. "malloc" occurs twice, once in each process.
                ("malloc", ["malloc", "malloc_inner"], "3 frames, 55.00% of all"),
                ("^(parse|write)$", ["parse", "write"], "2 frames, 80.00% of all"),
                ("MAIN", [], "0 frames, 0.00% of all"),
                ("operator<<(A&&)", ["operator<<(A&&)"], "1 frame, 5.00% of all"),  # as a regular expression it does not match itself
                ("operator<<(", ["operator<<(A&&)"], "1 frame, 5.00% of all"),  # not a regular expression
                ("all$", [], "0 frames, 0.00% of all")):  # the root is not a name
            page.search(words)
            self.assertEqual((page.hits(), page.text("found")), (hits, found), words)
        page.key("Escape", code=27)
        self.assertEqual((page.hits(), page.text("found")), ([], ""))
        page.click_on("input")  # by the mouse
        page.call("Input.insertText", text="vfs_")
        self.assertEqual(page.hits(), ["vfs_write"])

    def test_search_in_the_zoomed(self):
        page = self.open(ORDINARY)
        page.search("malloc")
        page.click("java")
        self.assertEqual(page.text("found"), "3 frames, 55.00% of all, 75.00% of the zoomed")
        for words, found in (("java", "1 frame, 20.00% of all, 100.00% of the zoomed"),
                             ("nginx", "1 frame, 80.00% of all, 0.00% of the zoomed")):
            page.search(words)
            self.assertEqual(page.text("found"), found)

    def test_hostile_names(self):
        stacks = [(10, ["tcomm", b"u" + name, b"k" + name]) for name in HOSTILE]
        stacks += [(10, [b"t" + name]) for name in HOSTILE]
        page = self.open(stacks, title="</title><script>window.harm=12</script>")
        own = {"class", "x", "y", "width", "height", "data-v", "data-unit", "fill", "rx", "xmlns", "transform", "role",
               "text-anchor", "tabindex", "visibility", "type", "placeholder", "aria-label", "spellcheck", "style"}
        attributes = "[...document.querySelectorAll('*')].flatMap(e => [...e.attributes].map(a => a.name))"
        self.assertLessEqual(set(page.js(attributes)), own)
        # Hovered over, zoomed into and searched for, each.
        for name in ("<script>window.harm=3</script>", "__proto__", "${window.harm=10}`", "javascript:window.harm=9",
                     "' onclick='alert(6)' x='"):
            page.hover(name)
            self.assertTrue(page.text("detail").endswith(name), page.text("detail"))
            page.click(name)
            page.search(name)
            self.assertIn(name, page.hits())
            page.key("Escape", code=27)
            page.key("Escape", code=27)
        self.assertLessEqual(set(page.js(attributes)), own)
        self.check_harmless(page, "foreignObject", "input")

    def test_labels_stay_in_their_boxes(self):
        stacks = [(1 + i % 7, [b"t" + name]) for i, name in enumerate(HOSTILE)]
        stacks += [(3, ["t" + "\u65e5\u672c\u8a9e" * 20]), (3, ["t" + "w" * 60]), (3, ["t" + "iiii" * 40])]
        page = self.open(stacks)
        wide = page.js("""[...document.querySelectorAll(".f")].filter(f => {
            const t = f.querySelector("text");
            return t && /^[ -~\\u2026\\u3000-\\u9fff]*$/.test(t.textContent) &&
                t.getComputedTextLength() > f.getBoundingClientRect().width;
        }).map(f => f.querySelector("text").textContent)""")
        self.assertEqual(wide, [])
        self.assertEqual(page.js("getComputedStyle(document.querySelectorAll('.f')[1]).overflow"), "hidden",
                         "what is wider than thought is cut off")

    def test_as_wide_as_the_window(self):
        page = self.open(ORDINARY)
        self.assertEqual(page.frames()["malloc_inner"]["label"], "malloc_inner")
        page.call("Emulation.setDeviceMetricsOverride", width=420, height=500, deviceScaleFactor=1, mobile=False)
        page.wait(lambda: abs(page.frames()["all"]["width"] - 400) < 2, "the new width")
        self.assertEqual(page.frames()["malloc_inner"]["label"], "malloc\u2026", "labels become shorter")
        page.click("write")
        self.near(page.frames()["write"]["width"], 400)

    def test_deep_stacks_begin_at_the_bottom(self):
        frames = ["tdeep"] + [f"wkf{i}" for i in range(2300)]
        page = self.open([(1, frames)])
        self.assertGreater(page.js("window.scrollY"), 38_000)
        # The head and the outermost frames are both visible.
        self.assertLess(page.frames()["all"]["top"], 800)
        self.near(page.js("document.querySelector('.head').getBoundingClientRect().top"), 0)
        page.click("f3")
        page.hover("f5")
        self.assertIn(": f5", page.text("detail"))

    def test_many_frames(self):
        stacks = [(1, [f"tt{i % 11}", f"uf{i % 301}", f"kg{i}"]) for i in range(8000)]
        page = self.open(stacks)
        self.assertGreater(page.js("document.querySelectorAll('.f').length"), 8000)
        page.click("t3")
        self.near(page.frames()["t3"]["width"], 1180)
        page.search("^g")
        self.assertRegex(page.text("found"), "^8000 frames, 100.00% of all")

    def test_dark(self):
        for dark in (False, True):
            page = self.open(ORDINARY, dark=dark)
            colour = "getComputedStyle(document.querySelector('{}')).fill.match(/\\d+/g).map(Number)"
            ground, ink = page.js(colour.format(".bg")), page.js(colour.format(".title"))
            self.assertEqual(max(ground) < 64, dark)
            self.assertGreater(abs(sum(ink) - sum(ground)) / 3, 150)
            # Labels are on their frames, which are light in both.
            label = page.js("getComputedStyle(document.querySelector('.f text')).fill.match(/\\d+/g).map(Number)")
            frame = page.js("getComputedStyle(document.querySelector('.f rect')).fill.match(/\\d+/g).map(Number)")
            self.assertGreater(sum(frame) - sum(label), 300)

    FILLS = """Object.fromEntries([...document.querySelectorAll("%s")].map(e => [
        e.querySelector("%s").textContent.split("\\n")[0],
        getComputedStyle(e.querySelector("rect")).fill.match(/\\d+/g).map(Number)]))"""

    def test_colours_tell_the_kind_of_code(self):
        page = self.open(MIXED)
        fills, legend = page.js(self.FILLS % (".f", "title")), page.js(self.FILLS % (".key", "text"))
        for name, (least, most) in HUES.items():
            hue = 360 * colorsys.rgb_to_hls(*(v / 255 for v in fills[name]))[0]
            self.assertTrue(least <= hue <= most, f"{name}: {hue}")
        # The legend has what occurs, and nothing else; a frame is one of a few shades of its colour.
        self.assertEqual(set(legend), set(LEGEND))
        for meaning, name in LEGEND.items():
            nearest = min(legend, key=lambda m: math.dist(seen_as(legend[m], BLIND["none"]), seen_as(fills[name], BLIND["none"])))
            self.assertEqual(nearest, meaning, name)

    def test_colours_for_the_colour_blind(self):
        legend = self.open(MIXED).js(self.FILLS % (".key", "text"))
        for kind, matrix in BLIND.items():
            for a, b in itertools.combinations(legend, 2):
                apart = math.dist(seen_as(legend[a], matrix), seen_as(legend[b], matrix))
                self.assertGreater(apart, 14, f"{a} and {b}: {kind}")

    def test_colours_tell_the_object(self):
        page = self.open(MIXED, by="object")
        fills, legend = page.js(self.FILLS % (".f", "title")), page.js(self.FILLS % (".key", "text"))
        self.assertLessEqual({"libc.so.6", "java", "libjvm.so", "[anon]", "[kernel]", "nginx", "libssl.so.3"}, set(legend))
        for one, other, same in (("Server::run", "Server::write", True), ("start_thread", "SSL_read", False),
                                 ("main", "java_main", False), ("ksys_write", "try_to_wake_up", True)):
            near = math.dist(seen_as(fills[one], BLIND["none"]), seen_as(fills[other], BLIND["none"])) < 12
            self.assertEqual(near, same, (one, other))

    def test_colours_tell_the_name(self):
        one = self.open(MIXED, by="name").js(self.FILLS % (".f", "title"))
        other = self.open(ORDINARY + [(5, ["tt", "kmain", "uschedule"])], by="name").js(self.FILLS % (".f", "title"))
        self.assertEqual(one["main"], other["main"])
        self.assertEqual(one["schedule"], other["schedule"])
        self.assertGreater(len({tuple(fill) for fill in one.values()}), 10)

    def test_readable(self):
        title = "offcputime --min-block-time 1000 --color-by code -- make ..., 10.0 s, Linux 6.12.3-amd64"
        for by in ("code", "object", "name"):
            page = self.open(MIXED + STATES, title=title, by=by)
            for width, media in self.each_view(page):
                self.check_readable(page, ".key rect, .graph" + (", input" if media == "screen" else ""), 20)
                self.assertEqual(page.js("getComputedStyle(document.querySelector('.live')).display") == "none",
                                 media == "print")
                self.near(page.frames()["all"]["width"], width - 20)
        page = self.open(MIXED + STATES)
        for zoomed, words in (("main", ""), ("HashMap::get", ""), ("all", "Server")):  # faded, and found
            page.click(zoomed)
            page.search(words)
            for _ in self.each_view(page):
                self.check_readable(page, "input", 15)

    def test_printed(self):
        self.check_printed(self.open(MIXED), ".graph")

    def test_long_words_are_not_cut(self):
        page = self.open(ORDINARY, title="profile --comm " + "x" * 300 + " --cgroup /a/b " + "y" * 50)
        for _ in self.each_view(page):
            self.check_readable(page, "input, .graph", 5)

    def test_in_a_page(self):
        """As an <object>: from a server, as local files may not access each other."""
        self.file(ORDINARY)
        name = f"{self.id().rpartition('.')[2]}"
        (Path(self.scratch.name) / "page.html").write_text(
            f"<!doctype html><link rel=icon href=data:,><object data='{name}.svg' width=900 height=400></object>")
        handler = functools.partial(QuietHandler, directory=self.scratch.name)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        page = Page(self.browser, f"http://127.0.0.1:{server.server_port}/page.html")
        self.addCleanup(page.close)
        inner = "document.querySelector('object').contentDocument"
        page.wait(lambda: page.js(f"!!({inner} && {inner}.querySelector('.f'))"), "the object")
        width = f"[...{inner}.querySelectorAll('.f')].find(f => f.textContent.startsWith('java'))" \
            ".getBoundingClientRect()"
        self.near(page.js(f"{width}.width"), 880 * .2)
        x, y, left, top = page.js(f"(() => {{ const b = {width}, o = document.querySelector('object')"
                                  ".getBoundingClientRect(); return [b.x + 20, b.y + 5, o.x, o.y]; })()")
        page.mouse("mouseMoved", left + x, top + y)
        page.click_at(left + x, top + y)
        self.near(page.js(f"{width}.width"), 880)
        self.assertEqual(page.complaints(), [])

    def test_without_a_script(self):
        """The file is well-formed for another reader, and complete without running the script."""
        root = ElementTree.fromstring(draw(ORDINARY + [(5, [b"t" + name]) for name in HOSTILE]))
        frames = [e for e in root.iter(f"{SVG}svg") if e.get("class") == "f"]
        values = {f.find(f"{SVG}title").text.split("\n")[0]: int(f.get("data-v")) for f in frames}
        self.assertEqual(values["all"], 1000 + 5 * len(HOSTILE))
        self.assertEqual(values["<script>window.harm=3</script>"], 5)
        self.assertEqual([e.tag for e in root.iter(f"{SVG}script")], [f"{SVG}script"])
        labels = [t.text for f in frames for t in f.iter(f"{SVG}text")]
        self.assertIn("parse", labels)


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    main(__doc__)
