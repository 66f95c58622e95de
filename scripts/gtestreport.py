"""GoogleTest's JSON reports: which tests failed, what further tries made of them, and how long the tests of tools took."""

import json
import re
import subprocess
import time
from pathlib import Path

# Some kernels leave out all tracepoints of a CPU for a millisecond now and then (seen on 6.18: one task's next is not
# the next one's previous, for every program alike), and emulated guests stall. So a test that traces is run up to three
# times, alone after the first; this is the only place that tries again. What needed it is counted.
TRIES = 3
MOST_TRIED_AGAIN = 8  # where more failed, another try would only hide it
BUDGET = 0.02  # of all tests may have needed another try

# Tests that ask nothing of the kernel and count nothing of the machine: they run on the host only, several at once. As a
# filter of GoogleTest's.
ANY_KERNEL = ":".join(["*CommonKind.*", "DeclaredTests.*", "Common.HelpAndVersion", "Common.List", "Common.CommandsOfCoretap",
                       "Common.CoretapOnAFullDisk"])
# Each tool once: it attaches, sees exactly what happened, and ends.
QUICK = "Tools/Life.*"
# Tests that trace, but count nothing that other tests make: on the host they too run several at once.
OF_EACH_TOOL = ":".join([QUICK, "Tools/Rights.*", "Serve.*", "ServeOtlp.*", "AcceptedOwners.*", "Unwind.*", "UnwindYoung.*",
                         "UnwindProcesses.*"])


def turn():
    """A number that is another one with each commit, or each day where the checkout does not know its commits."""
    def git(*words):
        command = ["git", "-C", Path(__file__).resolve().parent, *words]
        return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout.strip()
    if git("rev-parse", "--is-shallow-repository") == "false" and (commits := git("rev-list", "--count", "HEAD")):
        return int(commits)
    return int(time.time() // 86400)


def tests(report):
    """-> (full name, test) of each; nothing if there is no report"""
    try:
        suites = json.loads(report.read_text())["testsuites"]
    except (OSError, ValueError, KeyError):
        return []
    return [(f"{suite['name']}.{test['name']}", test) for suite in suites for test in suite["testsuite"]]


def failed(report):
    return [name for name, test in tests(report) if test.get("failures")]


def tried_again(report):
    return [name for name, test in tests(report) if test.get("attempts", 1) > 1]


def ran(report):
    return [name for name, test in tests(report) if test["result"] == "COMPLETED"]


def worth_another_try(report):
    """Those that failed, unless they are too many."""
    names = failed(report)
    return names if len(names) <= MOST_TRIED_AGAIN else []


def merge(report, again):
    """Another try's results: what passed counts as passed. -> the names of those"""
    content, later, passed = json.loads(report.read_text()), dict(tests(again)), set()
    for suite in content["testsuites"]:
        for test in suite["testsuite"]:
            name = f"{suite['name']}.{test['name']}"
            if name not in later:
                continue
            test["attempts"] = test.get("attempts", 1) + 1
            if not later[name].get("failures") and later[name]["result"] == "COMPLETED":
                test.pop("failures", None)
                test["result"] = "COMPLETED"  # it may have been skipped, as its events did not come
                passed.add(name)
    report.write_text(json.dumps(content))
    return passed


def put(report, other):
    """The results of another run in place of those that the same tests have here."""
    newer = dict(tests(other))
    content = json.loads(report.read_text())
    for suite in content["testsuites"]:
        suite["testsuite"] = [newer.get(f"{suite['name']}.{test['name']}", test) for test in suite["testsuite"]]
    report.write_text(json.dumps(content))


def join(report, reports):
    """One report of several shards' reports."""
    suites = [suite for one in reports for suite in json.loads(one.read_text())["testsuites"]]
    report.write_text(json.dumps({"testsuites": suites}))


def tool_of(name, test):
    """The tool whose test this is: its file's, or the one that a test of all tools runs with."""
    if match := re.search(r"/tools/\w+/(\w+)_test\.cpp$", test.get("file", "")):
        return match[1]
    if match := re.search(r"\.\w+/([a-z][a-z0-9]*)(?:_[a-z_]+)?$", name) if re.search("/(Life|Stress)", name) else None:
        return match[1]
    return None


def seconds_by_tool(report):
    """Of the tests of tools and of all others."""
    of_tools = others = 0.0
    for name, test in tests(report):
        took = float(test.get("time", "0s").rstrip("s"))
        if tool_of(name, test):
            of_tools += took
        else:
            others += took
    return of_tools, others
