"""Engines that store coretap's output: lines of --json in ClickHouse, pages and pushes in VictoriaMetrics, pages in Prometheus 3."""

import json
import shutil
import subprocess
import time
import urllib.parse
from pathlib import Path

from running import (ROOT, SERVED, Absent, Failed, Running, Workload, fetch, fetched, query, samples, say, scrape_config, series,
                     until)

VICTORIA, THIRD = 18428, 19093  # ports
SECONDS = 4  # of tracing
COUNT = 300  # execs of the workload
# Labels that one of the transports into VictoriaMetrics adds to all of its series.
ADDED = {"job", "instance", "host_name", "service_name", "service_version", "service_instance_id"}
# Events, rows, histograms, percentiles, stacks, and their options; the expression whose sum the ledger has.
LINES = {
    "execsnoop": ([], "1"), "opensnoop": ([], "1"), "syscount": ([], "count"), "biolatency": (["--disks"], "count"),
    "runqlat": (["--pids"], "arraySum(histogram.count)"), "biolatpcts": ([], "count"), "profile": (["-F", "49"], "count"),
    "offcputime": ([], "count"), "faults": ([], "count"),
}


def traced(coretap, directory):
    """Lines of these tools, running together during some work, by tool."""
    running = {tool: subprocess.Popen([coretap, tool, *options, "--json", "--duration", str(SECONDS), "--output", f"{tool}.jsonl"],
                                      cwd=directory, stderr=subprocess.PIPE, text=True)
               for tool, (options, _) in LINES.items()}
    end = time.monotonic() + SECONDS + 2
    while time.monotonic() < end and any(p.poll() is None for p in running.values()):
        subprocess.run(["dd", "if=/dev/zero", f"of={directory}/written", "bs=4k", "count=20", "oflag=direct"], stderr=subprocess.DEVNULL)
        time.sleep(0.02)
    lines = {}
    for tool, process in running.items():
        said = process.communicate(timeout=30)[1]
        if process.returncode:
            say(f"clickhouse: without {tool}: {said.strip().splitlines()[0] if said.strip() else process.returncode}")
            continue
        lines[tool] = Path(directory, f"{tool}.jsonl").read_text()
    return lines


def clickhouse(coretap, directory):
    """As many as in the ledgers, and the sum of each integer column."""
    module = fetched("npm/node_modules/chdb")
    if not shutil.which("node"):
        raise Absent("no node")
    names = [json.loads(line)["tool"] for line in subprocess.check_output([coretap, "list", "--json"], text=True).splitlines()]
    sql = subprocess.check_output([coretap, "serve", "--print", "tables"], text=True)
    statements = [statement for statement in sql.split(";\n\n") if statement.strip()]
    lines = traced(coretap, directory)
    began = time.time() - 600

    def run(more):
        done = subprocess.run(["node", ROOT / "tests/serve/chdb.js", module, Path(directory, "database")],
                              input=json.dumps(more), capture_output=True, text=True)
        if done.returncode:
            raise Failed(done.stderr.strip())
        return json.loads(done.stdout)

    run(statements + [f"INSERT INTO coretap_{tool} SETTINGS date_time_input_format = 'best_effort' FORMAT JSONEachRow\n{text}"
                      for tool, text in lines.items()])
    (tables, columns) = run(["SELECT count() AS n FROM system.tables WHERE name LIKE 'coretap\\_%'",
                             "SELECT table, name FROM system.columns WHERE table LIKE 'coretap\\_%' AND type LIKE '%Int64%' "
                             "AND type NOT LIKE '%(%(%' AND type NOT LIKE 'Array%' AND type NOT LIKE 'Map%'"])
    wrong = [] if int(tables[0]["n"]) == len(names) else [f"{tables[0]['n']} tables of {len(names)} tools"]
    counted = 0
    for tool, text in lines.items():
        whole = [json.loads(line) for line in text.splitlines()]
        ledger, numbers = whole[-1], [c["name"] for c in columns if c["table"] == f"coretap_{tool}"]
        sums = ", ".join(f"toString(sum(toInt128(`{name}`))) AS `sum of {name}`" for name in numbers)
        (row,), (kinds,) = run([
            f"SELECT count() AS lines, sumIf({LINES[tool][1]}, type NOT IN ('header', 'ledger')) AS `in lines`, sum(shown) AS `in ledger`, "
            f"toUnixTimestamp(min(time)) AS `first time`, {sums} FROM coretap_{tool}",
            f"SELECT groupUniqArray(type) AS types, groupUniqArray(tool) AS tools FROM coretap_{tool}"])
        expected = {"lines": len(whole), "in lines": ledger["shown"], "in ledger": ledger["shown"]}
        expected |= {f"sum of {name}": sum(line.get(name) or 0 for line in whole) for name in numbers}
        wrong += [f"{tool}: {name} {row[name]}, not {value}" for name, value in expected.items() if int(row[name] or 0) != value]
        if not began < int(row["first time"]) <= time.time():
            wrong.append(f"{tool}: times from {row['first time']} on")
        if set(kinds["types"]) != {line["type"] for line in whole} or kinds["tools"] != [tool]:
            wrong.append(f"{tool}: {kinds}")
        counted += ledger["shown"]
    say(f"clickhouse: {len(statements)} tables, {sum(text.count(chr(10)) for text in lines.values())} lines of {len(lines)} tools, "
        f"{counted} events, {len(wrong)} differences {wrong[:3]}")
    return not wrong and counted > 0 and len(lines) >= 5


def victoria(coretap, directory):
    """A pushed page is returned value for value."""
    program = fetched("victoria-metrics") / "usr/bin/victoria-metrics"
    page = subprocess.check_output([coretap, "serve", "--once", "--every", "2", "--run", "syscount", "--run", "biolatency -D", "--run", "runqlat"],
                                   text=True)
    with Running([program, "-storageDataPath=data", f"-httpListenAddr=127.0.0.1:{VICTORIA}", "-search.latencyOffset=0s",
                  "-search.disableCache"], directory):
        until("VictoriaMetrics listens", lambda: fetch(f"http://127.0.0.1:{VICTORIA}/health") == "OK")
        fetch(f"http://127.0.0.1:{VICTORIA}/api/v1/import/prometheus", page.encode())
        fetch(f"http://127.0.0.1:{VICTORIA}/internal/force_flush")
        ask = query(VICTORIA, '{__name__=~"coretap_.+|process_.+"}', nocache="1", step="1m")
        until("VictoriaMetrics has a page", lambda: json.loads(fetch(ask))["data"]["result"])
        found = json.loads(fetch(ask))["data"]["result"]
    theirs = {}
    for one in found:
        name = one["metric"].pop("__name__")
        theirs[name, frozenset(one["metric"].items())] = float(one["value"][1])
    mine = {}
    for line, value in samples(page).items():
        family, labels = series(line)
        pairs = (label.partition("=") for label in labels)
        # An empty label is the same as none.
        mine[family, frozenset((key, json.loads(text)) for key, _, text in pairs if text != '""')] = float(value)
    wrong = [key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)]
    say(f"victoria: {len(mine)} values, {len(wrong)} differ {wrong[:2]}")
    return len(mine) > 100 and not wrong


def pushed_and_scraped(ask):
    """Names and labels of scraped and of pushed series."""
    found = {"scraped": set(), "pushed": set()}
    for labels in ask("series", {"match[]": '{__name__=~"coretap_.*"}'}):
        way = "pushed" if "service_name" in labels else "scraped"
        found[way].add(frozenset((key, value) for key, value in labels.items() if key not in ADDED))
    return found


def otlp(coretap, directory):
    """VictoriaMetrics gets pushes and scrapes at once: both have the same series, with the same counts."""
    engine = fetched("victoria-metrics") / "usr/bin/victoria-metrics"
    tools = ["execsnoop", "runqlat", "syscount", "cachestat", "biolatency -D", "drsnoop", "numamove"]
    Path(directory, "serve.toml").write_text(
        f'[otlp]\nendpoint = "http://127.0.0.1:{VICTORIA}/opentelemetry"\nevery = 1\n' +
        "".join(f'[[tool]]\nrun = "{tool}"\n' + ('labels = ["comm"]\n' if tool == "execsnoop" else "") for tool in tools))
    program = Workload(directory)

    def ask(what, values):
        return json.loads(fetch(f"http://127.0.0.1:{VICTORIA}/api/v1/{what}?" + urllib.parse.urlencode(values)))["data"]

    def value(selector):
        return [float(r["value"][1]) for r in ask("query", {"query": f"sum({selector})", "nocache": "1"})["result"]]

    def both(count):
        return all(value(f'coretap_execsnoop_events_total{{comm="{program.name}",{way}}}') == [count]
                   for way in ('service_name=""', 'service_name="coretap"'))

    with Running([engine, f"-httpListenAddr=127.0.0.1:{VICTORIA}", f"-storageDataPath={directory}/data",
                          "-opentelemetry.usePrometheusNaming", "-search.latencyOffset=0s", f"-promscrape.config={scrape_config(directory)}"],
                         directory), \
            Running([coretap, "serve", "serve.toml", "--listen", f"127.0.0.1:{SERVED}"], directory):
        until("both ways", lambda: value('coretap_tool_up{tool="execsnoop"}') == [2])
        program.run(1)  # so that the series exists
        until("a series", lambda: both(1))
        program.run(COUNT)
        until("the count", lambda: both(COUNT + 1))
        say(f"otlp: {COUNT + 1} of {COUNT + 1} execs are counted by both ways")

        def differ():
            found = pushed_and_scraped(ask)
            return found["scraped"] ^ found["pushed"]

        try:
            until("the same series", lambda: not differ())
        except Failed:
            for labels in sorted(map(sorted, differ()))[:10]:
                say(f"otlp: by one way only: {dict(labels)}")
            return False
        same = pushed_and_scraped(ask)["pushed"]
        names = {dict(labels)["__name__"] for labels in same}
        say(f"otlp: {len(same)} series of {len(names)} names, all of them scraped and pushed")
        # Histograms, too, with each of their bounds.
        return "coretap_runqlat_seconds_bucket" in names and len(names) > 40


def prometheus3(coretap, directory):
    """Native histograms with the bounds of the page give the quantiles of the page's own buckets."""
    program = fetched("prometheus") / "usr/bin/prometheus"
    config = scrape_config(directory, "    convert_classic_histograms_to_nhcb: true\n    always_scrape_classic_histograms: true\n")

    def ask(expression, at):
        return [float(r["value"][1]) for r in json.loads(fetch(query(THIRD, expression, time=at)))["data"]["result"]]

    with Running([coretap, "serve", "--run", "runqlat", "--run", "biolatency", "--listen", f"127.0.0.1:{SERVED}"], directory), \
            Running([program, f"--config.file={config}", "--storage.tsdb.path=data", "--enable-feature=native-histograms",
                     f"--web.listen-address=127.0.0.1:{THIRD}"], directory):
        until("Prometheus 3 has native histograms",
              lambda: (ask("histogram_count(coretap_runqlat_seconds)", time.time()) or [0])[0] > 100)
        time.sleep(5)
        at, compared, wrong = time.time(), 0, []
        for part in "", "rate":
            for q in 0.5, 0.9, 0.99:
                native, classic = (ask(f"histogram_quantile({q}, {f'rate({name}[4s])' if part else name})", at)
                                   for name in ("coretap_runqlat_seconds", "coretap_runqlat_seconds_bucket"))
                compared += len(native)
                if len(native) != 1 or len(classic) != 1 or not abs(native[0] - classic[0]) <= 1e-9 * abs(classic[0]):
                    wrong.append((q, native, classic))
        few, many = (ask(f"count({{__name__=~'{names}'}})", at)[0]
                     for names in ("coretap_runqlat_seconds", "coretap_runqlat_seconds_(bucket|sum|count)"))
    say(f"prometheus 3: {compared} quantiles of native histograms, {len(wrong)} differ {wrong[:2]}; {few:.0f} series for {many:.0f}")
    return compared == 6 and not wrong and few < many
