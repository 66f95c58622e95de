"""The results of a run's tests."""

import math
import sys
from pathlib import Path

import gtestreport


def say(text):
    print(f"test: {text}", file=sys.stderr, flush=True)


class Totals:
    def __init__(self, records):
        self.passed = self.failed = self.skipped = 0
        self.bad, self.left_out = [], []  # names; names with reasons
        self.ran = 0  # of the tests that are retried when they fail
        self.again = []  # names of those that were retried
        self.steps = []  # (name, seconds)
        self.records = records

    def one(self, name, ok):
        if ok:
            self.passed += 1
        else:
            self.failed += 1
            self.bad.append(name)

    def skip(self, name, why, count=1):
        self.skipped += count
        self.left_out.append(f"{name}: {why}")
        say(f"{name}: skipped, {why}")

    def skips(self, name, reasons):
        """Of tests that are counted elsewhere."""
        for why, tests in sorted(reasons.items()):
            self.left_out.append(f"{name}: {tests[0]}{f' and {len(tests) - 1} more' if len(tests) > 1 else ''}: {why}")

    def took(self, name, seconds):
        self.steps.append((name, seconds))

    def add_gtest(self, name, report, status, again):
        """The counts of a GoogleTest JSON report; without one, or if the program itself failed, one failure."""
        tests = gtestreport.tests(Path(report))
        if not tests:
            self.one(f"{name} (died with {status})", False)
            return
        failures = 0
        for full_name, test in tests:
            result = gtestreport.result(test)
            self.records.add(name, full_name, test.get("attempts", 1), result, float(test.get("time", "0s").rstrip("s")))
            if result == "failed":
                failures += 1
                self.failed += 1
                self.bad.append(f"{name}: {full_name}")
            elif result == "skipped":
                self.skipped += 1
            else:
                self.passed += 1
        if again:
            self.ran += len(gtestreport.ran(Path(report)))
            self.again += [f"{name}: {test} ({tries} tries)" for test, tries in gtestreport.tried_again(Path(report))]
        if status and not failures:
            self.one(f"{name} (ended with {status})", False)

    def most_again(self):
        """The maximum of retries that chance explains (Poisson) in a run whose tests are within the budget."""
        mean = gtestreport.BUDGET * self.ran
        count, term = 0, math.exp(-mean)
        tail = 1 - term  # the probability of more than `count`
        while tail > gtestreport.CHANCE:
            count += 1
            term *= mean / count
            tail -= term
        return max(1, count)  # one of a few tests is not a rate
