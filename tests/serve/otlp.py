"""What `coretap serve` pushes by OTLP and what the same engine scrapes from it: VictoriaMetrics does both at once, beside a workload
that knows what it did."""

import json
import shutil
import subprocess
import urllib.parse
from pathlib import Path

from running import Failed, Running, fetch, fetched, say, until

COUNT = 300  # execs of the workload
SERVED, ENGINE = 19971, 19428  # ports
# Labels that one of the ways gives to all of its series.
ADDED = {"job", "instance", "host_name", "service_name", "service_version", "service_instance_id"}


def pushed_and_scraped(ask):
    """Names and labels, of what was scraped and of what was pushed."""
    found = {"scraped": set(), "pushed": set()}
    for labels in ask("series", {"match[]": '{__name__=~"coretap_.*"}'}):
        way = "pushed" if "service_name" in labels else "scraped"
        found[way].add(frozenset((key, value) for key, value in labels.items() if key not in ADDED))
    return found


def otlp(coretap, directory):
    """Series of the two ways are the same, and so is what they count."""
    engine = fetched("victoria-metrics") / "usr/bin/victoria-metrics"
    Path(directory, "scrape.yml").write_text("scrape_configs:\n  - job_name: coretap\n    scrape_interval: 1s\n"
                                             f"    static_configs: [{{targets: ['127.0.0.1:{SERVED}']}}]\n")
    tools = ["execsnoop", "runqlat", "syscount", "cachestat", "biolatency -D", "drsnoop", "numamove"]
    Path(directory, "serve.toml").write_text(
        f'[otlp]\nendpoint = "http://127.0.0.1:{ENGINE}/opentelemetry"\nevery = 1\n' +
        "".join(f'[[tool]]\nrun = "{tool}"\n' + ('labels = ["comm"]\n' if tool == "execsnoop" else "") for tool in tools))
    name = "coretap-exec"  # of the program that is run
    program = Path(directory, name)
    shutil.copy("/bin/true", program)

    def ask(what, values):
        return json.loads(fetch(f"http://127.0.0.1:{ENGINE}/api/v1/{what}?" + urllib.parse.urlencode(values)))["data"]

    def value(selector):
        return [float(r["value"][1]) for r in ask("query", {"query": f"sum({selector})", "nocache": "1"})["result"]]

    def both(count):
        return all(value(f'coretap_execsnoop_events_total{{comm="{name}",{way}}}') == [count]
                   for way in ('service_name=""', 'service_name="coretap"'))

    with Running([engine, f"-httpListenAddr=127.0.0.1:{ENGINE}", f"-storageDataPath={directory}/data",
                          "-opentelemetry.usePrometheusNaming", "-search.latencyOffset=0s", "-promscrape.config=scrape.yml"],
                         directory), \
            Running([coretap, "serve", "serve.toml", "--listen", f"127.0.0.1:{SERVED}"], directory):
        until("both ways", lambda: value('coretap_tool_up{tool="execsnoop"}') == [2])
        subprocess.run([program], check=True)  # a series to begin with
        until("a series", lambda: both(1))
        for _ in range(COUNT):
            subprocess.run([program], check=True)
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
        # Histograms too, with each of their bounds.
        return "coretap_runqlat_seconds_bucket" in names and len(names) > 40
