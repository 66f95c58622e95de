"""A headless Chromium for the tests of pictures: opened, clicked and typed into as by a user."""

import functools
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

PATIENCE = 100  # seconds; only hangs take that long
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless_shell")


@functools.cache
def chromium():
    """One that runs: on Ubuntu the package may only refer to another one."""
    for path in filter(None, map(shutil.which, NAMES)):
        if subprocess.run([path, "--version"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL).returncode == 0:
            return path
    return None


class Browser:
    """Chromium by its DevTools protocol over two pipes: JSON, each message ended by a NUL."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="coretap-browser.")
        to_browser, self.out = (os.dup(f) for f in os.pipe())
        self.inp, from_browser = (os.dup(f) for f in os.pipe())

        def give_pipes():
            # Moved away first: either may already be 3 or 4.
            ends = [os.dup2(end, 100 + i, inheritable=False) for i, end in enumerate((to_browser, from_browser))]
            for i, end in enumerate(ends):
                os.dup2(end, 3 + i)

        self.log = open(os.path.join(self.profile, "log"), "wb")
        self.process = subprocess.Popen(
            [chromium(), "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-sync",
             "--disable-component-update", "--mute-audio", "--hide-scrollbars", "--window-size=1200,800",
             "--force-device-scale-factor=1", f"--user-data-dir={self.profile}/data", "--remote-debugging-pipe",
             "about:blank"],
            stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, close_fds=False, start_new_session=True,
            preexec_fn=give_pipes)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.last, self.events = b"", 0, []

    def close(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        self.log.close()
        shutil.rmtree(self.profile, ignore_errors=True)

    def receive(self, deadline):
        while b"\0" not in self.buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.inp], [], [], left)[0]:
                raise TimeoutError("the browser does not answer")
            part = os.read(self.inp, 1 << 16)
            if not part:
                raise EOFError(f"the browser has ended:\n{Path(self.log.name).read_text(errors='replace')}")
            self.buffer += part
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        self.last += 1
        message = {"id": self.last, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self.receive(deadline)
            if answer.get("id") != self.last:
                self.events.append(answer)
            elif "error" in answer:
                raise RuntimeError(f"{method}: {answer['error']}")
            else:
                return answer["result"]


class Page:
    """A tab, with all its errors and all its requests."""

    def __init__(self, browser, url, dark=False):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.target = target
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=1200, height=800, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])
        self.call("Page.navigate", url=url)
        self.wait(lambda: self.saw("Page.loadEventFired"), "the page to load")

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)

    def seen(self, method):
        return [e["params"] for e in self.browser.events
                if e.get("sessionId") == self.session and e.get("method") == method]

    def saw(self, method):
        self.call("Runtime.evaluate", expression="0")  # events come before its answer
        return bool(self.seen(method))

    @staticmethod
    def wait(condition, what):
        deadline = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > deadline:
                raise TimeoutError(f"waited in vain for {what}")
            time.sleep(0.02)

    def complaints(self):
        found = [e["exceptionDetails"]["text"] for e in self.seen("Runtime.exceptionThrown")]
        found += [f"console: {e['args']}" for e in self.seen("Runtime.consoleAPICalled")]
        found += [f"log: {e['entry']['text']}" for e in self.seen("Log.entryAdded")]
        return found + [f"dialog: {e['message']}" for e in self.seen("Page.javascriptDialogOpening")]

    def requests(self):
        return [e["request"]["url"] for e in self.seen("Network.requestWillBeSent")]

    def js(self, expression, wait=False):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=wait)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def text(self, name):
        return self.js(f"document.querySelector('.{name}').textContent")

    def mouse(self, kind, x, y, **more):
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click_at(self, x, y):
        self.mouse("mousePressed", x, y, button="left", clickCount=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)

    def click_on(self, selector):
        x, y = self.js(f"""(() => {{ const b = document.querySelector("{selector}").getBoundingClientRect();
            return [b.x + b.width / 2, b.y + b.height / 2]; }})()""")
        self.mouse("mouseMoved", x, y)
        self.click_at(x, y)

    def key(self, key, modifiers=0, code=None):
        for kind in ("rawKeyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, modifiers=modifiers,
                      windowsVirtualKeyCode=code or ord(key.upper()[0]))


# All that is read: texts with something in them, not those that only appear when the mouse is over something.
VISIBLE = """const seen = [...document.querySelectorAll("text")].filter(t => {
    const style = getComputedStyle(t), box = t.getBoundingClientRect();
    return t.textContent.trim() && style.visibility !== "hidden" && box.width > 0; });"""

# Texts whose contrast with what is behind them is below 4.5 to 1, as the WCAG compute it.
FAINT = """(() => {
    %s
    const parts = colour => colour.match(/[\\d.]+/g).map(Number);
    const linear = v => v <= 10.31 ? v / 3294.6 : Math.pow((v / 255 + .055) / 1.055, 2.4);
    const light = c => .2126 * linear(c[0]) + .7152 * linear(c[1]) + .0722 * linear(c[2]);
    const ground = parts(getComputedStyle(document.querySelector(".bg")).fill);
    const bad = [];
    for (const t of seen) {
        let behind = ground;
        if (t.closest(".f")) {
            const style = getComputedStyle(t.parentNode.querySelector("rect"));
            behind = parts(style.fill).slice(0, 3).map((v, i) => v * style.opacity + ground[i] * (1 - style.opacity));
        }
        const both = [light(parts(getComputedStyle(t).fill)), light(behind)].sort((a, b) => b - a);
        const ratio = (both[0] + .05) / (both[1] + .05);
        if (ratio < 4.5) bad.push(t.textContent + ": " + ratio.toFixed(2));
    }
    return [seen.length, bad];
})()""" % VISIBLE

# What is not inside the window, or lies on something else; %s: what there is besides texts.
UNTIDY = """(() => {
    %s
    const all = [...seen.filter(t => !t.closest(".f")), ...document.querySelectorAll("%%s")]
        .map(e => [e, e.getBoundingClientRect()]).filter(([e, b]) => b.width > 0);
    const name = e => e.textContent.slice(0, 40) || e.localName + "." + e.getAttribute("class");
    const bad = [];
    all.forEach(([e, a], i) => {
        if (a.left < 0 || a.right > innerWidth + .5 || a.top < 0) bad.push("outside: " + name(e));
        for (const [f, b] of all.slice(i + 1))
            if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 &&
                Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 2) bad.push(name(e) + " on " + name(f));
    });
    const page = document.documentElement;
    if (page.getBoundingClientRect().width > innerWidth) bad.push("wider than the window");
    if (Math.max(...all.map(([e, b]) => b.bottom)) + scrollY > page.getBoundingClientRect().height)
        bad.push("lower than the picture");
    return [all.length, bad];
})()""" % VISIBLE

SIZES = ((1200, 800), (640, 480))
MEDIA = (("screen", "light"), ("screen", "dark"), ("print", "dark"))


class PictureTest(unittest.TestCase):
    """Pictures drawn by the program given on the command line."""
    DRAW = None

    @classmethod
    def setUpClass(cls):
        cls.browser = Browser()
        cls.scratch = tempfile.TemporaryDirectory(prefix="coretap-pictures.")

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.scratch.cleanup()

    def file(self, svg):
        path = Path(self.scratch.name) / f"{self.id().rpartition('.')[2]}.svg"
        path.write_bytes(svg)
        return path

    @classmethod
    def draw(cls, parts):
        """The picture that the program draws of these, text or bytes."""
        text = b"".join((p if isinstance(p, bytes) else p.encode("utf-8", "surrogateescape")) + b"\0" for p in parts)
        return subprocess.run([cls.DRAW], input=text, stdout=subprocess.PIPE, check=True).stdout

    def check_harmless(self, page, *more):
        """Names are text: no elements except the picture's own."""
        self.assertEqual(page.js("document.querySelectorAll('script').length"), 1)
        known = {"svg", "title", "style", "rect", "g", "text", "tspan", "script", *more}
        self.assertEqual(set(page.js("[...document.querySelectorAll('*')].map(e => e.localName)")), known)
        self.assertIsNone(page.js("window.harm"))

    def open_svg(self, svg, page=Page, dark=False):
        page = page(self.browser, self.file(svg).as_uri(), dark)
        self.addCleanup(page.close)
        self.addCleanup(self.check_quiet, page)
        return page

    def check_quiet(self, page):
        """No error, and no requests except for the file itself."""
        self.assertEqual(page.complaints(), [])
        self.assertEqual([u for u in page.requests() if not u.endswith(".svg")], [])

    def each_view(self, page):
        """The sizes of windows, and light, dark and print in each."""
        for width, height in SIZES:
            page.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
            for media, scheme in MEDIA:
                page.call("Emulation.setEmulatedMedia", media=media,
                          features=[{"name": "prefers-color-scheme", "value": scheme}])
                page.js("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))", wait=True)
                yield width, media

    def check_readable(self, page, besides, least):
        """No text is faint, cut, or on another one."""
        for check in (FAINT, UNTIDY % besides):
            count, bad = page.js(check)
            self.assertGreaterEqual(count, least)
            self.assertEqual(bad, [])

    def check_printed(self, page, widest):
        """On paper the picture is as wide as the page, and on the screen afterwards as before."""
        box = f"document.querySelector('{widest}').getBoundingClientRect()"
        before = page.js(f"{box}.right")
        page.js(f"""matchMedia("print").addEventListener("change", e => {{
            if (e.matches) window.paper = [document.documentElement.getBoundingClientRect().width, {box}.right]; }}); 0""")
        page.call("Page.printToPDF")
        width, right = page.js("window.paper")
        self.assertLess(width, 1000)
        self.near(right, width - 10)
        self.assertEqual(page.js(f"{box}.right"), before)

    def near(self, value, expected, within=2.0):
        self.assertLessEqual(abs(value - expected), within, f"{value} is not about {expected}")


def main(usage):
    if len(sys.argv) < 2:
        sys.exit(usage)
    PictureTest.DRAW = os.path.abspath(sys.argv.pop(1))
    if not chromium():
        print("pictures in a browser: skipped, there is no Chromium (scripts/deps browser)", file=sys.stderr)
        sys.exit(77)
    unittest.main()
