#!/usr/bin/env python3
"""clock_test - the clock of scripts/test: parts without time are skipped by name, hangs end with all that they
started, parts that are overdue fail, and a test program that was ended counts its completed tests."""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import time
import types
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))
sys.dont_write_bytecode = True
os.environ["CORETAP_CACHE"] = tempfile.mkdtemp(prefix="coretap-clock-")

import gtestreport  # noqa: E402
from testlib import clock, parts, run as running  # noqa: E402
from testlib.history import DAYS, History, Records  # noqa: E402
from testlib.totals import Totals  # noqa: E402

loader = importlib.machinery.SourceFileLoader("scripts_test", str(ROOT / "scripts/testlib/main.py"))
program = importlib.util.module_from_spec(importlib.util.spec_from_loader("scripts_test", loader))
loader.exec_module(program)


class InTurns(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.root = Path(self.scratch.name)
        (self.root / "tests").mkdir()
        self.calls = []

    def tearDown(self):
        self.scratch.cleanup()
        (Path(os.environ["CORETAP_CACHE"]) / "turns.json").unlink(missing_ok=True)

    def make(self, plan, passed=0.0, limit=5000.0):
        history = History(self.root)
        now = clock.Clock(plan, limit)
        now.begun -= passed
        options = types.SimpleNamespace(build=self.root / "build", filter=None, everything=False)
        return running.Run(self.root, options, now, history, Totals(Records("")))

    def part(self, name, seconds, **more):
        return parts.Part(name, name, lambda run: self.calls.append(name), seconds, ("ci",), **more)

    def test_what_does_not_fit_is_skipped_by_name_and_age(self):
        run = self.make(plan=100, passed=50)
        run.history.dates["long"], run.history.seconds["long"] = time.time() - 3 * DAYS, 60
        program.by_plan(run, [self.part("must", 200, must=True), self.part("long", 10), self.part("short", 40)])
        self.assertEqual(self.calls, ["must", "short"])
        self.assertEqual(run.totals.skipped, 1)
        self.assertRegex(run.totals.left_out[0], r"^long: it takes about 60 s, .*last run 3 days ago")
        self.assertEqual(run.totals.failed, 0)

    def test_the_longest_waiting_part_comes_first(self):
        run = self.make(plan=100, passed=50)
        for name, age in (("new", 1), ("old", 9), ("older", 10)):
            run.history.dates[name], run.history.seconds[name] = time.time() - age * DAYS, 30
        program.SHORT_SECONDS = 0
        program.by_plan(run, [self.part(name, 30, by_turn=True) for name in ("new", "old", "older")])
        self.assertEqual(self.calls, ["older"])
        self.assertRegex(run.totals.left_out[0], "^old: another one had its turn; last run 9 days ago")
        self.assertEqual(run.totals.failed, 0)

    def test_an_overdue_part_runs_whatever_the_plan_says(self):
        run = self.make(plan=100, passed=99)
        run.history.dates["late"], run.history.seconds["late"] = time.time() - 15 * DAYS, 30
        program.by_plan(run, [self.part("late", 30, by_turn=True)])
        self.assertEqual((self.calls, run.totals.failed), (["late"], 0))
        self.assertLess(run.history.age("late"), 1)

    def test_an_overdue_part_fails_where_there_is_no_time_at_all(self):
        run = self.make(plan=100, passed=99, limit=110)
        program.by_plan(run, [self.part("never", 30, by_turn=True)])
        self.assertEqual((self.calls, run.totals.failed), ([], 1))
        self.assertIn("14 days are allowed", run.totals.bad[0])

    def test_what_the_clock_has_ended_has_not_run(self):
        run = self.make(plan=100, limit=running.RESERVE_SECONDS + 1)
        one = parts.Part("hangs", "", lambda r: r.step("hangs", ["sleep", "60"]), 1, ("ci",))
        program.by_plan(run, [one])
        self.assertEqual(run.totals.skipped, 1)
        self.assertIsNone(run.history.age("hangs"))

    def test_a_part_that_breaks_does_not_end_the_run(self):
        run = self.make(plan=100)

        def broken(_run):
            raise OSError("no such thing")
        stderr, sys.stderr = sys.stderr, open(os.devnull, "w")
        try:
            program.by_plan(run, [parts.Part("broken", "", broken, 1, ("ci",)), self.part("next", 1)])
        finally:
            sys.stderr.close()
            sys.stderr = stderr
        self.assertEqual((self.calls, run.totals.failed), (["next"], 1))

    def test_another_checkout_knows_by_its_tree(self):
        run = self.make(plan=100)
        run.history.runs = 7
        program.by_plan(run, [self.part("done", 1, by_turn=True)])
        run.history.write()
        (Path(os.environ["CORETAP_CACHE"]) / "turns.json").unlink()
        again = History(self.root)
        self.assertLess(again.age("done"), 2)
        self.assertEqual(again.runs, 7)


class Ends(unittest.TestCase):
    def test_all_that_a_command_has_started_ends(self):
        with tempfile.TemporaryDirectory() as scratch:
            pids = Path(scratch, "pids")
            # A child in a separate session, one that ignores SIGTERM, and one whose parent has ended.
            script = f"""setsid sleep 100 & echo $! >>{pids}; (trap '' TERM; sleep 100) & echo $! >>{pids}
                (setsid sleep 100 & echo $! >>{pids}); sleep 100"""
            clock.GRACE_SECONDS = 1
            begun = time.monotonic()
            self.assertIs(clock.call(["sh", "-c", script], 0.5), clock.ENDED)
            self.assertLess(time.monotonic() - begun, 10)
            found = pids.read_text().split()
            self.assertEqual(len(found), 3)
            for pid in found:
                self.assertFalse(Path(f"/proc/{pid}").exists(), pid)

    def test_a_status_is_passed_on(self):
        self.assertEqual(clock.call(["sh", "-c", "exit 7"], 10), 7)


class Logs(unittest.TestCase):
    def test_what_a_program_had_done_when_it_was_ended(self):
        with tempfile.TemporaryDirectory() as scratch:
            log, report = Path(scratch, "log"), Path(scratch, "report.json")
            log.write_text("[==========] Running 4 tests from 2 test suites.\n[ RUN      ] A.One\n[       OK ] A.One (12 ms)\n"
                           "[ RUN      ] T/B.Two/x\nwhy it failed\n[  FAILED  ] T/B.Two/x, where GetParam() = \"x\" (3 ms)\n[ RUN      ] A.Three\n")
            self.assertEqual(gtestreport.of_log(log, report), 2)
            self.assertEqual([(name, gtestreport.result(test)) for name, test in gtestreport.tests(report)],
                             [("A.One", "passed"), ("T/B.Two/x", "failed")])
            self.assertIn("why it failed", gtestreport.failures_of_log(log))
            log.write_text("[ RUN      ] A.Four\nx_test.cpp:5: Skipped\nno disk\n\n[  SKIPPED ] A.Four (0 ms)\n")
            self.assertEqual(gtestreport.skips_of_log(log), {"no disk": ["A.Four"]})
            log.write_text("[ RUN      ] A.One\n[       OK ] A.One (0 ms)\n")
            self.assertNotIn("A.One (", gtestreport.failures_of_log(log))


class Retries(unittest.TestCase):
    def test_a_run_fails_with_more_of_them_than_come_by_chance(self):
        totals = Totals(Records(""))
        for ran, most in ((0, 1), (200, 4), (1600, 15)):  # quantiles of Poisson's distribution, 99 %
            totals.ran = ran
            self.assertEqual(totals.most_again(), most)


if __name__ == "__main__":
    clock.adopt_orphans()
    unittest.main(verbosity=0)
