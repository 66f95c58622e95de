"""Shared by tests of `coretap serve` with other programs."""

import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
SERVED = 19961  # port of coretap serve

sys.path.insert(0, str(ROOT / "scripts"))
from cachedir import cache_dir  # noqa: E402


class Absent(Exception):
    """A requirement of a test is missing on this machine."""


class Failed(Exception):
    """An event that a test waits for does not come."""


def say(text):
    print(f"engines: {text}", flush=True)


def fetched(name):
    """The directory in which `scripts/deps fleet` puts programs that the distribution lacks."""
    found = cache_dir() / "engines" / name
    if not found.exists():
        raise Absent(f"no {found} (scripts/deps fleet)")
    return found


def fetch(url, data=None):
    with urllib.request.urlopen(url, data=data, timeout=10) as answer:
        return answer.read().decode()


def query(port, expression, **more):
    """The URL of a PromQL query."""
    return f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": expression, **more})


def until(what, condition, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            if condition():
                return
        except OSError:
            pass
        time.sleep(0.3)
    raise Failed(f"after {seconds} s not yet: {what}")


class Running:
    """A process that ends with the block."""

    def __init__(self, argv, directory):
        self.log = open(Path(directory, Path(argv[0]).name + ".log"), "w")
        self.process = subprocess.Popen(argv, stdout=self.log, stderr=self.log, cwd=directory)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


class Workload:
    """A program with a unique name that is executed a given number of times."""

    def __init__(self, directory):
        self.path, self.name = Path(directory, "coretap-exec"), "coretap-exec"
        shutil.copy("/bin/true", self.path)

    def run(self, count):
        """-> pids"""
        pids = set()
        for _ in range(count):
            process = subprocess.Popen([self.path])
            process.wait()
            pids.add(process.pid)
        return pids


def scrape_config(directory, more=""):
    """For Prometheus: coretap, each second. -> its name"""
    Path(directory, "scrape.yml").write_text(
        f"global: {{scrape_interval: 1s}}\nscrape_configs:\n  - job_name: coretap\n{more}"
        f"    static_configs: [{{targets: ['127.0.0.1:{SERVED}']}}]\n")
    return "scrape.yml"


def samples(page):
    """Lines of a page, by name and labels."""
    return dict(line.rsplit(" ", 1) for line in page.splitlines() if line and not line.startswith("#"))


def series(name):
    """Of a line: name and labels, which may be in any order."""
    family, _, labels = name.partition("{")
    return family, frozenset(labels.rstrip("}").replace('",', '"\n').split("\n")) - {""}
