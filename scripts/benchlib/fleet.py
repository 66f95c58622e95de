"""`coretap serve` on a host, against node_exporter in the same run; and a Prometheus of a fleet of simulated hosts."""

import ctypes
import gzip
import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.parse
from contextlib import contextmanager
from pathlib import Path

from benchlib import kernel
from benchlib.process import Unusable, find_program, output_of, say
from benchlib.report import make_row, missing
from cachedir import cache_dir

MB = 1e6
ROOT = Path(__file__).resolve().parents[2]
CONFIG = ROOT / "packaging/exporter/exporter.toml"
TEN = ("biolatency", "runqlat", "cachestat", "drsnoop", "compactsnoop", "tcplife", "tcpretrans", "syscount", "execsnoop", "numamove")
SERVED, NODE, PROMETHEUS, HOSTS = 19981, 19982, 19983, 19984  # ports
APART = 1.2  # seconds: pages are shared for one
INTERVAL, IDLE = 15, 60  # seconds between scrapes, and of the idle measurement
MANY = 5000  # lines
NAMED = 170  # processes with a name each: 29 lines per name
PR_SET_NAME = 15


def _scrape(port, path="/metrics"):
    """A page as requested by Prometheus, and the ms from the connection to the last byte."""
    began = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        body = answer.read()
    finally:
        connection.close()
    ms = (time.perf_counter() - began) * 1e3
    if answer.status != 200:
        raise Unusable(f"status {answer.status} of port {port}")
    if answer.getheader("Content-Encoding") == "gzip":
        body = gzip.decompress(body)
    return body.decode(), ms


def _lines(page):
    return sum(not line.startswith("#") for line in page.splitlines())


def _seconds(pids):
    """CPU time of processes so far, with nanosecond resolution."""
    return sum(int(Path(task, "schedstat").read_text().split()[0]) for pid in pids for task in Path(f"/proc/{pid}/task").iterdir()) / 1e9


def _children(pid):
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


@contextmanager
def _running(argv, port, scratch, name, seconds=30):
    """The program, once it answers."""
    with Path(scratch, f"{name}.log").open("wb") as log:
        process = subprocess.Popen([str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=scratch,
                                   preexec_fn=kernel.die_with_parent)
    try:
        end = time.monotonic() + seconds
        while True:
            try:
                _scrape(port)
                break
            except (OSError, http.client.HTTPException):
                if process.poll() is not None or time.monotonic() > end:
                    said = Path(scratch, f"{name}.log").read_text(errors="replace").strip().splitlines()
                    raise Unusable(f"{name} does not answer: {said[-1] if said else 'said nothing'}") from None
                time.sleep(0.1)
        yield process.pid
    finally:
        process.terminate()
        process.wait(30)


def _serve(bench, *words):
    coretap = Path(bench.options.coretap, "coretap")
    if not coretap.exists():
        raise Unusable(f"coretap is not in {bench.options.coretap}")
    return _running([coretap, "serve", *words, "--listen", f"127.0.0.1:{SERVED}"], SERVED, bench.scratch, "serve")


@contextmanager
def _node_exporter(bench, notes):
    """Its pid, or None."""
    program = find_program("prometheus-node-exporter") or find_program("node_exporter")
    if not program:
        notes.append("no node_exporter (scripts/deps fleet)")
        yield None
        return
    with _running([program, f"--web.listen-address=127.0.0.1:{NODE}"], NODE, bench.scratch, "node_exporter") as pid:
        yield pid


def _scrapes(bench, what, ports):
    """ms of several scrapes of each, in turns."""
    runs = {label: [] for label in ports}
    rounds = 4 * bench.rounds
    say(f"{what}, {rounds} scrapes")
    for _ in range(rounds):
        time.sleep(APART)
        for label, port in ports.items():
            runs[label].append(_scrape(port)[1])
    return runs


def _rss(pid):
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MB


def _memory(bench, notes):
    words = [word for tool in TEN for word in ("--run", tool)]
    with _node_exporter(bench, notes) as node, _serve(bench, *words) as supervisor:
        for _ in range(3):
            page, _ = _scrape(SERVED)
            if node:
                _scrape(NODE)
            time.sleep(APART)
        up = sum(line.startswith("coretap_tool_up{") and line.endswith(" 1") for line in page.splitlines())
        children = _children(supervisor)
        tools = [pid for pid in children if kernel.held_by([pid])[0]]
        pss = {pid: kernel.memory_kb(pid)["pss"] * 1024 / MB for pid in (supervisor, *children)}
        maps = kernel.held_by(tools)[1] / MB
        others = {"node_exporter": [_rss(node)]} if node else {}
    notes.append(f"{up} of {len(TEN)} tools run; their maps in the kernel are {maps:.2f} MB; node_exporter: resident memory")
    if len(tools) != up:
        raise Unusable(f"{len(tools)} processes with BPF programs for {up} tools")
    yield make_row("serve: ten tools", "MB PSS", {"coretap": [sum(pss[pid] for pid in tools)], **others}, against="", bar=15,
                   note="; ".join(notes))
    yield make_row("serve: supervisor and listener", "MB PSS", {"coretap": [sum(pss.values()) - sum(pss[pid] for pid in tools)]},
                   against="", bar=3)


def _default(bench, notes):
    """The shipped configuration: lines, time of a scrape, and cost when only pages are requested."""
    with _node_exporter(bench, notes) as node, _serve(bench, CONFIG) as supervisor:
        ports = {"coretap": SERVED} | ({"node_exporter": NODE} if node else {})
        pages = {label: _scrape(port)[0] for label, port in ports.items()}
        yield make_row("serve, shipped configuration: page", "series", {label: [_lines(page)] for label, page in pages.items()},
                       against="", bar=600, note="; ".join(notes))
        yield make_row("serve, shipped configuration: a scrape", "ms", _scrapes(bench, "shipped configuration", ports), against="", bar=3)
        say(f"shipped configuration: CPU of {IDLE} s")
        processes = {"coretap": [supervisor, *_children(supervisor)]} | ({"node_exporter": [node]} if node else {})
        before, began = {label: _seconds(pids) for label, pids in processes.items()}, time.monotonic()
        for _ in range(IDLE // INTERVAL):
            time.sleep(INTERVAL)
            for port in ports.values():
                _scrape(port)
        lasted = time.monotonic() - began
        shares = {label: [100 * (_seconds(pids) - before[label]) / lasted] for label, pids in processes.items()}
        yield make_row(f"serve, shipped configuration: CPU at a scrape each {INTERVAL} s", "% of a core", shares, against="", bar=0.1,
                       note=f"load average {os.getloadavg()[0]:.2f}")


@contextmanager
def _named_processes():
    """Waiting processes, each with its own name."""
    prctl, pids = ctypes.CDLL(None).prctl, []
    try:
        for number in range(NAMED):
            pid = os.fork()
            if not pid:
                kernel.die_with_parent()
                prctl(PR_SET_NAME, f"named-{number}".encode(), 0, 0, 0)
                while True:
                    time.sleep(0.2)
            pids.append(pid)
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _many(bench):
    """A histogram for each of many names."""
    config = Path(bench.scratch, "many.toml")
    # A quarter of an entry's lines is reserved for values without a series.
    config.write_text(f"[serve]\nmax_series = {4 * MANY}\n[[tool]]\nrun = \"runqlat --by comm\"\nmax_series = {2 * MANY}\n")
    with _serve(bench, config):
        with _named_processes():
            for _ in range(3):
                time.sleep(APART)
                page, _ = _scrape(SERVED)
        lines = _lines(page)
        runs = _scrapes(bench, f"{lines} series", {"coretap": SERVED})
    if lines < 0.95 * MANY:
        yield missing("serve: a scrape of many series", "ms", f"only {lines} series", "", 10)
        return
    yield make_row(f"serve: a scrape of {lines} series", "ms", runs, against="", bar=10, note=f"runqlat of each command name; {len(page) / 1e3:.0f} kB, "
                   "sent by gzip")


def fleet(bench):
    for part in _memory, _default:
        yield from part(bench, [])
    yield from _many(bench)


# --- a fleet ------------------------------------------------------------------------------------------

FLEET, FLEET_SECONDS = 1000, 120


def _real_pages(bench):
    """Two pages of the shipped configuration, some seconds apart."""
    with _serve(bench, CONFIG):
        first, _ = _scrape(SERVED)
        time.sleep(10)
        return first, _scrape(SERVED)[0]


def _prometheuses():
    """Storage formats of histograms, the program, and its additional configuration and options."""
    distribution = find_program("prometheus")
    if distribution:
        yield "classic histograms", distribution, "", []
    third = cache_dir() / "engines/prometheus/usr/bin/prometheus"
    if third.exists():
        yield "native histograms", str(third), "    convert_classic_histograms_to_nhcb: true\n", ["--enable-feature=native-histograms"]


def _targets():
    """Each with a separate path: names of hosts are only labels."""
    return "".join(f"      - {{targets: ['127.0.0.1:{HOSTS}'], labels: {{__metrics_path__: /{host}, instance: host-{host}}}}}\n"
                   for host in range(FLEET))


def _ask(expression, timeout="60s"):
    """Values, and the response time in ms."""
    path = "/api/v1/query?" + urllib.parse.urlencode({"query": expression, "timeout": timeout})
    text, ms = _scrape(PROMETHEUS, path)
    return [float(one["value"][1]) for one in json.loads(text)["data"]["result"]], ms


def thousand(bench):
    """One Prometheus, and a process that answers for all hosts, with real pages whose counters grow at a rate per host."""
    programs = list(_prometheuses())
    if not programs:
        raise Unusable("no Prometheus (scripts/deps fleet)")
    pages = [Path(bench.scratch, name) for name in ("first.prom", "second.prom")]
    for path, page in zip(pages, _real_pages(bench)):
        path.write_text(page)
    with _running([sys.executable, Path(__file__).with_name("hosts.py"), HOSTS, *pages], HOSTS, bench.scratch, "hosts"):
        for kind, program, more, options in programs:
            yield from _one_prometheus(bench, kind, program, more, options)


def _one_prometheus(bench, kind, program, more, options):
    directory = Path(bench.scratch, kind.replace(" ", "-"))
    directory.mkdir()
    Path(directory, "prometheus.yml").write_text(f"global: {{scrape_interval: {INTERVAL}s, scrape_timeout: 10s}}\nscrape_configs:\n"
                                                 f"  - job_name: fleet\n{more}    static_configs:\n{_targets()}")
    version = output_of([program, "--version"]).split()[2].partition("+")[0]
    with _running([program, f"--config.file={directory}/prometheus.yml", f"--storage.tsdb.path={directory}/data",
                   f"--web.listen-address=127.0.0.1:{PROMETHEUS}", *options], PROMETHEUS, bench.scratch, "prometheus", 60) as pid:
        say(f"{FLEET} hosts, Prometheus {version}, {kind}: {FLEET_SECONDS} s")
        began, spent = time.monotonic(), _seconds([pid])
        time.sleep(FLEET_SECONDS)
        share = 100 * (_seconds([pid]) - spent) / (time.monotonic() - began)
        memory = _rss(pid)
        up, _ = _ask("sum(up)")
        count, _ = _ask("count({job='fleet'})")
        quantile = "histogram_quantile(0.99, sum by (le) (rate(coretap_runqlat_seconds_bucket[1m])))" if not more \
            else "histogram_quantile(0.99, sum(rate(coretap_runqlat_seconds[1m])))"
        asked = [_ask(quantile) for _ in range(2 * bench.rounds)]
        disk = sum(file.stat().st_size for file in Path(directory, "data").rglob("*") if file.is_file()) / MB
    values = asked[-1][0]
    note = f"Prometheus {version}, {kind}: {share:.1f} % of a core, {disk:.0f} MB on disk"
    figure = f"{FLEET} hosts, {kind}"
    yield make_row(f"{figure}: up", "hosts", {"coretap": up}, against="", bar=FLEET, least=True, note=note)
    yield make_row(f"{figure}: series", "series", {"coretap": count}, against="")
    yield make_row(f"{figure}: memory of Prometheus", "MB", {"coretap": [memory]}, against="")
    yield make_row(f"{figure}: CPU of Prometheus", "% of a core", {"coretap": [share]}, against="")
    if len(values) != 1 or not 0 < values[0] < 60:
        yield missing(f"{figure}: 99th percentile of all hosts", "ms", f"the query gives {values}", "")
        return
    yield make_row(f"{figure}: 99th percentile of all hosts", "ms", {"coretap": [ms for _, ms in asked]}, against="",
                   note=f"the answer is {values[0] * 1e3:.3f} ms of waiting for a CPU")
