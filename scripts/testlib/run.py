"""One run of the tests: builds, test programs, other commands, each within the run's time limit."""

import os
import shutil
import subprocess
import sys
import threading
import time
import traceback
from contextlib import ExitStack
from pathlib import Path

import gtestreport
from testlib import clock
from testlib.totals import say

SKIPPED = 77  # exit status of a test that cannot run here, and has printed the reason
RESERVE_SECONDS = 20  # for the steps after a part that the clock has ended
SETTINGS = {
    "main": ["-DCORETAP_TESTS=ON"],
    "sanitize": ["-DCMAKE_C_COMPILER=clang", "-DCMAKE_CXX_COMPILER=clang++", "-DCORETAP_SANITIZE=ON", "-DCORETAP_TESTS=ON",
                 "-DCORETAP_PRECOMPILE=OFF"],
    "static": ["-DCORETAP_STATIC=ON", "-DCORETAP_TESTS=OFF"],
    "clang": ["-DCORETAP_TESTS=OFF"],
    "arm64": ["--toolchain", "cmake/arm64.cmake", "-DCORETAP_TESTS=ON"],
}
TARGETS = {"main": ["all", "coretap-docs"], "sanitize": ["fuzz"], "static": ["coretap"], "clang": ["coretap"], "arm64": ["coretap", "tool_tests"]}


def newest_clang():
    """A newer compiler of kernel programs than the default one, if there is one."""
    found = sorted((p.name for d in os.environ["PATH"].split(":") for p in Path(d).glob("clang-[0-9]*")
                    if p.name[6:].isdigit()), key=lambda n: int(n[6:]))
    return found[-1] if found else None


class Run:
    def __init__(self, root, options, now, history, totals):
        self.root, self.options, self.clock, self.history, self.totals = root, options, now, history, totals
        self.interrupted = False  # the clock has ended something of the current part
        self.built, self.targets = {}, None  # targets: of the main build, instead of all
        self.unit_beside, self.beside, self.guests_beside = False, None, None
        self.logs = self.directory() / "test-logs"

    def directory(self, kind="main"):
        build = self.options.build
        return build if kind == "main" else build.parent / f"{build.name}-{kind}"

    def limit(self, seconds=None):
        """The time limit of a command: `seconds`, or the rest of the run."""
        left = self.clock.left()
        left = None if left is None else max(1.0, left - RESERVE_SECONDS)
        return min((s for s in (seconds, left) if s is not None), default=None)

    def ended_by_clock(self, name, rest=""):
        self.interrupted = True
        self.totals.skip(name, f"ended by the clock{rest}")

    # --- builds ----------------------------------------------------------------------------------

    def configured(self, kind):
        """The configure command, its environment."""
        settings = [*SETTINGS[kind], "-DCORETAP_ONLY="]  # scripts/run may have started with one tool
        if kind == "clang":
            settings.append(f"-DCORETAP_CLANG={newest_clang()}")
        if kind == "sanitize":
            settings.append(f"-DCORETAP_TOOLS_FROM={self.directory()}")
        environment = dict(os.environ)
        if shutil.which("ccache"):  # the static build and the build with the other clang compile much of the same again
            settings.append("-DCMAKE_CXX_COMPILER_LAUNCHER=ccache")
            environment.update(CCACHE_BASEDIR=str(self.root), CCACHE_NOHASHDIR="1", CCACHE_SLOPPINESS="pch_defines,time_macros")
        return ["cmake", "-G", "Ninja", "-S", self.root, "-B", self.directory(kind), *settings], environment

    def build(self, kind="main", targets=None):
        """Once for each kind and targets. -> whether it succeeded; the compiler's output is shown only if it fails"""
        targets = targets or (kind == "main" and self.targets) or TARGETS[kind]
        key = (kind, *targets)
        if key in self.built:
            return self.built[key]
        if kind == "clang" and not newest_clang():
            self.totals.skip("build clang", "there is no other clang than the default one")
            self.built[key] = False
            return False
        directory, begun = self.directory(kind), time.monotonic()
        name = f"build {directory.name}"
        say(f"{name} ({', '.join(targets)})")
        self.logs.mkdir(parents=True, exist_ok=True)
        log = self.logs / f"{directory.name}.log"
        configure, environment = self.configured(kind)
        status = 0
        with open(log, "w") as out:
            for command in (configure, ["ninja", "-C", directory, *targets]):
                status = clock.call(command, self.limit(), cwd=self.root, env=environment, stdin=subprocess.DEVNULL, stdout=out,
                                    stderr=subprocess.STDOUT)
                if status != 0:
                    break
        say(f"{name}: {'ok' if status == 0 else 'FAILED'}, {time.monotonic() - begun:.0f} s")
        self.built[key] = status == 0
        if status is clock.ENDED:
            self.ended_by_clock(name)
        else:
            if status:
                sys.stderr.write("".join(log.read_text(errors="replace").splitlines(True)[-60:]))
            self.totals.one(name, status == 0)
        return self.built[key]

    # --- programs of tests -----------------------------------------------------------------------

    def shards(self, command, environment, directory, shards, limit):
        """All in parallel: equal shares of the tests, or one process for each filter of a list. -> one status (None: the clock
        ended one), one report"""
        filters = shards if isinstance(shards, list) else [None] * shards
        reports = [directory / f"{index}.json" for index in range(len(filters))]
        logs = [directory / f"{index}.log" for index in range(len(filters))]
        begun, statuses, left = time.monotonic(), [], 0
        with ExitStack() as stack:
            running = []
            for index, (chosen, report, log) in enumerate(zip(filters, reports, logs)):
                shard = {} if chosen else {"GTEST_TOTAL_SHARDS": str(len(filters)), "GTEST_SHARD_INDEX": str(index)}
                words = [f"--gtest_filter={chosen}"] if chosen else []
                out = stack.enter_context(open(log, "w"))
                running.append(clock.start([*command, *words, f"--gtest_output=json:{report}"], stdin=subprocess.DEVNULL, stdout=out,
                                           stderr=out, env={**environment, **shard}))
                stack.callback(lambda process=running[-1]: process.returncode is None and clock.end_tree(process))
            for report, log, process in zip(reports, logs, running):
                try:
                    statuses.append(process.wait(None if limit is None else max(1.0, limit - (time.monotonic() - begun))))
                except subprocess.TimeoutExpired:
                    clock.end_tree(process)
                    statuses.append(clock.ENDED)
                    left += gtestreport.of_log(log, report)
        for log, status in zip(logs, statuses):
            if status != 0:
                print(gtestreport.failures_of_log(log) or log.read_text(errors="replace")[-4000:], flush=True)
        joined = directory / "report.json"
        if all(report.exists() for report in reports):  # if one died, none counts
            gtestreport.join(joined, reports)
        if clock.ENDED in statuses:
            return clock.ENDED, joined, left
        return max(statuses, key=abs), joined, 0

    def gtest(self, name, program, chosen=None, environment=None, again=False, shards=1, limit=None):
        """`chosen`: GoogleTest's filter; one on the command line replaces it. `shards`: number of processes, or a filter for
        each. `again`: tests that trace are retried, alone, as in gtestreport; every try is shown and counted."""
        if self.options.filter:
            chosen, shards = self.options.filter, 1
        command = [program, *([f"--gtest_filter={chosen}"] if chosen else [])]
        environment = {**os.environ, **(environment or {})}
        begun = time.monotonic()
        say(name)
        directory = self.logs / name.replace(" ", "-").replace(",", "")
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        status, report, left = self.shards(command, environment, directory, shards, self.limit(limit))
        for attempt in range(2, gtestreport.TRIES + 1):
            failed = gtestreport.worth_another_try(report) if again and status is not clock.ENDED else []
            if not failed:
                break
            say(f"trying again: {', '.join(failed)}")
            later = directory / f"try-{attempt}"
            later.mkdir()
            status, once_more, _ = self.shards([program, f"--gtest_filter={':'.join(failed)}"], environment, later, 1, self.limit(limit))
            if once_more.exists():
                gtestreport.merge(report, once_more)
        if status is clock.ENDED:
            self.ended_by_clock(name, f"; {left} of its tests did not end")
        self.totals.add_gtest(name, report, status or 0, again)
        reasons = {}
        for log in sorted(directory.glob("*.log")):
            for why, tests in gtestreport.skips_of_log(log).items():
                reasons.setdefault(why, []).extend(tests)
        self.totals.skips(name, reasons)
        say(f"{name}: {time.monotonic() - begun:.0f} s")

    def guarded(self, name, call):
        """-> its result; an exception is a failure, and the other parts run"""
        try:
            return call()
        except Exception:
            traceback.print_exc()
            self.totals.one(f"{name} (its own program)", False)
            return None

    def begin_beside(self, name, call):
        """Calls while CPUs are otherwise idle, in parallel with the following parts; end_beside() waits for it."""
        def idle():
            clock.only_idle_time()
            self.guarded(name, call)

        self.beside = threading.Thread(target=idle, daemon=True)
        self.beside.start()

    def end_beside(self):
        if self.beside:
            self.beside.join()
            self.beside = None

    # --- other commands --------------------------------------------------------------------------

    def step(self, name, command, limit=None, **options):
        """-> whether it succeeded"""
        begun = time.monotonic()
        say(name)
        status = clock.call(command, self.limit(limit), cwd=self.root, stdin=subprocess.DEVNULL, **options)
        if status is clock.ENDED:
            self.ended_by_clock(name)
            return False
        if status == SKIPPED:
            self.totals.skip(name, "as it has said")
            return True
        say(f"{name}: {'ok' if status == 0 else f'FAILED ({status})'}, {time.monotonic() - begun:.0f} s")
        self.totals.one(name, status == 0)
        return status == 0
