"""Data that an OpenTelemetry Collector receives from `coretap serve` and forwards in JSON, against the page of the same service
and a workload that knows its events."""

import contextlib
import json
import os
import socket
import subprocess
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from running import Failed, Running, Workload, fetch, fetched, samples, say, series, until

COUNT = 200  # execs of the workload
SERVED, RECEIVER, KEEPER = 19972, 19318, 19319  # ports
CUMULATIVE = 2
TOOLS = ["execsnoop", "runqlat", "syscount", "cachestat", "biolatency -D", "drsnoop"]
# By the naming rules of OpenTelemetry metrics in Prometheus; only a gauge gets "_ratio".
UNITS = {"s": "_seconds", "By": "_bytes", "1": "_ratio", "": "", "{event}": ""}
# Gauges that change within a second; the others have the values of the page.
MOVING = {"coretap_tool_resident_memory_bytes", "coretap_tool_collect_seconds", "coretap_tool_series", "coretap_otlp_queued_bytes",
          "coretap_cachestat_buffers_bytes", "coretap_cachestat_cached_bytes"}
# Attributes of events with names of OpenTelemetry's conventions, by keys of the line.
CONVENTIONS = {"pid": "process.pid", "ppid": "process.parent_pid", "tid": "thread.id", "comm": "thread.name", "uid": "user.id",
               "error": "error.type", "path": "file.path", "container": "container.name", "container_id": "container.id",
               "pod": "k8s.pod.uid", "cpu": "cpu.logical_number"}


class Keeper:
    """The Collector's destination: it keeps all requests, in order."""

    def __init__(self):
        kept = self.kept = {"/v1/metrics": [], "/v1/logs": []}

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                kept[self.path].append(body)
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", KEEPER), Handler)

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self.kept

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def plain(value):
    """The value of an AnyValue; its JSON has integers as text."""
    if not value:
        return None
    (kind, inner), = value.items()
    if kind == "arrayValue":
        return [plain(v) for v in inner.get("values", ())]
    if kind == "kvlistValue":
        return {pair["key"]: plain(pair["value"]) for pair in inner.get("values", ())}
    return int(inner) if kind == "intValue" else inner


def pairs(attributes):
    return {one["key"]: plain(one["value"]) for one in attributes}


def scoped(request, kind):
    """Resource and items of each part of a request."""
    for part in request[f"resource{kind}"]:
        for scope in part[f"scope{kind}"]:
            for item in scope["metrics" if kind == "Metrics" else "logRecords"]:
                yield pairs(part["resource"]["attributes"]), item


def on_page(page):
    """Values by name and labels, and types by family."""
    values, types = {}, {}
    for line in page.splitlines():
        if line.startswith("# TYPE "):
            types.update([line.split()[2:]])
    for line, value in samples(page).items():
        name, labels = series(line)
        values[key(name, {k: json.loads(text) for k, _, text in (label.partition("=") for label in labels)})] = float(value)
    return values, types


def key(name, labels):
    return name, frozenset((k, float(v) if k == "le" and name.endswith("_bucket") else v) for k, v in labels.items())


class Push:
    """One request of metrics: values and types as on a page, and errors in it."""

    def __init__(self, request):
        self.values, self.types, self.wrong, self.first, self.starts = {}, {}, [], float("inf"), {}
        for _, metric in scoped(request, "Metrics"):
            self.take(metric)

    def take(self, metric):
        kind = next(k for k in ("gauge", "sum", "histogram") if k in metric)
        data, name, unit = metric[kind], metric["name"], metric.get("unit", "")
        under = name.replace(".", "_")
        if under.replace("_", ".", 2) != name or unit not in UNITS:
            self.wrong.append(f"name or unit of {name}, {unit}")
        if kind != "gauge" and data.get("aggregationTemporality") != CUMULATIVE:
            self.wrong.append(f"temporality of {name}")
        if (kind == "sum") != bool(data.get("isMonotonic")):
            self.wrong.append(f"monotonic of {name}")
        family = under + ("" if unit == "1" and kind != "gauge" else UNITS.get(unit, "")) + ("_total" if kind == "sum" else "")
        if family in self.types:
            self.wrong.append(f"{family} is there twice")
        self.types[family] = "counter" if kind == "sum" else kind
        for point in data["dataPoints"]:
            labels, at, start = pairs(point.get("attributes", ())), int(point["timeUnixNano"]), int(point.get("startTimeUnixNano", 0))
            self.first = min(self.first, at)
            if (kind == "gauge") != (start == 0) or start > at:
                self.wrong.append(f"start of {name}")
            if kind != "histogram":
                self.put(family, labels, point["asInt"] if "asInt" in point else point["asDouble"])
                continue
            self.put(family + "_count", labels, point.get("count", 0))  # JSON omits zeros
            self.put(family + "_sum", labels, point["sum"])
            counts, bounds = list(map(int, point["bucketCounts"])), point["explicitBounds"]
            if len(counts) != len(bounds) + 1 or bounds != sorted(set(bounds)):
                self.wrong.append(f"buckets of {name}")
            for i, bound in enumerate([*bounds, "+Inf"]):
                self.put(family + "_bucket", labels | {"le": bound}, sum(counts[:i + 1]))

    def put(self, name, labels, value):
        if key(name, labels) in self.values:
            self.wrong.append(f"{name} {labels} is there twice")
        self.values[key(name, labels)] = float(value)


def compared(push, before, after):
    """With the pages before and after: the differences, and the number of values that are the same in all three. Counters may
    have grown."""
    (early, types), (late, late_types) = before, after
    wrong = list(push.wrong)
    for what, first, pushed, last in ("family", types.items(), push.types.items(), late_types.items()), \
            ("series", early.keys(), push.values.keys(), late.keys()):
        wrong += [f"{what} that is not pushed: {one}" for one in first - pushed]
        wrong += [f"{what} that is only pushed: {one}" for one in pushed - last]
    same = 0
    for one in push.values.keys() & early.keys() & late.keys():
        value, least, most = push.values[one], early[one], late[one]
        same += least == value == most
        if types.get(one[0]) != "gauge":
            right = least <= value <= most
        else:
            right = one[0] in MOVING or value == least
        if not right:
            wrong.append(f"{one}: {value}, on the pages {least} and {most}")
    return wrong, same


def as_attribute(name, value):
    return str(value) if name == "uid" or isinstance(value, int) and value >= 1 << 63 else value


def judged(record):
    """Errors in a log record, compared with the line that is its body."""
    line, attributes = json.loads(plain(record["body"])), pairs(record["attributes"])
    expected = {CONVENTIONS.get(name, f"coretap.{name}"): as_attribute(name, value) for name, value in line.items()
                if name not in ("type", "tool", "time") and value is not None}
    return [f"{name}: {attributes.get(name)}, not {expected.get(name)}" for name in expected.keys() | attributes.keys()
            if attributes.get(name) != expected.get(name)]


def pushed(coretap, directory, program, way, endpoint):
    """Metrics and events by one transport."""
    Path(directory, "serve.toml").write_text(
        f'[otlp]\nendpoint = "{endpoint}"\nevery = 1\n' + "".join(
            f'[[tool]]\nrun = "{tool}"\n' + ('labels = ["comm"]\nevents = { otlp = true }\n' if tool == "execsnoop" else "")
            for tool in TOOLS))
    workload = Workload(directory)
    page = f"http://127.0.0.1:{SERVED}/metrics"
    family, listens = (socket.AF_UNIX, endpoint[5:]) if way == "unix" else (socket.AF_INET, ("127.0.0.1", RECEIVER))

    def answers():
        with socket.socket(family) as one:
            one.connect(listens)
        return True

    with Keeper() as kept, Running([program, "--config", f"{way}.json"], directory), contextlib.ExitStack() as rest:
        until("the Collector listens", answers)
        rest.enter_context(Running([coretap, "serve", "serve.toml", "--listen", f"127.0.0.1:{SERVED}"], directory))
        until("all tools run and are pushed", lambda: kept["/v1/metrics"] and len(
            [v for (name, _), v in Push(kept["/v1/metrics"][-1]).values.items() if name == "coretap_tool_up" and v == 1]) == len(TOOLS))
        begin = time.time_ns()
        pids = workload.run(COUNT)
        end = time.time_ns()

        def records():
            return [(resource, record) for request in list(kept["/v1/logs"]) for resource, record in scoped(request, "Logs")]

        def mine():
            return [record for _, record in records() if pairs(record["attributes"]).get("thread.name") == workload.name]

        def counted():
            return [v for (name, labels), v in Push(kept["/v1/metrics"][-1]).values.items()
                    if name == "coretap_execsnoop_events_total" and ("comm", workload.name) in labels]

        until("the events", lambda: len(mine()) >= COUNT)
        until("the count", lambda: counted() == [COUNT])  # a series starts at 0
        # A push between two pages, not the one in progress.
        pages = [on_page(fetch(page))]
        since = time.time_ns()
        found = []

        def later():
            found[:] = [p for p in map(Push, kept["/v1/metrics"][-3:]) if p.first > since]
            return found

        until("a later push", later)
        pages.append(on_page(fetch(page)))
        metrics_resource = next(scoped(kept["/v1/metrics"][-1], "Metrics"))[0]
        all_records, of_workload = records(), mine()

    wrong, same = compared(found[0], *pages)
    wrong += [f"{one}: {value}" for one, value in found[0].values.items() if one[0] == "coretap_otlp_dropped_total" and value]
    bad = [text for _, record in all_records for text in judged(record)]
    bad += ["event name" for _, record in all_records if record.get("eventName") != "coretap.execsnoop"]
    bad += [f"{len(of_workload)} records"] if len(of_workload) != COUNT else []
    bad += ["processes"] if {pairs(record["attributes"])["process.pid"] for record in of_workload} != pids else []
    # The clock of the events is the kernel's: a difference of some ms is allowed.
    bad += ["time" for record in of_workload
            if not begin - 10**7 <= int(record["timeUnixNano"]) <= min(end + 10**7, int(record["observedTimeUnixNano"]))]
    resource = {"service.name": "coretap", "host.name": os.uname().nodename, "service.instance.id": os.uname().nodename}
    for one in [metrics_resource, *(r for r, _ in all_records)]:
        if not one.get("service.version") or {k: v for k, v in one.items() if k != "service.version"} != resource:
            bad.append(f"resource {one}")
            break
    for text in (wrong + bad)[:8]:
        say(f"collector by {way}: {text}")
    values, histograms = found[0].values, [f for f, kind in found[0].types.items() if kind == "histogram"]
    say(f"collector by {way}: {len(found[0].types)} families, {len(values)} values ({same} the same on both pages), {len(wrong)} differ; "
        f"{len(of_workload)} of {COUNT} execs are log records, of {len(all_records)}, {len(bad)} wrong")
    return not wrong and not bad and len(found[0].types) > 30 and len(values) > 100 and "coretap_runqlat_seconds" in histograms


def collector(coretap, directory):
    """By HTTP, and by a Unix socket if this Collector supports it."""
    program = fetched("opentelemetry-collector") / "bin/collector"
    ways = {"http": {"endpoint": f"127.0.0.1:{RECEIVER}"}, "unix": {"endpoint": f"{directory}/otlp.sock", "transport": "unix"}}
    endpoints = {"http": f"http://127.0.0.1:{RECEIVER}", "unix": f"unix:{directory}/otlp.sock"}
    for way, http in ways.items():
        pipeline = {"receivers": ["otlp"], "exporters": ["otlphttp"]}
        Path(directory, f"{way}.json").write_text(json.dumps({
            "receivers": {"otlp": {"protocols": {"http": http}}},
            # Without a queue it keeps their order.
            "exporters": {"otlphttp": {"endpoint": f"http://127.0.0.1:{KEEPER}", "encoding": "json", "compression": "none",
                                       "sending_queue": {"enabled": False}}},
            "service": {"telemetry": {"metrics": {"level": "none"}}, "pipelines": {"metrics": pipeline, "logs": pipeline}}}))
    version = subprocess.check_output([program, "--version"], text=True).split()[-1]
    valid = {way: subprocess.run([program, "validate", "--config", f"{way}.json"], cwd=directory, capture_output=True, text=True)
             for way in ways}
    if valid["http"].returncode:
        raise Failed(f"the configuration: {valid['http'].stderr.strip()}")
    say(f"collector: version {version}" + (", which has no sockets with a path" if valid["unix"].returncode else ""))
    return all([pushed(coretap, directory, program, way, endpoints[way]) for way in ways if not valid[way].returncode])
