"""GoogleTest's JSON reports: which tests failed, and a second try's result put over the first one's."""

import json

MOST_TRIED_AGAIN = 8  # where more failed, a second try would only hide it

# Common tests that ask nothing of the kernel and count nothing of the machine: they run on the host only, several at
# once. As a filter of GoogleTest's.
ANY_KERNEL = ":".join([f"*CommonTool.{name}/*" for name in (
    "HelpAndVersion", "WrongCommandLines", "ReaderGoesAway", "FullDisk", "FullDiskEndsIt", "StalledReader",
    "FiltersThatNothingCanMatch", "CommandsAndTheirStatus")] + [f"Common.{name}" for name in (
        "List", "CommandsOfCoretap", "CoretapOnAFullDisk")])

# What hardly differs from one kernel to the next: of several kernels the oldest and the newest run it.
OF_THE_ENDS = "Unwind*:*CommonTool.*:Common.*:*Hostile*"


def tests(report):
    """-> (full name, test) of each; nothing if there is no report"""
    try:
        suites = json.loads(report.read_text())["testsuites"]
    except (OSError, ValueError, KeyError):
        return []
    return [(f"{suite['name']}.{test['name']}", test) for suite in suites for test in suite["testsuite"]]


def failed(report):
    return [name for name, test in tests(report) if test.get("failures")]


def merge(report, again):
    """What has passed the second time counts as passed. -> the names of those"""
    passed = {name for name, test in tests(again) if not test.get("failures") and test["result"] == "COMPLETED"}
    content = json.loads(report.read_text())
    for suite in content["testsuites"]:
        for test in suite["testsuite"]:
            if f"{suite['name']}.{test['name']}" in passed:
                test.pop("failures", None)
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
