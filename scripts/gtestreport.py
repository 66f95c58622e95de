"""GoogleTest's JSON reports: failed tests, results of retries, and durations of tool tests."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

# Some kernels sometimes skip all tracepoints of a CPU for a millisecond (seen on 6.18: one switch's next task is not
# the following one's previous, for every program alike), and emulated guests stall. So a test that traces is run up to
# three times, alone after the first, and those of a guest once more in a new one. Retries are counted.
TRIES = 3
NO_EVENTS = "no events of"  # as tests/tools/life_test.cpp says it
MOST_TRIED_AGAIN = 8  # with more failures, a retry would only hide them
BUDGET = 0.005  # share of all tests, on average, that may need a retry
CHANCE = 0.01  # a run fails if a run with that average would have more retries only with this probability

# Tests that need neither the kernel nor counts of the machine: they run on the host only, several at once. As a
# GoogleTest filter.
ANY_KERNEL = ":".join(["*CommonKind.*", "DeclaredTests.*", "Common.HelpAndVersion", "Common.List", "Common.CommandsOfCoretap",
                       "Common.CoretapOnAFullDisk"])
# Tests of no tool that measure the machine: none runs beside others.
MEASURING = "Measuring"
# One run of each tool: it attaches, sees exactly what happened, and ends.
LIFE = "Tools/Life.*"
# Tests that trace, but count nothing that other tests make: on the host they run several at once, too.
OF_EACH_TOOL = ":".join([LIFE, "Tools/Rights.*", "Serve.*", "ServeOtlp.*", "AcceptedOwners.*", "Unwind.*", "UnwindYoung.*"])


def tests(report):
    """-> (full name, test) of each; nothing if there is no report"""
    try:
        suites = json.loads(report.read_text())["testsuites"]
    except (OSError, ValueError, KeyError):
        return []
    return [(f"{suite['name']}.{test['name']}", test) for suite in suites for test in suite["testsuite"]]


def listed(program, chosen="*"):
    """The tests of a program that match a filter, by name, with their results in reports."""
    with tempfile.TemporaryDirectory() as scratch:
        names = Path(scratch, "tests.json")
        subprocess.run([program, "--gtest_list_tests", f"--gtest_output=json:{names}", f"--gtest_filter={chosen}"],
                       stdout=subprocess.DEVNULL, check=True)
        return dict(tests(names))


def lanes(names, seconds, most, but):
    """Filters for processes that run in parallel: a suite belongs to one process, so that tests of one tool run in sequence.
    `seconds`: durations of earlier runs; `but`: a filter for tests of these suites that do not run."""
    suites = {}
    for name in names:
        suites.setdefault(name.rpartition(".")[0], []).append(seconds.get(name, 0.5))
    filled = [(0.0, []) for _ in range(most)]
    for suite, took in sorted(suites.items(), key=lambda item: -sum(item[1])):
        least = min(range(most), key=lambda lane: filled[lane][0])
        filled[least] = (filled[least][0] + sum(took), [*filled[least][1], f"{suite}.*"])
    return [f"{':'.join(chosen)}-{but}" for _, chosen in filled if chosen]


def result(test):
    return "failed" if test.get("failures") else "skipped" if test["result"] == "SKIPPED" else "passed"


def failed(report):
    return [name for name, test in tests(report) if test.get("failures")]


def tried_again(report):
    """-> (name, number of tries)"""
    return [(name, test["attempts"]) for name, test in tests(report) if test.get("attempts", 1) > 1]


def ran(report):
    return [name for name, test in tests(report) if test["result"] == "COMPLETED"]


def worth_another_try(report, also=()):
    """The failed ones and others, unless they are too many."""
    names = failed(report) + list(also)
    return names if len(names) <= MOST_TRIED_AGAIN else []


def merge(report, again):
    """Merges a retry's results: passed tests count as passed. -> their names"""
    content, later, passed = json.loads(report.read_text()), dict(tests(again)), set()
    for suite in content["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if name not in later:
                continue
            test["attempts"] = test.get("attempts", 1) + 1
            if not later[name].get("failures") and later[name]["result"] == "COMPLETED":
                test.pop("failures", None)
                test["result"] = "COMPLETED"  # it may have been skipped because its events did not come
                passed.add(name)
    report.write_text(json.dumps(content))
    return passed


def put(report, other):
    """Replaces the results of the same tests by those of another run."""
    newer = dict(tests(other))
    content = json.loads(report.read_text())
    for suite in content["testsuites"]:
        suite["testsuite"] = [newer.get(f"{suite['name']}.{test['name']}", test) for test in suite["testsuite"]]
    report.write_text(json.dumps(content))


ENDED_TEST = re.compile(r"^\[ +(OK|FAILED|SKIPPED) +\] ([\w/]+)\.([\w/]+).*? \((\d+) ms\)$", re.M)
RESULTS = {"OK": "COMPLETED", "FAILED": "COMPLETED", "SKIPPED": "SKIPPED"}


def of_log(log, report):
    """Writes the report of a program that was ended before it could, from its output. -> number of tests that did not end"""
    text = log.read_text(errors="replace") if log.exists() else ""
    suites = {}
    for how, suite, name, ms in ENDED_TEST.findall(text):
        test = {"name": name, "result": RESULTS[how], "time": f"{int(ms) / 1000}s"}
        if how == "FAILED":
            test["failures"] = [{"failure": "see the log"}]
        suites.setdefault(suite, []).append(test)
    report.write_text(json.dumps({"testsuites": [{"name": suite, "testsuite": ended} for suite, ended in suites.items()]}))
    running = re.search(r"^\[=+\] Running (\d+) tests?", text, re.M)
    return (int(running[1]) if running else 0) - sum(map(len, suites.values()))


def _blocks(log, ended):
    """Output of a test program for each test with this result."""
    block = []
    for line in log.read_text(errors="replace").splitlines():
        if line.startswith("[ RUN "):
            block = []
        block.append(line)
        if line.startswith(ended) and line.endswith("ms)"):
            yield block


def failures_of_log(log):
    return "\n".join(line for block in _blocks(log, "[  FAILED  ]") for line in block[-60:])


def skips_of_log(log):
    """reason -> names of the tests that were skipped for it"""
    reasons = {}
    for block in _blocks(log, "[  SKIPPED ]"):
        name = block[-1].split()[3]
        why = " ".join(line.strip() for line in block[1:-1] if line.strip() and not line.endswith(": Skipped"))
        reasons.setdefault(why[:200] or "no reason", []).append(name)
    return reasons


def without_events(log):
    """Tests that were skipped because their workload made no events: on a busy machine it may be too slow once."""
    return [name for why, names in skips_of_log(log).items() if NO_EVENTS in why for name in names]


def join(report, reports):
    """One report of several shards' reports."""
    suites = [suite for one in reports for suite in json.loads(one.read_text())["testsuites"]]
    report.write_text(json.dumps({"testsuites": suites}))


OWN = re.compile(r"/tools/\w+/(\w+)_test\.cpp$")


def is_own(test):
    """Is it in a tool's own file?"""
    return bool(OWN.search(test.get("file", "")))


def tool_of(name, test):
    """The tool of this test: by its file, or by its parameter for tests of all tools."""
    if match := OWN.search(test.get("file", "")):
        return match[1]
    if match := re.search(r"\.\w+/([a-z][a-z0-9]*)(?:_[a-z_]+)?$", name) if re.match(r"\w+/(Stress|Life)", name) else None:
        return match[1]
    return None
